"""Gather what a day's digest is made from and render its pages, without writing or sending anything.

`digests.py` writes the pages.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date

from paper_assets.digests.content import Digest, DigestRows, digest_of, papers_named, without_excluded
from paper_assets.digests.html import Issue, atom_feed, html_page, title_and_body, updated
from paper_assets.digests.markdown import markdown_page
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed
from paper_assets.paper import Paper, papers_from_table
from paper_assets.pipeline.changes import changes_since, days_before
from paper_assets.settings import Settings
from paper_assets.stores.digest_inputs import inputs_of_digests
from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.harvests import was_fetched
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.profiles import last_good_profile, profile_version
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    new_in_window,
    previous_ranking,
    ranking,
)
from paper_assets.stores.rewrite_progress import last_decision
from paper_assets.stores.rewrites import rewrites_of
from paper_assets.stores.warehouse import Key, Warehouse


def gather(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Digest:
    """Build the digest of the profile's day from the stores; see `digest_of`. Raises NotComputed without a ranking."""
    with warehouse.read_together() as opened:
        [stored] = _stored_days(opened, [(profile, day)]).values()
    if isinstance(stored, NotComputed):
        raise stored
    return digest_of(stored.rows, config=settings.rewriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a digest is made from, the papers that it names, and the fingerprint of both."""

    rows: DigestRows
    papers: tuple[str, ...]
    inputs: str = ""


def gathered(warehouse: Warehouse, keys: Sequence[Key], *, settings: Settings) -> dict[Key, Gathered | NotComputed]:
    """Return for each profile's day what its digest is made from, in one opening; NotComputed without a ranking."""
    with warehouse.read_together(keys) as opened:
        found = _stored_days(opened, keys)
        stored = {key: each for key, each in found.items() if isinstance(each, Gathered)}
        inputs = inputs_of_digests(opened, {key: each.papers for key, each in stored.items()}, settings=settings)
    return found | {key: replace(each, inputs=inputs[key]) for key, each in stored.items()}


def _stored_days(warehouse: Warehouse, keys: Sequence[Key]) -> dict[Key, Gathered | NotComputed]:
    """Return what digests are made from; digest_inputs.py fingerprints the rows that this reads."""
    found: dict[Key, DigestRows | NotComputed] = {}
    with warehouse.read_together([*keys, *days_before(warehouse, keys)]) as opened:
        for key in keys:
            try:
                found[key] = _stored_day(opened, *key)
            except NotComputed as missing:
                found[key] = missing
        named = {key: _papers_named(rows) for key, rows in found.items() if isinstance(rows, DigestRows)}
        papers = papers_from_table(papers_by_id(opened, sorted(set[str]().union(*named.values()))))
        known = {paper.paper_id: paper for paper in papers}
        return {
            key: rows if isinstance(rows, NotComputed) else _with_papers(opened, rows, sorted(named[key]), known)
            for key, rows in found.items()
        }


def _stored_day(warehouse: Warehouse, profile: str, day: date) -> DigestRows:
    ranked, judged = ranking(warehouse, day, profile), candidates(warehouse, day, profile)
    ranked_for = profile_version(warehouse, profile, ranked.header.get("profile_hash") or "")
    return DigestRows(
        ranking=ranked,
        papers={},
        candidates=judged.to_pylist(),
        changes=[
            (since, changes_since(warehouse, then, ranked, judged=judged))
            for since, then in _earlier(warehouse, profile, day)
        ],
        answers=retrievals_of(warehouse, day, profile),
        rewrites=rewrites_of(warehouse, profile=profile, day=day),
        content=ranked_for.content if ranked_for else None,
        new=new_in_window(warehouse, day, profile),
        fetched=was_fetched(warehouse, day),
    )


def _papers_named(rows: DigestRows) -> set[str]:
    moves = {move.paper_id for _, since in rows.changes for move in since.moves}
    return {*rows.ranking.places, *moves, *papers_named(rows.answers), *(each.paper_id for each in rows.rewrites)}


def _with_papers(warehouse: Warehouse, rows: DigestRows, named: Sequence[str], known: Mapping[str, Paper]) -> Gathered:
    papers = {paper_id: known[paper_id] for paper_id in named if paper_id in known}
    of_profile = last_good_profile(warehouse, rows.ranking.profile)
    excludes = of_profile.content.keywords.exclude.hard if of_profile else ()
    answers, rewrites = without_excluded(rows.answers, rows.rewrites, papers=papers, keywords=excludes)
    decided_at = last_decision(warehouse, [item.item for item in rewrites])
    complete = replace(rows, papers=papers, answers=answers, rewrites=rewrites, decided_at=decided_at)
    return Gathered(rows=complete, papers=tuple(named))


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
    found = [
        (f"since {in_words(before)}", ranking(warehouse, before, profile))
        for _, before in days_before(warehouse, [(profile, day)])
    ]
    with suppress(NotComputed):
        found.append(("since this day was last ranked", previous_ranking(warehouse, day, profile)))
    return found


def feed_of(profile: str, desk: str, pages: Sequence[tuple[date, str]]) -> bytes:
    return atom_feed(profile, [_issue(day, page) for day, page in pages], desk=desk)


def _issue(day: date, page: str) -> Issue:
    title, body = title_and_body(page)
    return Issue(day=day, title=title, body=body, updated=updated(page))
