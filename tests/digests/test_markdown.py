"""Test that the Markdown shows exactly the text of a paper, and that no text changes the structure of the page."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from paper_assets.digests.markdown import escape_markdown, markdown_page, paper_list
from paper_assets.text.cleaning import one_line, without_controls
from tests.digests.invented import HOSTILE, answer, attempt, cited, digest, document, paper, rewrite, row, written

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def kinds(text: str) -> list[str]:
    """The types of all tokens, those inside a line too."""
    return [kind for token in READER.parse(text) for kind in (token.type, *(c.type for c in token.children or ()))]


@given(st.one_of(st.text(), st.text(alphabet="#-+=*_`~|[]()<>!\\$&:.1 a\n"), st.sampled_from(HOSTILE)))
def test_a_line_of_text_is_read_as_a_paragraph_of_just_this_text(text: str) -> None:
    line = one_line(text)
    tokens = READER.parse(escape_markdown(line))
    if not line:
        assert tokens == []
        return
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert "".join(token.content for token in tokens[1].children or ()) == line
    assert {token.type for token in tokens[1].children or ()} == {"text"}


@given(st.sampled_from(HOSTILE))
def test_escaped_text_begins_neither_mathematics_nor_a_link(text: str) -> None:
    escaped = escape_markdown(one_line(text))
    assert not re.search(r"(?<!\\)\$|https?://|www\.|(?<!\\)@|(?<!\\)[{}]", escaped)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_papers_give_the_page_no_other_shape(text: str) -> None:
    def page(hostile_text: str) -> str:
        hostile = paper(
            1, title=f"x{hostile_text}", abstract=hostile_text, authors=(hostile_text,), categories=(hostile_text,)
        )
        return markdown_page(
            digest(
                hostile,
                rows=[row(1, hostile.paper_id, tags=["VERY_RECENT", f"SOFT_PENALTY:{without_controls(hostile_text)}"])],
                warnings=[hostile_text],
                answers=[
                    answer(
                        {hostile_text: [document(content=hostile_text, title=f"x{hostile_text}")]},
                        question=f"x{hostile_text}",
                    ),
                    written(
                        cited(
                            f"x{hostile_text}", f"x{hostile_text}", title=f"x{hostile_text}", section=f"x{hostile_text}"
                        )
                    ),
                ],
                rewrites=[rewrite("public", attempt(1, 95, f"{hostile_text} Zorvax"), outcome="passed", kept=1)],
            )
        )

    # A text that is several paragraphs, or none, gives the rewrite several or none; the shape else is that of a word.
    plain = " \n\n ".join("word" for part in re.split(r"\n\s*\n", text) if one_line(part))
    assert kinds(page(text)) == kinds(page(plain))


def test_shared_papers_are_a_list_of_links_in_which_no_paper_begins_mathematics_or_html() -> None:
    hostile = paper(1, title="Costs $5 <b>and", abstract="We show *that* $10 <i> is", authors=("A_b_ $c",))
    plain = paper(1, title="Costs and", abstract="We show that", authors=("Ab",))
    assert kinds(paper_list([hostile, plain])) == kinds(paper_list([plain, plain]))
    assert not re.search(r"(?<!\\)[$<]", paper_list([hostile]))
    assert paper_list([]) == ""


def test_the_page_reads_well_as_plain_text() -> None:
    text = markdown_page(digest(paper(1, title="Counting in $O(n^2)$", github_url="https://github.com/a/b")))
    assert text.startswith("# ponds, Friday, 13 March 2026\n\n**1 paper for you.** 1 new paper.")
    assert "## 1. [Counting in O(n²)](https://arxiv.org/abs/2603.00001)\n\n*Ada Moreau*  \n" in text
    assert (
        "2603.00001 · 12 March 2026 · cs.CL · [PDF](https://arxiv.org/pdf/2603.00001v1)"
        " · [HTML](https://arxiv.org/html/2603.00001) · [Code](https://github.com/a/b)" in text
    )
    assert "\n\n\n" not in text
