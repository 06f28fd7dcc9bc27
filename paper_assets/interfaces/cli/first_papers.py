"""Fetch the papers of the last days, then embed and rank them, as runs of the same Dagster instance as the UI.

Importing this imports Dagster. How far it is, is kept for the page too (interfaces/background.py).
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from paper_assets.defs import runs
from paper_assets.defs.automation import ANNOUNCED_AFTER, REPAIRED_DAYS
from paper_assets.errors import InvalidInput, InvalidProfile, PaperAssetsError
from paper_assets.interfaces import background
from paper_assets.interfaces.background import Job
from paper_assets.interfaces.cli.graph_run import Lists, bring_up_to_date, open_desk
from paper_assets.interfaces.cli.run import end, show_ranking
from paper_assets.interfaces.cli.stamp import stamp_key
from paper_assets.interfaces.cli.terminal import counted, read_settings, say
from paper_assets.pipeline import papers
from paper_assets.pipeline.profiles import find_profiles, followed_categories
from paper_assets.pipeline.step import Partition
from paper_assets.settings import Settings
from paper_assets.stores.locks import this_process
from paper_assets.stores.papers import paper_counts


def fetch_and_rank(days: int, only: str | None) -> None:
    """Fetch the last `days` complete days, newest first, and rank. A day that was fetched today is not fetched again.

    On a later date it is, as long as arXiv may announce further papers of it (`unfinished_days`). Raises InvalidProfile
    without a profile, and the source's error after ranking what could be fetched.
    """
    settings = read_settings()
    profiles = find_profiles(settings.profiles_dir) if settings.profiles_dir.is_dir() else None
    if profiles is None or not profiles.readable:
        raise InvalidProfile("there is no profile yet; make one with `paper-assets profile new`")
    if only is not None and only not in profiles.readable:
        raise InvalidProfile(profiles.faults.get(only, f"there is no profile {only[:60]!r} in {settings.profiles_dir}"))
    today = datetime.now(UTC).date()
    asked = [day for day in last_days(days, today) if day >= settings.first_day]
    if not asked:
        raise InvalidInput(f"no day to fetch: PAPER_ASSETS_FIRST_DAY is {settings.first_day}")
    before, this = background.last_job(settings.home), str(this_process())
    if before and before.running and before.process != this:
        raise InvalidInput(f"{before.title} is still running; wait for its end, or stop it on the page")
    categories = followed_categories(settings)
    known = before if before and before.categories == categories else Job()
    again = set(unfinished_days(asked, known.fetched, today))
    counts = {f"{day}": known.counts[f"{day}"] for day in asked if day not in again and f"{day}" in known.counts}
    title = before.title if before and before.process == this else f"paper-assets start --days {days}"
    job = Job(
        arguments=tuple(sys.argv[1:]),
        title=title,
        profile=only,
        total=len(asked),
        counts=counts,
        fetched={day: known.fetched[day] for day in counts},
        categories=categories,
        process=this,
    )
    failure = _fetched(settings, job, asked, today)
    job = background.last_job(settings.home) or job
    background.write_job(settings.home, replace(job, stage="embedding and ranking the papers", done=len(job.counts)))
    say("Embedding and ranking the papers …")

    def show(shown: Lists) -> None:
        for each in shown:
            show_ranking(each, with_why=False)

    failures = bring_up_to_date(only, None, None, show=show, key=stamp_key(only, None, None), others=False)
    end([*([failure] if failure else []), *failures])
    background.write_job(settings.home, replace(job, state="done", stage="done", done=len(job.counts), process=""))


def _fetched(settings: Settings, job: Job, asked: list[date], today: date) -> PaperAssetsError | None:
    """Fetch the days one by one; return the failure that ended it early. Raises it if nothing is stored at all."""
    with open_desk() as (workspace, instance):
        stored = paper_counts(workspace.warehouse)  # of a day that was deleted meanwhile there are fewer
        counts = {day: count for day, count in job.counts.items() if stored.get(date.fromisoformat(day), 0) >= count}
        for number, day in enumerate(asked, start=1):
            if f"{day}" in counts:
                continue
            stage = f"fetching {day:%A} {day.day} {day:%B}: day {number} of {len(asked)}"
            background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
            total = counted(sum(counts.values()), "paper")
            say(
                f"Day {number} of {len(asked)}, {day}: {total} so far; "
                f"{settings.request_interval:g} s between two requests, as arXiv asks"
            )
            try:
                runs.fetch_days(instance, workspace, papers.STEP, [Partition(day)])
            except PaperAssetsError as fault:
                background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
                if not paper_counts(workspace.warehouse):
                    raise
                return PaperAssetsError(
                    f"{fault}; {counted(len(counts), 'day')} of {len(asked)} fetched, the same command continues"
                )
            counts[f"{day}"] = paper_counts(workspace.warehouse).get(day, 0)
            job = replace(job, fetched={**job.fetched, f"{day}": f"{today}"})
            background.write_job(settings.home, replace(job, stage=stage, done=len(counts), counts=counts))
    return None


def last_days(days: int, today: date) -> list[date]:
    """Return the newest days whose papers arXiv has announced, newest first, so that a stop leaves the most useful."""
    newest = today - ANNOUNCED_AFTER
    return [newest - timedelta(days=back) for back in range(days)]


def unfinished_days(asked: list[date], fetched: Mapping[str, str], today: date) -> list[date]:
    """Return the days to fetch: those never fetched, and those fetched before today while they could still grow.

    `fetched`: by day the date on which it was fetched last. arXiv announces some papers late; as in the weekly repair,
    a day is complete `REPAIRED_DAYS` days after the schedule fetches it.
    """
    complete_after = ANNOUNCED_AFTER + timedelta(days=REPAIRED_DAYS)

    def is_finished(day: date) -> bool:
        last = fetched.get(f"{day}")
        return last is not None and (last == f"{today}" or date.fromisoformat(last) - day >= complete_after)

    return [day for day in asked if not is_finished(day)]
