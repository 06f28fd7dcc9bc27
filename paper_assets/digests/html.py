"""Render the digest as one self-contained HTML page, and a profile's pages as an Atom feed (RFC 4287).

The page has no script and no outside resource, and everything is escaped. The feed is made from the pages, so that both
have the same content.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from html import unescape
from itertools import accumulate

import jinja2
from lxml import etree
from lxml.builder import ElementMaker
from markupsafe import Markup, escape

from paper_assets.digests.content import Digest
from paper_assets.digests.entry import Part
from paper_assets.digests.plain_text import in_words, long_day
from paper_assets.text.cleaning import without_controls
from paper_assets.text.tex import MathText, html_with_mathml, without_mathml

# Only the program's own commands: a text from outside gives the page no element.
_COMMAND = re.compile(r"`((?:paper-assets|make|ollama|hf download) [^`\n]{1,300})`")


def html_page(digest: Digest, *, desk: str | None = None) -> str:
    """Render the page as a file; `desk`: the URL of the same day on the desk."""
    return _template().render(digest=digest, day_in_words=long_day(digest.day), desk=desk)


def environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Create the environment for the digest's templates, and with a further `loader` for pages that share them."""
    own = jinja2.PackageLoader("paper_assets", "digests")
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([loader, own]) if loader else own,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "bar": _bar,
        "points": _points,
        "in_words": in_words,
        "long_day": long_day,
        "with_code": _with_code,
        "sentence": _sentence,
        "maths": _maths,
    }
    return made


def title_and_body(page: str) -> tuple[str, str]:
    """Extract the title (plain) and the content of `main` (HTML without MathML) from such a page, for a feed.

    No text of a paper can contain the tags searched for: its brackets are escaped.
    """
    title = page.partition("<title>")[2].partition("</title>")[0]
    return unescape(title), without_mathml(page.partition("<main>\n")[2].rpartition("</main>")[0])


def updated(page: str) -> datetime | None:
    """Read when the content of such a page last changed; None if the page does not contain it."""
    written = page.partition('<meta name="dcterms.modified" content="')[2].partition('"')[0]
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _bar(parts: Sequence[Part]) -> list[tuple[Part, str, str]]:
    """Return the positive parts of the score with start and length, in hundredths of the bar."""
    adds = [part for part in parts if part.points > 0]
    scale = 100 / max(1.0, sum(part.points for part in adds))
    ends = list(accumulate(scale * part.points for part in adds))
    return [
        (part, f"{end - scale * part.points:.1f}", f"{scale * part.points:.1f}")
        for part, end in zip(adds, ends, strict=True)
    ]


def _with_code(text: object) -> Markup:
    """Escape a message and show commands between backticks as code."""
    escaped = str(escape(str(text)))
    return Markup(_COMMAND.sub(r"<code>\1</code>", escaped))  # noqa: S704  # escaped above


def _sentence(text: str) -> str:
    """Write a note as a sentence: with a capital letter, except before a command, and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip()}{'' if text.rstrip().endswith(('.', '!', '?', '…')) else '.'}"


def _maths(text: object) -> Markup:
    """Show the formulas of a title, an abstract or a passage as MathML."""
    source = text.source if isinstance(text, MathText) else str(text)
    return Markup(html_with_mathml(source))  # noqa: S704  # escaped there


def _points(points: float) -> str:
    return f"{points:.3f}".replace("-", "−")


@cache
def _template() -> jinja2.Template:
    return environment().get_template("digest.html.jinja")


_NAMESPACE = "http://www.w3.org/2005/Atom"
# RFC 4151: an authority that cannot be registered; an id consists of profile and day and never changes.
_TAG = "tag:paper-assets.invalid,2026:digests"

_make = ElementMaker(namespace=_NAMESPACE, nsmap={None: _NAMESPACE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One day's digest in the feed: its title, its body as HTML, and when it last changed (`updated`, UTC; None: the
    day).
    """

    day: date
    title: str
    body: str
    updated: datetime | None = None  # the day

    @property
    def published(self) -> datetime:
        """Return midnight of the day, UTC."""
        return datetime.combine(self.day, time(), UTC)


def atom_feed(profile: str, issues: Sequence[Issue], *, desk: str) -> bytes:
    """Write the feed of one or more issues, newest first. Its times are those of the issues: equal issues give equal
    bytes.

    Links are absolute, to the profile's days at `desk`, because a reader of feeds copies the file elsewhere. Where the
    file is kept is not known, so there is no link to itself.
    """
    newest_first = sorted(issues, key=lambda issue: issue.day, reverse=True)
    feed = _make.feed(
        _make.id(f"{_TAG}/{profile}"),
        _make.title(f"Reading digest: {profile}"),
        _make.updated(_instant(max(issue.updated or issue.published for issue in issues))),
        _make.author(_make.name("paper_assets")),
        _make.link(rel="alternate", type="text/html", href=f"{desk}/p/{profile}"),
        *(_entry(profile, issue, desk) for issue in newest_first),
    )
    feed.set("{http://www.w3.org/XML/1998/namespace}lang", "en")
    return etree.tostring(feed, encoding="utf-8", xml_declaration=True, pretty_print=True)


def _entry(profile: str, issue: Issue, desk: str) -> etree._Element:
    return _make.entry(
        _make.id(f"{_TAG}/{profile}/{issue.day}"),
        _make.title(without_controls(issue.title)),
        _make.published(_instant(issue.published)),
        _make.updated(_instant(issue.updated or issue.published)),
        _make.link(rel="alternate", type="text/html", href=f"{desk}/p/{profile}/{issue.day}"),
        _make.content(without_controls(issue.body), type="html"),
    )


def _instant(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
