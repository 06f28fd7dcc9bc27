import pytest

from paper_assets.text.introductions import without_introduction


@pytest.mark.parametrize(
    "introduction",
    [
        "I work on",
        "I'm also interested in",
        "we are mainly working with",
        "I would like to read more about",
        "I’m looking for recent papers on",
        "Anything new on",
        "new work about",
        "papers that",
        "My thesis is on",
        "our lab works on",
        "keen on",
        "interested  in",
        "Please keep me posted on",
        "Show me recent papers about",
        "What's new in",
        "I care about",
        "I want to know how people are trying to",
    ],
)
def test_the_words_that_introduce_an_interest_are_left_out(introduction: str) -> None:
    assert without_introduction(f"{introduction} graph neural networks") == "graph neural networks"


@pytest.mark.parametrize(
    "interest",
    [
        "research agents",
        "news recommendation",
        "literature review automation",
        "papers with code",
        "work stealing",
        "study design",
        "people counting",
        "how agents plan",
        "needle-in-a-haystack tests",
        "new physics",
        "likelihood",
        "graph neural networks that work on papers",
        "papers",
        "I work on ",
        "",
        " ",
    ],
)
def test_a_topic_stays_as_it_is_and_nothing_becomes_empty(interest: str) -> None:
    assert without_introduction(interest) == interest


@pytest.mark.parametrize(
    "part",
    ["I want to ", "papers on ", "any new ", "my lab works ", "i very ", "show me ", "how people are trying to "],
)
def test_a_text_of_nothing_but_introductions_ends(part: str) -> None:
    assert without_introduction(part * 10_000).strip()
