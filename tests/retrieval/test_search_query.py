"""The query language: what each filter accepts, and errors that point at the place."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.retrieval.search_query import SearchQuery, parse_search_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("optimal transport", {"words": "optimal transport"}),
        ('"optimal transport" maps', {"words": "optimal transport maps", "phrases": ("optimal transport",)}),
        ("“curly quotes”", {"words": "curly quotes", "phrases": ("curly quotes",)}),
        ("author:Okafor", {"authors": ("Okafor",)}),
        ('author:"Ada Okafor" author:Lind', {"authors": ("Ada Okafor", "Lind")}),
        ("AUTHOR:Okafor", {"authors": ("Okafor",)}),
        ("category:cs.LG", {"categories": ("cs.LG",)}),
        ("category:cs.LG|stat", {"categories": ("cs.LG", "stat")}),
        ("category:cs.LG category:hep-th", {"categories": ("cs.LG", "hep-th")}),
        ("from:2026-03-05", {"first": date(2026, 3, 5)}),
        ("from:2026-03 to:2026-03", {"first": date(2026, 3, 1), "last": date(2026, 3, 31)}),
        ("from:2024 to:2024", {"first": date(2024, 1, 1), "last": date(2024, 12, 31)}),
        ("to:2024-02", {"last": date(2024, 2, 29)}),
        ("from:2026-01 from:2026-02", {"first": date(2026, 2, 1)}),
        ("is:worth", {"states": ("worth",)}),
        ("is:worth|later", {"states": ("worth", "later")}),
        ("is:Unseen", {"states": ("unseen",)}),
        ("has:code", {"features": ("code",)}),
        ("has:code has:pdf", {"features": ("code", "pdf")}),
        ("in:my-profile", {"profile": "my-profile"}),
        ("in:fulltexts notation", {"words": "notation", "data_types": ("fulltext",)}),
        ("in:abstracts|rewrites", {"data_types": ("abstract", "rewrite")}),
        ("in:fulltexts in:lab", {"data_types": ("fulltext",), "profile": "lab"}),
        (
            'maps -category:cs.CV -"slow flow" -deep-fake',
            {
                "words": "maps",
                "excluded": (
                    SearchQuery(categories=("cs.CV",)),
                    SearchQuery(words="slow flow", phrases=("slow flow",)),
                    SearchQuery(words="deep-fake", phrases=("deep-fake",)),
                ),
            },
        ),
        ("T-cell - state", {"words": "T-cell - state"}),
        ("Attention: a survey", {"words": "Attention: a survey"}),
        ("GPT:4 and 2D:3D", {"words": "GPT:4 and 2D:3D"}),
        ('"author:"', {"words": "author:", "phrases": ("author:",)}),
        ('""', {}),
        ("state-space models: longer memory", {"words": "state-space models: longer memory"}),
        (
            'graphs author:Lind "message passing" is:unseen has:code from:2026-03',
            {
                "words": "graphs message passing",
                "phrases": ("message passing",),
                "authors": ("Lind",),
                "states": ("unseen",),
                "features": ("code",),
                "first": date(2026, 3, 1),
            },
        ),
    ],
)
def test_a_query_is_read_as_a_person_means_it(text: str, expected: dict[str, Any]) -> None:
    assert parse_search_query(text) == replace(SearchQuery(), **expected)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("graphs auther:Lind", 8, "is unknown; did you mean author:?"),
        ("catgory:cs.LG", 1, "did you mean category:?"),
        ('deep "open quote', 6, "is not closed"),
        ('author:"Ada Lind', 8, "quotation mark at character 8 is not closed"),
        ("author: Lind", 1, "has no value; write author:VALUE"),
        ("graphs from:", 8, "has no value"),
        ("author:?", 1, "needs a name"),
        ('x author:""', 3, "needs a name"),
        ("x category:cs.LG,stat.ML", 3, "'cs.LG,stat.ML' is not a category"),
        ("category:cs.LG|3D", 1, "'3D' is not a category; write one like cs.CL or stat"),
        ("from:2026-13", 1, "'2026-13' is not a date"),
        ("maps from:2026-02-30", 6, "'2026-02-30' is not a date"),
        ("to:yesterday", 1, "write 2026-03-31, 2026-03 or 2026"),
        ("from:2026-03 to:2026-01", 14, "from:2026-03-01 is after to:2026-01-31; exchange"),
        ("to:2025 maps from:2026", 14, "is after"),
        ("is:starred", 1, "use worth, later, no, shown, unseen"),
        ("a b is:worth|best", 5, "'best' is unknown"),
        ("is:|", 1, "has no value"),
        ("has:video", 1, "use code, pdf"),
        ("in:Bad/Name", 1, "neither a profile's name nor one of abstracts, fulltexts, rewrites"),
        ("-has:video", 1, "use code, pdf"),
        ("maps -in:lab", 6, "only in:profile can be excluded"),
        ("in:one in:two", 8, "only one profile can be named, 'one' or 'two'"),
    ],
)
def test_an_error_names_the_filter_and_its_place(text: str, place: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"^search: ") as raised:
        parse_search_query(text)
    assert f"at character {place}" in str(raised.value) and message in str(raised.value)


def test_a_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1001 characters; use at most 1000"):
        parse_search_query("x" * 1001)


def test_a_chip_carries_the_query_without_it() -> None:
    query = parse_search_query("maps author:Lind category:cs.LG flows -old")
    assert [(chip.text, chip.without) for chip in query.chips] == [
        ("author:Lind", "maps category:cs.LG flows -old"),
        ("category:cs.LG", "maps author:Lind flows -old"),
        ("-old", "maps author:Lind category:cs.LG flows"),
    ]


@given(st.text(max_size=60))
def test_any_text_is_a_query_or_one_clear_line(text: str) -> None:
    try:
        parse_search_query(text)
    except InvalidInput as error:
        assert str(error).startswith("search: ")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("title:finch", '"finch" in quotation marks'),
        ('ti:"song of finches"', '"song of finches" in quotation marks'),
        ("au:Moreau", 'author:"Moreau"'),
        ("cat:cs.CL", "category:cs.CL"),
        ("year:2026", "from:2026 to:2026"),
    ],
)
def test_a_filter_of_another_search_is_an_error_that_says_what_to_write(typed: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match="is not a filter here") as refused:
        parse_search_query(f"birds {typed}")
    assert hint in str(refused.value)
