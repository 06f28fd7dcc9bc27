"""`reading_digests`: one page to read for each day and profile, and a feed for each profile (SPEC 1).

digests/content.py determines the content of a page; this step gathers a day from the stores, writes and checks it.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from markupsafe import escape

from paper_assets.digests.content import Digest, Stored, digest_of, papers_named, without_excluded
from paper_assets.digests.html import Issue, atom_feed, html_page, title_and_body, updated
from paper_assets.digests.mail import mail_html, mail_text
from paper_assets.digests.markdown import escape_markdown, markdown_page
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import NotComputed, StoreError, named_error
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.changes import changes_since
from paper_assets.pipeline.deliveries import OutgoingDigest, deliver, undelivered
from paper_assets.pipeline.staleness import (
    DIGESTS,
    due_days,
    settings_of_pages,
    version_of_pages,
    versions_of_pages,
)
from paper_assets.pipeline.step import (
    Check,
    Checked,
    Grid,
    Link,
    Made,
    Markdown,
    Partition,
    Product,
    Report,
    Step,
    ascending,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.settings import Settings
from paper_assets.stores.digests import (
    FEED,
    IN_FEED,
    DigestInputs,
    DigestMade,
    Key,
    days_with_pages,
    digest_path,
    feed_is_current,
    keep_digest,
    papers_of_digests,
    read_page,
    remember_digests,
    rows_of_digests,
)
from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.profiles import last_good_profile, profile_version
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    latest_ranking_day,
    previous_ranking,
    ranking,
)
from paper_assets.stores.rewrite_progress import last_decision
from paper_assets.stores.rewrites import rewrites_of
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line

CODE_VERSION = "15"  # raise it when the pages change, so that the graph shows which days were made before
_PREVIEW = 6_000  # characters of the page in the event log; a list of five fits
_READ_AT_ONCE = 20  # digests whose rows are in memory together, half a megabyte each
# What ratings teach stays out of the event log, where it could not be erased.
_LEARNED = re.compile(r" ?Your ratings moved that by .*? of the score(?:: .*?)?\.(?=\s|$)", re.DOTALL)
NAME = DIGESTS.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A day's digest and the path of its page, with what it was made from."""

    digest: Digest
    page: Path
    markdown: str
    made: DigestMade
    new: bool

    @property
    def version(self) -> str:
        """Return the fingerprint of the pages."""
        return self.made.version


