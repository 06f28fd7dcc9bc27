"""The page is self-contained, and a paper's text never becomes markup."""

import re
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urlsplit

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.digests.html import html_page, title_and_body
from paper_assets.pipeline.digests import CODE_VERSION
from paper_assets.text.cleaning import one_line, without_controls
from paper_assets.text.tex import readable, without_mathml
from tests.digests.invented import HOSTILE, answer, attempt, cited, digest, document, paper, rewrite, row, written

PAGES = ("19", "425860dae0020016")  # the version of the pages, and the fingerprint of one with every part
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Shape(HTMLParser):
    """Tags with the names of their attributes, in order, formulas apart; every tag must be closed by its own."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.open: list[str] = []
        self.in_formulas: set[tuple[str, ...]] = set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shape = (tag, *(name for name, _ in attrs))
        if tag == "math" or "math" in self.open:
            self.in_formulas.add(shape)
        else:
            self.tags.append(shape)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def page(marked_text: str, url: str = "https://example.org/a.pdf") -> str:
    """Return a page on which every text from outside is the same."""
    text = f"x{marked_text}"
    hostile = paper(1, title=text, abstract=text, authors=(text,), categories=(text,), pdf_url=url, github_url=url)
    return html_page(
        digest(
            hostile,
            rows=[row(1, hostile.paper_id, tags=["CONTRASTIVE_PICK", f"SOFT_PENALTY:{without_controls(text)}"])],
            warnings=[text],
            llm_note=text,
            comparison_notes=[
                {"paper_ids": [text], "relation": "similar_approach", "shared_traits": [text], "differentiator": text},
                {"paper_ids": [text], "relation": "contrastive", "contrast_point": text},
            ],
            contrastive_info={"contrast_dimensions": [{"dimension": text, "this": [text], "others": [text]}]},
            answers=[
                answer({text: [document(content=f"{text} x", title=text, url=url)]}, question=text, notes=[text]),
                written(cited(text, text, title=text, section=text, paper_id="none"), notes=[text], model=text),
            ],
            rewrites=[rewrite("public", attempt(1, 95, text.replace("\n", " ") + " Zorvax"), outcome="passed", kept=1)],
        )
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_papers_give_the_page_no_other_shape(text: str) -> None:
    shape = Shape(page(text))
    assert shape.tags == Shape(page("word")).tags
    assert shape.in_formulas <= {("math", "display", "alttext"), ("mrow",), ("mi",), ("mn",), ("msub",), ("mfrac",)}


def test_the_page_shows_formulas_as_mathml_and_mail_and_feed_as_characters() -> None:
    formula = paper(title="Fast $x^{2}$ <b>", abstract=r"We prove that $\sum_{i} x_i \le n$. It holds.")
    shown = html_page(digest(formula))
    assert "Fast <math" in shown and "<msup><mi>x</mi>" in shown and "&lt;b&gt;" in shown
    assert "We prove that <math" in shown
    _, body = title_and_body(shown)
    assert "<math" not in body and "Fast x² &lt;b&gt;" in body and "We prove that ∑ᵢxᵢ ≤ n. It holds." in body


def test_an_abstract_is_never_cut_within_a_formula() -> None:
    abstract = "We bound it. " * 30 + "So $" + " + ".join(["x. y"] * 40) + "$ grows. " + "More is known. " * 10
    (entry,) = digest(paper(abstract=abstract)).entries
    assert entry.lead.source.count("$") % 2 == 0 and entry.rest and entry.rest.source.count("$") == 2


def test_only_commands_of_the_program_are_shown_as_code() -> None:
    shown = page("`evil`")
    assert "<code>evil" not in shown and "`evil`" in shown
    noted = digest(paper(), answers=[answer({}, notes=["3 of 9 have no vector yet; `paper-assets run` embeds them"])])
    assert "<code>paper-assets run</code>" in html_page(noted)


@given(st.one_of(st.text(), st.sampled_from(HOSTILE)))
def test_a_title_is_shown_as_it_is_written_but_for_its_tex(text: str) -> None:
    heading = lxml.html.fromstring(without_mathml(page(text)).encode()).find(".//article/h2/a")
    assert heading is not None
    assert heading.text_content() == readable(one_line(f"x{text}"))


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "//evil.example/x",
        "file:///etc/passwd",
        "https://user:word@evil.example/",
        "https://[::1/",
        "https:///no-host",
        'https://evil.example" onmouseover="alert(1)/',
        " vbscript:x",
    ],
)
def test_a_url_that_is_not_of_the_web_is_not_a_link(url: str) -> None:
    hrefs = [link.get("href") for link in lxml.html.fromstring(page("", url).encode()).iter("a")]
    assert [href for href in hrefs if href.startswith("http")] == [
        "https://arxiv.org/abs/2603.00001",
        "https://arxiv.org/html/2603.00001",
    ]
    assert all(urlsplit(href).scheme in ("", "https") for href in hrefs)


def test_a_page_asks_for_nothing_from_outside_and_runs_nothing() -> None:
    text = page("word")
    tree = lxml.html.fromstring(text.encode())
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None and policy.get("content", "").startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not {element.tag for element in tree.iter()} & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "video",
    }
    assert [link.get("rel") for link in tree.iter("link")] == ["alternate"]
    assert not re.search(r"url\(|@import|src=|\son\w+=", text)


def test_the_feed_gets_the_title_and_the_content_of_the_page_without_its_frame() -> None:
    title, body = title_and_body(page("</main> & <title>"))
    assert title == "ponds, 13 March 2026: 1 paper for you"
    assert body.startswith('<p class="sum">') and body.rstrip().endswith("</section>")
    assert "x&lt;/main&gt; &amp; &lt;title&gt;" in body
    assert "<style>" not in body and "feed.atom" not in body


def test_the_bar_of_a_score_never_leaves_its_frame() -> None:
    adds = {"final": 1.4, "semantic_relevance": 1.0, "author_trust": 1.0, "practicality": 1.0, "bonus": 1.0}
    tree = lxml.html.fromstring(html_page(digest(paper(), rows=[row(1, "2603.00001", **adds)])).encode())
    parts = [(float(part.get("x", "")), float(part.get("width", ""))) for part in tree.findall(".//svg/rect")]
    assert sum(width for _, width in parts) == pytest.approx(100, abs=0.5)
    assert all(x + width == pytest.approx(after, abs=0.11) for (x, width), (after, _) in pairwise(parts))


def test_a_penalty_is_written_with_a_minus_sign_and_not_with_a_hyphen() -> None:
    page = html_page(digest(paper(), rows=[row(1, "2603.00001", soft_penalty=-0.15)]))
    assert "−0.150" in page and "None" not in page


def test_pages_that_change_have_a_new_version() -> None:
    quiet = digest(paper(1), paper(2), rows=[row(1, "2603.00001"), row(2, "2603.00002", shown=False)], quiet=True)
    pages = page(" says $n\\log n$") + html_page(quiet)
    made = CODE_VERSION, sha256(pages.encode()).hexdigest()[:16]
    assert made == PAGES, "raise CODE_VERSION of pipeline/digests.py, so that Dagster shows which pages are older"
