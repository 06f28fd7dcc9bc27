"""`reading_digests`: one page to read for each day and profile, and a feed for each profile (SPEC 1).

digests/content.py determines the content of a page; this step gathers a day from the stores, writes and checks it.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from markupsafe import escape

from paper_assets.digests.content import Digest, digest_of
from paper_assets.digests.mail import mail_html, mail_text
from paper_assets.digests.markdown import escape_markdown
from paper_assets.errors import NotComputed, StoreError, named_error
from paper_assets.pipeline.deliveries import OutgoingDigest, deliver, undelivered
from paper_assets.pipeline.digest_pages import Gathered, desk_address, feed_of, gather, gathered, pages_of
from paper_assets.pipeline.staleness import DIGESTS, due_days
from paper_assets.pipeline.step import (
    Check,
    Checked,
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
from paper_assets.stores.digest_files import (
    FEED,
    IN_FEED,
    days_with_pages,
    digest_path,
    keep_digest,
    read_page,
    version_of_pages,
)
from paper_assets.stores.digest_inputs import CODE_VERSION, DigestMade, digests_made, keep_digests_made
from paper_assets.stores.rankings import ranking
from paper_assets.stores.warehouse import Key, Warehouse
from paper_assets.text.cleaning import one_line

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
    found = gathered(warehouse, [key], settings=settings)[key]
    if isinstance(found, NotComputed):
        raise found
    written = _write(found, settings=settings)
    keep_digests_made(warehouse, {key: written.made})
    return written


def _write(gathered_day: Gathered, *, settings: Settings) -> Written:
    digest = digest_of(gathered_day.rows, config=settings.rewriting)
    pages = pages_of(digest, settings)
    folder, profile, day = settings.digests_dir, digest.profile, digest.day
    new = keep_digest(
        folder,
        profile,
        day,
        pages,
        feed=partial(feed_of, profile, settings.desk_url),
        latest=IN_FEED,
        deadline=settings.store_deadline,
    )
    return Written(
        digest=digest,
        page=digest_path(folder, profile, day, "html"),
        markdown=pages["md"].decode(),
        made=DigestMade(
            inputs=gathered_day.inputs,
            papers=gathered_day.papers,
            version=version_of_pages(list(pages.values())),
        ),
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


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Write each day's page and the feed, ascending by day; leave files alone if their content is unchanged."""
    written: dict[Partition, Written] = {}
    settings, left = workspace.settings, [(each.of_profile, each.of_day) for each in ascending(partitions)]
    found: dict[Key, Gathered | NotComputed] = {}

    def write(each: Partition) -> bool:
        key = (each.of_profile, each.of_day)
        if key not in found:
            found.clear()
            at = left.index(key)
            try:
                found.update(gathered(workspace.warehouse, left[at : at + _READ_AT_ONCE], settings=settings))
            except StoreError:
                raise
            except Exception:  # of one of them: each alone, so that it stops no other
                found.update(gathered(workspace.warehouse, [key], settings=settings))
        ready = found[key]
        if isinstance(ready, NotComputed):
            raise ready
        page = written[each] = _write(ready, settings=settings)
        return page.new

    new, failures = make_each(partitions, write, progress=workspace.progress)
    made = {(each.of_profile, each.of_day): page.made for each, page in written.items()}
    keep_digests_made(workspace.warehouse, made)
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


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    asked = {(each.of_profile, each.of_day): each for each in partitions}
    return {NAME: {asked[key]: each.version for key, each in digests_made(workspace.warehouse, [*asked]).items()}}


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


def every_listed_paper_is_in_its_page(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """The page and its Markdown show each paper of the stored list."""
    missing = [
        f"{each} {paper_id}"
        for each in partitions
        for paper_id in missing_from_pages(
            workspace.warehouse, each.of_profile, each.of_day, settings=workspace.settings
        )
    ]
    return Checked(passed=not missing, counted={"partitions": len(partitions), "missing": missing[:20]})


def digests_were_sent(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every delivery configured in delivery.json was accepted by the receiving server."""
    missing = undelivered(workspace, (each.of_profile for each in partitions))
    return Checked(
        passed=not missing,
        counted={
            "failed": [str(each) for each in missing if not each.unknown],
            "unknown": [str(each) for each in missing if each.unknown],
        },
    )


STEP = Step(
    tracked=DIGESTS,
    products=(
        Product(
            name=NAME,
            description="A page to read: the ranking with its reasons, what changed, contrast, evidence, rewrites.",
            kinds=frozenset({"html", "markdown"}),
            report=_report,
            deps=("scored_rankings", "balanced_retrievals", "paper_rewrites"),
            checks=(
                Check(every_listed_paper_is_in_its_page, serious=True),
                Check(digests_were_sent, serious=True),
            ),
        ),
    ),
    group="reading",
    code_version=CODE_VERSION,
    make=_make,
    reported=_reported,
    reports_only_read=True,
)
