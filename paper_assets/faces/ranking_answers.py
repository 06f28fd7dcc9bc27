"""What is told of stored rankings, as plain values: the command line and the MCP server say the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from paper_assets.errors import NotComputed

if TYPE_CHECKING:
    from paper_assets.ranking.changes import Changes
    from paper_assets.ranking.gatekeeper import Embed
    from paper_assets.settings import Settings
    from paper_assets.stores.warehouse import Warehouse

_GONE: Mapping[str, Any] = {"title": "(no longer stored)", "authors": []}  # ranked once, then removed from the papers


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What changed in a profile's list of a day, with the titles of the papers concerned."""

    day: date
    changes: "Changes"
    titles: Mapping[str, str]


def newest_ranking(warehouse: "Warehouse", profile: str) -> date:
    """The day of the profile's newest ranking. Raises NotComputed."""
    from paper_assets.stores.rankings import latest_ranking_day

    day = latest_ranking_day(warehouse, profile)
    if day is None:
        raise NotComputed(f"profile {profile!r} has no ranking yet; run `paper-assets run --profile {profile}` first")
    return day


def shown_ranking(warehouse: "Warehouse", profile: str, day: date) -> dict[str, Any]:
    """The top K of a stored ranking with titles and the why; a paper removed since then has neither title nor authors.

    Raises NotComputed.
    """
    from paper_assets.ranking.explain import as_sum, why
    from paper_assets.stores.papers import papers_by_id
    from paper_assets.stores.rankings import ranking

    stored = ranking(warehouse, day, profile)
    rows = stored.rows.filter(stored.rows.column("shown")).to_pylist()
    papers = {row["paper_id"]: row for row in papers_by_id(warehouse, [row["paper_id"] for row in rows]).to_pylist()}
    return {
        "profile": profile,
        "day": f"{day}",
        "scored": stored.rows.num_rows,
        "warnings": stored.header["warnings"],
        "file": stored.header["output_path"],
        "papers": [
            {
                "rank": row["rank"],
                "paper_id": row["paper_id"],
                **{name: papers.get(row["paper_id"], _GONE)[name] for name in ("title", "authors")},
                "score": row["final"],
                "tags": row["tags"],
                "sum": as_sum(row, stored.header["weights"]),
                "why": why(row, stored.header, scored=stored.rows.num_rows, cutoff=None),
            }
            for row in rows
        ],
    }


def explained_rank(warehouse: "Warehouse", profile: str, paper_id: str, *, day: date | None = None) -> dict[str, Any]:
    """Why a paper stands where it stands, or why it was removed. Raises InvalidArxivId, NotComputed, PaperNotFound."""
    from paper_assets.paper import split_arxiv_id
    from paper_assets.ranking.explain import cutoff, why, why_removed
    from paper_assets.stores.rankings import ranked_paper, ranking

    standing = ranked_paper(warehouse, profile, split_arxiv_id(paper_id)[0], day=day)
    if standing.ranked is None:
        sentences = [why_removed((standing.candidate or {})["reason"])]
    else:
        rows = ranking(warehouse, standing.day, profile).rows
        shown = rows.filter(rows.column("shown"))
        full = shown.num_rows >= standing.header["top_k"]
        sentences = why(
            standing.ranked,
            standing.header,
            scored=rows.num_rows,
            cutoff=cutoff(shown.to_pylist(), standing.header) if full else None,
        )
    return {
        "day": f"{standing.day}",
        "profile": profile,
        "paper_id": paper_id,
        "why": sentences,
        "score": standing.ranked,
        "candidate": standing.candidate,
    }


def told_changes(
    warehouse: "Warehouse", profile: str, *, day: date | None = None, before: date | None = None, edit: bool = False
) -> Told:
    """What changed in the profile's list of `day` (None: the newest) since `before` or since the last edit.

    Raises NotComputed.
    """
    from paper_assets.ranking.daily import changes_of
    from paper_assets.stores.papers import papers_by_id

    last = day or newest_ranking(warehouse, profile)
    changes = changes_of(warehouse, profile, last, before=before, edit=edit)
    moves = (*changes.entered, *changes.left, *changes.moved)
    papers = papers_by_id(warehouse, [move.paper_id for move in moves]).to_pylist()
    return Told(day=last, changes=changes, titles={paper["paper_id"]: paper["title"] for paper in papers})


def ranked_now(
    records: Any,
    *,
    settings: "Settings",
    warehouse: "Warehouse",
    environ: Mapping[str, str],
    embed: "Embed",
    now: datetime,
    **options: Any,
) -> dict[str, Any]:
    """`rank_and_filter_papers` on this desk: its warehouse, its embedder, and the language model of `environ`."""
    from paper_assets.ranking.gatekeeper import rank_and_filter_papers
    from paper_assets.ranking.llm_check import second_look
    from paper_assets.stores.llm_answers import keep_answers, known_answers
    from paper_assets.stores.papers import papers_by_id

    return rank_and_filter_papers(
        records,
        settings=settings,
        now=now,
        embed=embed,
        find_papers=lambda ids: papers_by_id(warehouse, ids),
        second_look=second_look(
            environ,
            known=lambda keys: known_answers(warehouse, keys),
            keep=lambda verdicts, model: keep_answers(warehouse, verdicts, model=model),
        ),
        **options,
    )
