"""The digest as one HTML page that needs nothing else: no script, no outside resource, everything escaped."""

from datetime import datetime
from functools import cache
from html import unescape

import jinja2

from paper_assets.digests.content import Digest, Entry, Part
from paper_assets.digests.plain_text import in_words, weekday


def html_page(digest: Digest) -> str:
    """The whole page, for a file."""
    return _template().render(digest=digest, day_in_words=f"{weekday(digest.day)}, {in_words(digest.day)}")


def title_and_body(page: str) -> tuple[str, str]:
    """The title (plain) and what stands between the `main` tags (HTML) of such a page, for a feed.

    No text of a paper can hold the tags that are looked for: its brackets are escaped.
    """
    title = page.partition("<title>")[2].partition("</title>")[0]
    return unescape(title), page.partition("<main>\n")[2].rpartition("</main>")[0]


def updated(page: str) -> datetime | None:
    """When what such a page shows last changed; None of a page that does not say so."""
    said = page.partition('<meta name="dcterms.modified" content="')[2].partition('"')[0]
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _bar(entry: Entry) -> list[tuple[Part, str]]:
    """The parts that add to the score and their widths in percent; the whole bar is a score of 1, or more."""
    adds = [part for part in entry.parts if part.points > 0]
    whole = max(1.0, sum(part.points for part in adds))
    return [(part, f"{100 * part.points / whole:.1f}%") for part in adds]


def _points(points: float) -> str:
    return f"{points:.3f}".replace("-", "−")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paper_assets", "digests"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"bar": _bar, "points": _points, "in_words": in_words}
    return environment.get_template("digest.html.jinja")
