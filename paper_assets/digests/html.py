"""Render the digest as one self-contained HTML page: no script, no outside resource, everything escaped."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import cache
from html import unescape
from itertools import accumulate

import jinja2
from markupsafe import Markup, escape

from paper_assets.digests.content import Digest
from paper_assets.digests.entry import Part
from paper_assets.digests.plain_text import in_words, weekday
from paper_assets.text.tex import MathText, html_with_mathml, without_mathml

# Only the program's own commands: a text from outside gives the page no element.
_COMMAND = re.compile(r"`((?:paper-assets|make|ollama) [^`\n]{1,300})`")


def html_page(digest: Digest, *, desk: str | None = None) -> str:
    """Render the page as a file; `desk`: the URL of the same day on the desk."""
    return _template().render(digest=digest, day_in_words=long_day(digest.day), desk=desk)


def long_day(day: date) -> str:
    """Format a day as Friday, 13 March 2026."""
    return f"{weekday(day)}, {in_words(day)}"


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
    said = page.partition('<meta name="dcterms.modified" content="')[2].partition('"')[0]
    try:
        moment = datetime.fromisoformat(said)
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


def _maths(text: object) -> Markup:
    """Show the formulas of a title, an abstract or a passage as MathML."""
    source = text.source if isinstance(text, MathText) else str(text)
    return Markup(html_with_mathml(source))  # noqa: S704  # escaped there


def _points(points: float) -> str:
    return f"{points:.3f}".replace("-", "−")


@cache
def _template() -> jinja2.Template:
    return environment().get_template("digest.html.jinja")
