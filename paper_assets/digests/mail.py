"""Write a digest as a mail: text for a terminal, and HTML that mail clients show.

Both begin with a sentence for each paper. Styles are inline because clients remove style sheets, the width is that of a
phone or at most 600 pixels, and no link leads to this machine: papers are at their source, and the desk is linked only
where its address is public.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from paper_assets.digests.content import Digest
from paper_assets.digests.entry import DigestEntry
from paper_assets.digests.evidence import EvidenceEntry
from paper_assets.digests.html import environment, long_day
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.tex import MathText, without_mathml

_WIDTH = 76  # characters of a line; quoted in an answer it still fits into 80
_MOST_LINES = 20  # papers beside the list
_LOCAL_NAMES = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


def is_public(url: str | None) -> bool:
    """Return whether the address can be reached from elsewhere: not a name of this machine or network, no private
    address.
    """
    try:
        host = (urlsplit(url or "").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_NAMES)


def mail_html(digest: Digest, *, desk: str | None = None) -> str:
    """Render the HTML part; `desk`: the URL of the same day on the desk."""
    return without_mathml(
        _template().render(
            digest=digest,
            day_in_words=long_day(digest.day),
            desk=desk if is_public(desk) else None,
            summaries=_summaries(digest),
        )
    )


def mail_text(digest: Digest, *, desk: str | None = None) -> str:
    """Write the text part, in lines of at most 76 characters (addresses are not divided)."""
    summaries = _summaries(digest)
    parts = [
        f"{digest.profile}, {long_day(digest.day)}\n{_wrapped(f'{digest.headline}. {digest.window}')}",
        *(_wrapped(f"Warning: {warning}") for warning in digest.warnings),
        *(_hanging(f"{entry.rank}. ", f"{entry.title}: {summaries[entry.paper_id]}") for entry in digest.entries),
        *(_paper(entry) for entry in digest.entries),
    ]
    if digest.more_likely:
        more = [_hanging("- ", f"{paper.title} {paper.url or ''}") for paper in digest.more_likely[:_MOST_LINES]]
        left = len(digest.more_likely) - len(more)
        more += [f"and {left} more"] if left else []
        parts.append("\n".join([f"{len(digest.more_likely)} more likely", *more]))
    if digest.by_people:
        lines = [f"{paper.title} ({paper.people or paper.authors}) {paper.url or ''}" for paper in digest.by_people]
        parts.append("\n".join(["By people you follow", *(_hanging("- ", line) for line in lines)]))
    parts += [_evidence(each) for each in digest.evidence]
    if desk and is_public(desk):
        parts.append(f"Rate, ask and decide on the desk:\n{desk}")
    parts += [_wrapped(f"{remark}.") for remark in digest.remarks]
    return "\n\n".join(parts) + "\n"


def _summaries(digest: Digest) -> Mapping[str, str]:
    """Return the sentence that says what each paper does, by its id."""
    summaries = {}
    for entry in digest.entries:
        parts = [entry.rest] if entry.skipped and entry.rest else [entry.lead, entry.rest]
        abstract = " ".join(part.source for part in parts if part)
        summaries[entry.paper_id] = MathText(key_sentence(abstract))
    return summaries


def _paper(entry: DigestEntry) -> str:
    heading = _hanging(f"{entry.rank}. ", str(entry.title))
    published = f"{entry.published:%Y-%m-%d}" if entry.published else ""
    about = ", ".join(each for each in (entry.level, entry.paper_id, published, *entry.categories) if each)
    lines = [heading, "-" * min(max(map(len, heading.splitlines())), _WIDTH), *_lines(entry.authors), *_lines(about)]
    lines += [f"{link.label}: {link.url}" for link in entry.links]
    if entry.lead:
        lines += ["", *_lines(str(entry.lead))]
    for version in entry.versions:
        lines += ["", *_lines(f"Rewritten {version.level} ({version.state})")]
        lines += [line for paragraph in version.paragraphs for line in _lines(paragraph, indent="  ")]
    lines += ["", *_lines(_why(entry))]
    return "\n".join(lines)


def _why(entry: DigestEntry) -> str:
    """Return in a sentence why a paper is listed."""
    return " ".join(str(part) for part in (entry.reason and f"Why: {entry.reason}", entry.order) if part)


def _evidence(answer: EvidenceEntry) -> str:
    lines = [*_lines(answer.question), "-" * min(len(answer.question), _WIDTH)]
    for text, numbers in _sentences(answer):
        lines += _lines(f"{text} {numbers}".strip())
    if answer.written:
        for each in answer.written.quotations:
            lines += ["", *_lines(f'[{each.number}] "{each.quote}" {each.title}'), *([each.url] if each.url else [])]
        lines += ["", *_lines(answer.written.by)]
    for side in answer.sides:
        lines += ["", side.name, *_lines(side.gap or "")]
        for passage in side.passages:
            lines += [
                "",
                _hanging("- ", str(passage.title)),
                *_lines(str(passage.quote or passage.text or ""), indent="  "),
            ]
            lines += [f"  {passage.url}"] if passage.url else []
    return "\n".join(lines)


def _sentences(answer: EvidenceEntry) -> Iterator[tuple[str, str]]:
    for name, sentences in answer.written.sides if answer.written else ():
        if name:
            yield f"{name}:", ""
        for each in sentences:
            yield each.text, "".join(f"[{number}]" for number in each.numbers)


def _wrapped(text: str) -> str:
    return "\n".join(_lines(text))


def _hanging(mark: str, text: str) -> str:
    return "\n".join(_lines(text, first=mark, indent=" " * len(mark)))


def _lines(text: str, *, first: str | None = None, indent: str = "") -> list[str]:
    return textwrap.wrap(
        re.sub(r"\s+", " ", text),
        width=_WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


_STYLES: Mapping[str, str] = {
    "body": "margin:0;padding:0;background:#ffffff;",
    "page": "max-width:600px;margin:0 auto;padding:16px;color:#23211d;overflow-wrap:anywhere;word-break:break-word;"
    "font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;",
    "h1": "margin:0;font-size:22px;line-height:1.25;",
    "h2": "margin:0;font-size:18px;line-height:1.35;",
    "h3": "margin:16px 0 4px;font-size:15px;",
    "soft": "margin:4px 0 0;color:#6a655c;font-size:14px;",
    "p": "margin:8px 0 0;",
    "warning": "margin:12px 0 0;padding-left:10px;border-left:3px solid #8a4b00;color:#8a4b00;font-size:14px;",
    "summary": "margin:16px 0 0;padding:0 0 0 24px;",
    "li": "margin:0 0 8px;",
    "part": "margin:24px 0 0;padding:20px 0 0;border-top:1px solid #e2ddd2;",
    "quote": "margin:8px 0 0;padding-left:10px;border-left:3px solid #e2ddd2;",
    "a": "color:#1d4f8c;",
}


@cache
def _template() -> jinja2.Template:
    made = environment()
    made.filters["why"] = _why
    made.globals["styles"] = {name: Markup(text) for name, text in _STYLES.items()}  # noqa: S704  # ours
    return made.get_template("mail.html.jinja")
