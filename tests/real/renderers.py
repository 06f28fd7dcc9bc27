"""Everything that turns a paper into something shown, as one table.

Adding one: a function of papers and its line in `RENDERERS`. It raises if its output is not sound.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from html import unescape
from html.parser import HTMLParser
from itertools import islice
from time import process_time

import orjson
from lxml import etree

from paper_assets.delivery.channels import message_of
from paper_assets.digests.content import Digest
from paper_assets.digests.html import Issue, atom_feed, html_page, title_and_body
from paper_assets.digests.markdown import markdown_page
from paper_assets.interfaces.page.display import readable_title, with_mathml
from paper_assets.interfaces.page.paper_rows import row_of
from paper_assets.library.formats import FORMATS, write_papers
from paper_assets.paper import Paper
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import html_with_mathml, readable, without_mathml
from tests.digests.invented import DAY, answer, digest, document, row
from tests.real.odd_papers import paper_saying

# Pandoc's rule for a formula: no space inside the dollars, and no figure after the closing one.
_PANDOC = re.compile(r"(?<!\\)\$(?=\S)(?:[^$\\]|\\.)+?(?<=\S)(?<!\\)\$(?!\d)", re.DOTALL)
_MATH = re.compile(r"<math.*?</math>", re.DOTALL)
_BETWEEN_TAGS = re.compile(r"<[^>]*>")
Papers = tuple[Paper, ...]
_LONGEST_CHECKED = 200_000  # characters; the check takes longer than the rendering
Render = Callable[[Papers], object]


class Balanced(HTMLParser):
    """Fail where an element is not closed by its own tag, or where content may have brought a script or picture."""

    _VOID = frozenset(["meta", "link", "img", "br", "hr", "input", "wbr"])

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, self.open[-3:]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own_script = tag == "script" and (dict(attrs).get("src") or "").startswith("/assets/")
        assert own_script or tag not in ("script", "iframe", "img"), (tag, attrs)
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@lru_cache(maxsize=1)
def _digest(papers: Papers) -> Digest:
    """Build a digest that shows the papers in the list, in answers and among the comparisons."""
    passages = [
        document(content=f"{each.title}\n\n{each.abstract}", title=each.title, paper_id=each.paper_id)
        for each in papers
    ]
    rows = [row(rank, each.paper_id, nearest=each.title[:500]) for rank, each in enumerate(papers, 1)]
    first = papers[0]
    rows[0]["tags"] = ["CONTRASTIVE_PICK", "VERY_RECENT"]
    found = digest(
        *papers,
        rows=rows,
        comparison_notes=[
            {"paper_ids": [first.paper_id], "relation": "contrastive", "contrast_point": first.title},
        ],
        contrastive_info={"contrast_dimensions": [{"dimension": "d", "this": [first.title], "others": []}]},
        answers=[answer({"for": passages}, question=first.title)],
        warnings=[first.title],
    )
    assert len(found.warnings) == 1, found.warnings
    assert len(found.entries) == len(papers) and len(found.evidence[0].sides[0].passages) == len(papers)
    return found


@lru_cache(maxsize=1)
def _page(papers: Papers) -> str:
    return html_page(_digest(papers))


def _html(papers: Papers) -> None:
    page = _page(papers)
    page.encode()
    Balanced(page)
    assert "<math" not in without_mathml(page)


def _feed(papers: Papers) -> None:
    title, body = title_and_body(_page(papers))
    etree.fromstring(
        atom_feed("ponds", [Issue(day=DAY, title=title, body=body)], desk="http://127.0.0.1:8000"),
        etree.XMLParser(huge_tree=True),
    )


def _message(papers: Papers) -> None:
    orjson.dumps(message_of(_digest(papers)).payload)


def _rows(papers: Papers) -> None:
    for paper in papers:
        row_of(paper)
        readable_title(paper.title)


def _citation(name: str, papers: Papers) -> None:
    write_papers(papers, name).encode()


def _mathml(papers: Papers) -> None:
    for text in _texts(papers):
        html = html_with_mathml(text)
        if len(html) < _LONGEST_CHECKED:
            Balanced(html)


def _characters(papers: Papers) -> None:
    for text in _texts(papers):
        assert isinstance(readable(text), str)


def _texts(papers: Papers) -> Iterator[str]:
    for paper in papers:
        yield from (paper.title, paper.abstract, *paper.authors)


def _key_sentences(papers: Papers) -> None:
    for paper in papers:
        key_sentence(one_line(paper.abstract))


def raw_mathematics(papers: Papers) -> list[str]:
    """What digest, Today and the paper's own view leave between dollars that pandoc would read as a formula."""
    papers = (paper_saying("plain words", 0), *papers)  # the first title is also shown as a warning, as it is
    shown = [_page(papers)]
    shown += [with_mathml(entry.title) for entry in _digest(papers).entries]
    for paper in papers:
        row = row_of(paper)
        shown += [row.title, row.sentence, row.abstract]
    texts = [text for html in shown for text in _BETWEEN_TAGS.split(_MATH.sub("", html))]
    return [found[0] for text in texts for found in _PANDOC.finditer(unescape(text))]


RENDERERS: Mapping[str, Render] = {
    "characters": _characters,
    "MathML": _mathml,
    "key sentence": _key_sentences,
    "digest HTML": _html,
    "digest Markdown": lambda papers: markdown_page(_digest(papers)).encode(),
    "digest feed": _feed,
    "digest message": _message,
    "page rows": _rows,
    **{f"citation {name}": partial(_citation, name) for name in FORMATS},
}


@dataclass(slots=True)
class Sweep:
    """What a sweep tried, and what raised: (renderer, paper id, error)."""

    papers: int = 0
    rendered: int = 0
    raised: list[tuple[str, str, str]] = field(default_factory=list)
    slowest: tuple[float, str, str] = (0.0, "", "")  # seconds for a paper

    def __str__(self) -> str:
        seconds, renderer, paper_id = self.slowest
        return (
            f"{self.papers:,} papers x {len(RENDERERS)} renderers = {self.rendered:,} rendered, raised "
            f"{len(self.raised)}; slowest {seconds:.2f} s ({renderer}, {paper_id})"
        )


def sweep(papers: Iterable[Paper], *, together: int = 1) -> Sweep:
    """Render every paper by every renderer, `together` at a time; papers that raise are tried alone, to name them."""
    done, papers = Sweep(), iter(papers)
    while batch := tuple(islice(papers, together)):
        done.papers += len(batch)
        for name, render in RENDERERS.items():
            started = process_time()
            try:
                render(batch)
            except Exception as error:
                raised = (name, batch[0].paper_id, f"{type(error).__name__}: {error}"[:300])
                done.raised += [raised] if together == 1 else [each for one in batch for each in sweep([one]).raised]
            done.rendered += len(batch)
            done.slowest = max(done.slowest, ((process_time() - started) / len(batch), name, batch[0].paper_id))
    return done