def write_digest(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Written:
    """Write the day's pages and the profile's feed from the stores; leave files alone if their content is unchanged.

    Raises NotComputed if there is no ranking, StoreBusy, StoreUnwritable.
    """
    key = (profile, day)
    found = _gathered(warehouse, [key], settings=settings)[key]
    if isinstance(found, NotComputed):
        raise found
    return _write(*found, settings=settings)


def _write(stored: Stored, inputs: DigestInputs, *, settings: Settings) -> Written:
    digest = digest_of(stored, config=settings.rewriting)
    pages = _pages(digest, settings)
    folder, profile, day = settings.digests_dir, digest.profile, digest.day
    new = keep_digest(
        folder,
        profile,
        day,
        pages,
        feed=partial(_feed, profile, settings.desk_url),
        latest=IN_FEED,
        deadline=settings.store_deadline,
    )
    return Written(
        digest=digest,
        page=digest_path(folder, profile, day, "html"),
        markdown=pages["md"].decode(),
        made=DigestMade(inputs=inputs, version=version_of_pages(list(pages.values()))),
        new=new,
    )


def rewrite_digests(warehouse: Warehouse, profile: str, *, settings: Settings) -> None:
    """Write the pages of all days of a profile again, so that nothing about erased ratings remains.

    Raises StoreBusy, StoreUnwritable.
    """
    for day in days_with_pages(settings.digests_dir / profile):
        with suppress(NotComputed):
            write_digest(warehouse, profile, day, settings=settings)


def missing_from_pages(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> list[str]:
    """Return the papers of the stored list that the day's files do not show; all of them if a file is missing."""
    rows = ranking(warehouse, day, profile).rows
    shown = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    page, markdown = (
        (read_page(settings.digests_dir, profile, day, ending) or b"").decode(errors="replace")
        for ending in ("html", "md")
    )
    return [
        paper_id
        for paper_id in shown
        if f'id="paper-{escape(one_line(paper_id))}"' not in page or escape_markdown(one_line(paper_id)) not in markdown
    ]


def gather(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> Digest:
    """Build the digest of the profile's day from the stores; see `digest_of`. Raises NotComputed without a ranking."""
    with warehouse.read_together() as opened:
        stored, _ = _stored_day(opened, profile, day)
    return digest_of(stored, config=settings.rewriting)


def _gathered(
    warehouse: Warehouse, keys: Sequence[Key], *, settings: Settings
) -> dict[Key, tuple[Stored, DigestInputs] | NotComputed]:
    """Return for each profile's day what its digest is made from, in one opening; NotComputed without a ranking."""
    days: dict[Key, tuple[Stored, tuple[str, ...]]] = {}
    found: dict[Key, tuple[Stored, DigestInputs] | NotComputed] = {}
    with warehouse.read_together() as opened:
        for key in keys:
            try:
                days[key] = _stored_day(opened, *key)
            except NotComputed as missing:
                found[key] = missing
        if days:
            rows = rows_of_digests(opened, [*days], settings=settings_of_pages(settings))
            papers = papers_of_digests(opened, {key: named for key, (_, named) in days.items()})
    for key, (stored, named) in days.items():
        found[key] = stored, DigestInputs(rows=rows[key], named=named, papers=papers[key])
    return found


def _stored_day(warehouse: Warehouse, profile: str, day: date) -> tuple[Stored, tuple[str, ...]]:
    """Return what a digest is made from, and the ids of the papers that it names, stored or not."""
    ranked, judged = ranking(warehouse, day, profile), candidates(warehouse, day, profile)
    changes = [
        (since, changes_since(warehouse, then, ranked, judged=judged))
        for since, then in _earlier(warehouse, profile, day)
    ]
    moves = [move for _, since in changes for move in since.moves]
    shown = [row["paper_id"] for row in (*ranked.listed, *ranked.maybe)]
    answers, rewrites = retrievals_of(warehouse, day, profile), rewrites_of(warehouse, profile=profile, day=day)
    named = {*shown, *(move.paper_id for move in moves), *papers_named(answers), *(each.paper_id for each in rewrites)}
    known = papers_from_table(papers_by_id(warehouse, sorted(named)))
    papers, of_profile = {paper.paper_id: paper for paper in known}, last_good_profile(warehouse, profile)
    excludes = of_profile.content.keywords.exclude.hard if of_profile else ()
    answers, rewrites = without_excluded(answers, rewrites, papers=papers, keywords=excludes)
    ranked_for = profile_version(warehouse, profile, ranked.header.get("profile_hash") or "")
    stored = Stored(
        ranking=ranked,
        papers=papers,
        candidates=judged.to_pylist(),
        changes=changes,
        answers=answers,
        rewrites=rewrites,
        decided_at=last_decision(warehouse, [item.item for item in rewrites]),
        content=ranked_for.content if ranked_for else None,
    )
    return stored, tuple(sorted(named))


def desk_address(settings: Settings, profile: str, day: date) -> str:
    """Return the URL at which the desk, while running, shows the profile's day."""
    return f"{settings.desk_url}/p/{profile}/{day}"


def _pages(digest: Digest, settings: Settings) -> dict[str, bytes]:
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


def feed_equals_pages(profile: str, *, settings: Settings) -> bool:
    """Make the profile's feed from its pages and compare it with the stored one."""
    feed = partial(_feed, profile, settings.desk_url)
    return feed_is_current(settings.digests_dir, profile, feed=feed, latest=IN_FEED)


def _feed(profile: str, desk: str, pages: Sequence[tuple[date, str]]) -> bytes:
    return atom_feed(profile, [_issue(day, page) for day, page in pages], desk=desk)


def _issue(day: date, page: str) -> Issue:
    title, body = title_and_body(page)
    return Issue(day=day, title=title, body=body, updated=updated(page))


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Write each day's page and the feed, ascending by day; leave files alone if their content is unchanged."""
    written: dict[Partition, Written] = {}
    settings, left = workspace.settings, [(each.of_profile, each.of_day) for each in ascending(partitions)]
    found: dict[Key, tuple[Stored, DigestInputs] | NotComputed] = {}

    def write(each: Partition) -> bool:
        key = (each.of_profile, each.of_day)
        if key not in found:
            found.clear()
            at = left.index(key)
            try:
                found.update(_gathered(workspace.warehouse, left[at : at + _READ_AT_ONCE], settings=settings))
            except StoreError:
                raise
            except Exception:  # of one of them: each alone, so that it stops no other
                found.update(_gathered(workspace.warehouse, [key], settings=settings))
        ready = found[key]
        if isinstance(ready, NotComputed):
            raise ready
        page = written[each] = _write(*ready, settings=settings)
        workspace.log.info(f"{each}: {'written' if page.new else 'unchanged'}")
        return page.new

    new, failures = make_each(partitions, write, progress=workspace.progress)
    made = {(each.of_profile, each.of_day): page.made for each, page in written.items()}
    remember_digests(workspace.settings.warehouse_path, made)
    for profile in dict.fromkeys(each.of_profile for each in new):
        _send(workspace, profile)
    return Made(new=new, failures=failures, details=written)


def outgoing_digest(warehouse: Warehouse, profile: str, day: date, *, settings: Settings) -> OutgoingDigest:
    """Render the day's digest for sending. Raises NotComputed if there is no ranking."""
    digest = gather(warehouse, profile, day, settings=settings)
    desk = desk_address(settings, profile, day)
    return OutgoingDigest(
        digest=digest, html=mail_html(digest, desk=desk), text=mail_text(digest, desk=desk), desk=desk
    )


def _send(workspace: Workspace, profile: str) -> None:
    """Send what is due for the profile. The digest succeeds even if that fails; `digests_were_sent` reports it."""
    try:
        for day in sorted(due_days(workspace, profile)):
            found = outgoing_digest(workspace.warehouse, profile, day, settings=workspace.settings)
            for each in deliver(workspace, found):
                workspace.log.info(f"{profile} {day}, {each.channel}: {each.state} {each.reason or ''}")
    except StoreError:
        raise
    except Exception as error:  # of one profile's delivery; the others are sent
        workspace.log.error(f"{named_error(error, f'sending the digest of {profile}')}")


def digests_now(warehouse: Warehouse, keys: Sequence[Key], *, settings: Settings) -> dict[Key, DigestMade]:
    """Make the pages of profiles' days and return their versions; nothing for a day without a ranking."""
    found = {}
    for key, ready in _gathered(warehouse, keys, settings=settings).items():
        if not isinstance(ready, NotComputed):
            stored, inputs = ready
            pages = _pages(digest_of(stored, config=settings.rewriting), settings)
            found[key] = DigestMade(inputs=inputs, version=version_of_pages(list(pages.values())))
    return found


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    return {NAME: versions_of_pages(workspace, partitions)}


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report the paths of the page, its preview, and the numbers of its parts."""
    written: Written = made.details[partition]
    digest = written.digest
    versions = [version for entry in digest.entries for version in entry.versions]
    versions += [version for paper in digest.also_rewritten for version in paper.versions]
    preview = _LEARNED.sub("", written.markdown)
    if len(preview) > _PREVIEW:
        preview = preview[:_PREVIEW].rpartition("\n")[0] + "\n\n…"
    return Report(
        written.version,
        {
            "dagster/row_count": len(digest.entries),
            "page": written.page,
            "markdown": written.page.with_suffix(".md"),
            "feed": written.page.with_name(FEED),
            "desk": Link(desk_address(workspace.settings, partition.of_profile, partition.of_day)),
            "preview": Markdown(preview),
            "questions": len(digest.evidence),
            "sides_with_a_gap": sum(bool(side.gap) for each in digest.evidence for side in each.sides),
            "rewrites": len(versions),
            "rewrites_without_text": sum(not version.paragraphs for version in versions),
            "warnings": len(digest.warnings),
        },
    )


def _every_listed_paper_is_in_its_page(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    missing = [
        f"{each} {paper_id}"
        for each in partitions
        for paper_id in missing_from_pages(
            workspace.warehouse, each.of_profile, each.of_day, settings=workspace.settings
        )
    ]
    return Checked(passed=not missing, counted={"partitions": len(partitions), "missing": missing[:20]})


def _digests_were_sent(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    missing = undelivered(workspace, (each.of_profile for each in partitions))
    return Checked(
        passed=not missing,
        counted={
            "failed": [str(each) for each in missing if not each.unknown],
            "unknown": [str(each) for each in missing if each.unknown],
        },
    )


STEP = Step(
    name=NAME,
    products=(
        Product(
            name=NAME,
            description="A page to read: the ranking with its reasons, what changed, contrast, evidence, rewrites.",
            kinds=frozenset({"html", "markdown"}),
            report=_report,
            deps=("scored_rankings", "balanced_retrievals", "paper_rewrites"),
            checks=(
                Check(
                    name="every_listed_paper_is_in_its_page",
                    description="The page and its Markdown show each paper of the stored list.",
                    holds=_every_listed_paper_is_in_its_page,
                    serious=True,
                ),
                Check(
                    name="digests_were_sent",
                    holds=_digests_were_sent,
                    description="Every delivery configured in delivery.json was accepted by the receiving server.",
                    serious=True,
                ),
            ),
        ),
    ),
    grid=Grid.PROFILE_DAY,
    group="reading",
    code_version=CODE_VERSION,
    make=_make,
    inputs=DIGESTS.inputs,
    stored=DIGESTS.stored,
    reported=_reported,
    reports_only_read=True,
    trigger="new_reading",
)
