"""`evaluate --replay`: consecutive days as a subscriber sees them, none of their papers twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path

from paper_assets.evaluation.final_lists import newest_judged_day
from paper_assets.evaluation.judged_lists import JudgedLists, papers_or_home, scratch_warehouse
from paper_assets.evaluation.replay import replay_figures, replay_table, shown_papers
from paper_assets.interfaces.cli.arguments import open_warehouse
from paper_assets.interfaces.cli.terminal import print_json, print_table, progress_bar
from paper_assets.interfaces.embedding import remembering_embedder
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.replay import replayed_days
from paper_assets.settings import Settings
from paper_assets.stores.papers import papers_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse


def show_replay(
    judged: JudgedLists,
    papers: Path | None,
    last: date | None,
    mode: str | None,
    days: int,
    top_k: int,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    """Rank the `days` days up to `last` (None: the newest judged paper's), `top_k` papers a day."""
    home = open_warehouse()
    with _days_to_write(papers, home, judged, last, deadline=settings.store_deadline) as (warehouse, day):
        with progress_bar("replaying days") as progress:
            replayed = replayed_days(
                warehouse,
                judged,
                last=day,
                days=days,
                top_k=top_k,
                interest_mode=mode,
                embedder=load_embedder(settings.embedding_model),
                embed=remembering_embedder(settings, home),
                settings=settings,
                progress=progress,
            )
        shown = sorted({paper_id for found in replayed.values() for one in found for paper_id in one.shown})
        titles = {paper.paper_id: paper.title for paper in papers_from_table(papers_by_id(warehouse, shown))}
    figures = [replay_figures(one, replayed[one.name]) for one in judged.profiles]
    if as_json:
        return print_json(
            {
                "set": judged.name,
                "last": f"{day}",
                "days": days,
                "k": top_k,
                "profiles": [
                    {**asdict(found), "share": found.share, "lists": shown_papers(one, replayed[one.name], titles)}
                    for one, found in zip(judged.profiles, figures, strict=True)
                ],
            }
        )
    header, rows = replay_table(figures)
    print_table(f"{judged.name}: {days} days up to {day}, {top_k} papers a day, none twice", header, rows)


@contextmanager
def _days_to_write(
    papers: Path | None, home: Warehouse, judged: JudgedLists, last: date | None, *, deadline: float
) -> Iterator[tuple[Warehouse, date]]:
    """A warehouse to write rankings to, and the last day: the given one, else the newest judged paper's."""
    with papers_or_home(papers, home, deadline=deadline) as warehouse:
        day = last or newest_judged_day(warehouse, judged)[0]
        if papers is not None:
            yield warehouse, day
            return
        stored = papers_from_table(papers_between(warehouse, None, day))
    with scratch_warehouse(stored, deadline=deadline) as copy:
        yield copy, day
