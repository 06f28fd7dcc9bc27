"""Gather what a day's digest is made from and render its pages, without writing or sending anything.

`digests.py` writes the pages.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta

from paper_assets.digests.content import Digest, DigestRows, digest_of, papers_named, without_excluded
from paper_assets.digests.html import Issue, atom_feed, html_page, title_and_body, updated
from paper_assets.digests.markdown import markdown_page
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.changes import changes_since
from paper_assets.settings import Settings
from paper_assets.stores.digest_inputs import Key, inputs_of_digests
from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.harvests import was_fetched
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.profiles import last_good_profile, profile_version
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    latest_ranking_day,
    new_in_window,
    previous_ranking,
    ranking,
)
from paper_assets.stores.rewrite_progress import last_decision
from paper_assets.stores.rewrites import rewrites_of
from paper_assets.stores.warehouse import Warehouse


def gather(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Digest:
    """Build the digest of the profile's day from the stores; see `digest_of`. Raises NotComputed without a ranking."""
    with warehouse.read_together() as opened:
        stored = _stored_day(opened, profile, day)
    return digest_of(stored.rows, config=settings.rewriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a digest is made from, the papers that it names, and the fingerprint of both."""

    rows: DigestRows
    papers: tuple[str, ...]
    inputs: str = ""


def gathered(warehouse: Warehouse, keys: Sequence[Key], *, settings: Settings) -> dict[Key, Gathered | NotComputed]:
    """Return for each profile's day what its digest is made from, in one opening; NotComputed without a ranking."""
    found: dict[Key, Gathered | NotComputed] = {}
    with warehouse.read_together() as opened:
        for key in keys:
            try:
                found[key] = _stored_day(opened, *key)
            except NotComputed as missing:
                found[key] = missing
        stored = {key: each for key, each in found.items() if isinstance(each, Gathered)}
        inputs = inputs_of_digests(opened, {key: each.papers for key, each in stored.items()}, settings=settings)
    return found | {key: replace(each, inputs=inputs[key]) for key, each in stored.items()}


def _stored_day(warehouse: Warehouse, profile: str, day: date) -> Gathered:
    """Return what a digest is made from; digest_inputs.py fingerprints the rows that this reads."""
    ranked, judged = ranking(warehouse, day, profile), candidates(warehouse, day, profile)
    changes = [
        (since, changes_since(warehouse, then, ranked, judged=judged))
        for since, then in _earlier(warehouse, profile, day)
    ]
    moves = [move for _, since in changes for move in since.moves]
    answers, rewrites = retrievals_of(warehouse, day, profile), rewrites_of(warehouse, profile=profile, day=day)
    named = {*ranked.places, *(move.paper_id for move in moves), *papers_named(answers)}
    named |= {each.paper_id for each in rewrites}
    known = papers_from_table(papers_by_id(warehouse, sorted(named)))
    papers, of_profile = {paper.paper_id: paper for paper in known}, last_good_profile(warehouse, profile)
    excludes = of_profile.content.keywords.exclude.hard if of_profile else ()
    answers, rewrites = without_excluded(answers, rewrites, papers=papers, keywords=excludes)
    ranked_for = profile_version(warehouse, profile, ranked.header.get("profile_hash") or "")
    rows = DigestRows(
        ranking=ranked,
        papers=papers,
        candidates=judged.to_pylist(),
        changes=changes,
        answers=answers,
        rewrites=rewrites,
        decided_at=last_decision(warehouse, [item.item for item in rewrites]),
        content=ranked_for.content if ranked_for else None,
        new=new_in_window(warehouse, day, profile),
        fetched=was_fetched(warehouse, day),
    )
    return Gathered(rows=rows, papers=tuple(sorted(named)))


def desk_address(settings: Settings, profile: str, day: date) -> str:
    """Return the URL at which the desk, while running, shows the profile's day."""
    return f"{settings.desk_url}/p/{profile}/{day}"


def pages_of(digest: Digest, settings: Settings) -> dict[str, bytes]:
    """Render the pages, by file ending."""
    desk = desk_address(settings, digest.profile, digest.day)
    return {
        "html": html_page(digest, desk=desk).encode(),
        "md": markdown_page(digest, desk=desk).encode(),
    }


def _earlier(warehouse: Warehouse, profile: str, day: date) -> list[tuple[str, StoredRanking]]:
    """Return the ranking of the previous ranked day, and the one of this day that an edit or new papers replaced."""
    found = []
    before = latest_ranking_day(warehouse, profile, until=day - timedelta(days=1))
    if before is not None:
        found.append((f"since {in_words(before)}", ranking(warehouse, before, profile)))
    with suppress(NotComputed):
        found.append(("since this day was last ranked", previous_ranking(warehouse, day, profile)))
    return found


def feed_of(profile: str, desk: str, pages: Sequence[tuple[date, str]]) -> bytes:
    return atom_feed(profile, [_issue(day, page) for day, page in pages], desk=desk)


def _issue(day: date, page: str) -> Issue:
    title, body = title_and_body(page)
    return Issue(day=day, title=title, body=body, updated=updated(page))
