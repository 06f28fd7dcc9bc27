"""One profile's digest of a day from the stores and to its files: the only module of this room with I/O."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

from markupsafe import escape

from paper_assets.digests.atom import Issue, atom_feed
from paper_assets.digests.content import Digest, Stored, digest_of
from paper_assets.digests.html import html_page, title_and_body, updated
from paper_assets.digests.markdown import escape_markdown, markdown_page
from paper_assets.digests.plain_text import clean, in_words
from paper_assets.errors import NotComputed
from paper_assets.paper import papers_from_table
from paper_assets.ranking.changes import changes_between
from paper_assets.settings import Settings
from paper_assets.stores.digest_files import digest_path, keep_digest, read_page
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import Ranking, candidates, latest_ranking_day, previous_ranking, ranking
from paper_assets.stores.retrievals import retrievals_of
from paper_assets.stores.rewrites import last_decision, rewrites_of
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "2"  # raise it when the pages change, so that the graph shows which days were made before

_IN_FEED = 30  # digests


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A day's digest and where it lies. `version` changes only with what the pages say."""

    digest: Digest
    page: Path
    markdown: str
    version: str
    new: bool


def write_digest(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Written:
    """Make the day's pages and the profile's feed from what is stored. What says the same does not touch its file.

    Raises NotComputed if there is no ranking, StoreBusy, StoreUnwritable.
    """
    digest = gather(warehouse, profile, day, settings=settings)
    pages = _pages(digest)
    folder = digests_folder(settings)
    new = keep_digest(
        folder,
        profile,
        day,
        pages,
        feed=lambda kept: atom_feed(profile, [_issue(each, content) for each, content in kept]),
        latest=_IN_FEED,
        deadline=settings.store_deadline,
    )
    return Written(
        digest=digest,
        page=digest_path(folder, profile, day, "html"),
        markdown=pages["md"].decode(),
        version=sha256(b"\0".join(pages.values())).hexdigest()[:32],
        new=new,
    )


def is_current(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> bool:
    """Whether the day's pages lie there and say what is stored. Raises NotComputed if there is no ranking."""
    folder = digests_folder(settings)
    return all(
        read_page(folder, profile, day, ending) == content
        for ending, content in _pages(gather(warehouse, profile, day, settings=settings)).items()
    )


def digests_folder(settings: Settings) -> Path:
    return settings.output_dir / "digests"


def missing_from_pages(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> list[str]:
    """Papers of the stored list that the day's files do not show, or all of them where a file is not there."""
    rows = ranking(warehouse, day, profile).rows
    shown = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    page, markdown = (
        (read_page(digests_folder(settings), profile, day, ending) or b"").decode(errors="replace")
        for ending in ("html", "md")
    )
    return [
        paper_id
        for paper_id in shown
        if f'id="paper-{escape(clean(paper_id))}"' not in page or escape_markdown(clean(paper_id)) not in markdown
    ]


def gather(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Digest:
    """What is stored for the profile's day, as a digest. Raises NotComputed if there is no ranking."""
    ranked, judged = ranking(warehouse, day, profile), candidates(warehouse, day, profile).to_pylist()
    removed = {row["paper_id"]: row["reason"] for row in judged if row["reason"]}
    changes = [
        (since, changes_between(then.rows, ranked.rows, headers=(then.header, ranked.header), removed=removed))
        for since, then in _earlier(warehouse, profile, day)
    ]
    moves = [move for _, found in changes for move in (*found.entered, *found.left, *found.moved)]
    shown = ranked.rows.filter(ranked.rows.column("shown")).column("paper_id").to_pylist()
    known = papers_from_table(papers_by_id(warehouse, sorted({*shown, *(move.paper_id for move in moves)})))
    rewrites = rewrites_of(warehouse, profile=profile, day=day)
    return digest_of(
        Stored(
            ranking=ranked,
            papers={paper.paper_id: paper for paper in known},
            candidates=judged,
            changes=changes,
            answers=retrievals_of(warehouse, day, profile),
            rewrites=rewrites,
            decided_at=last_decision(warehouse, [item.item for item in rewrites]),
        ),
        numbers=settings.rewriting,
    )


def _pages(digest: Digest) -> dict[str, bytes]:
    """The pages by their ending."""
    return {"html": html_page(digest).encode(), "md": markdown_page(digest).encode()}


def _earlier(warehouse: Warehouse, profile: str, day: date) -> list[tuple[str, Ranking]]:
    """The ranking of the ranked day before, and the one of this very day that an edit or new papers have replaced."""
    found = []
    before = latest_ranking_day(warehouse, profile, until=day - timedelta(days=1))
    if before is not None:
        found.append((f"since {in_words(before)}", ranking(warehouse, before, profile)))
    with suppress(NotComputed):
        found.append(("since this day was last ranked", previous_ranking(warehouse, day, profile)))
    return found


def _issue(day: date, page: str) -> Issue:
    title, body = title_and_body(page)
    return Issue(day=day, title=title, body=body, updated=updated(page))
