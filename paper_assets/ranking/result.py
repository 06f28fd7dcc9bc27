"""Build the result of a ranking as JSON values (SPEC G15)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from paper_assets.paper import Paper, paper_to_mapping
from paper_assets.profile import Profile
from paper_assets.ranking.levels import level_of_row
from paper_assets.ranking.rank import Ranking
from paper_assets.ranking.tags import removing_tag
from paper_assets.sources.pdf_files import local_pdfs
from paper_assets.weights import DIMENSIONS

_SCORED_PHASE = 3  # of a paper that is removed once its relevance is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The reader for whom papers are ranked.

    Attributes:
        profile: None means that only recency and practicality count.
        profile_used: the name or path that the caller gave for the profile; it is repeated in the summary.
        read_ids: papers that are removed as already read.
        pdf_dir: folder with the PDF files `pdf_names`.
    """

    profile: Profile | None = None
    profile_used: str | None = None
    read_ids: frozenset[str] = frozenset()
    pdf_dir: Path | None = None
    pdf_names: tuple[str, ...] = ()


def ranking_result(
    ranking: Ranking,
    reader: Reader,
    *,
    papers: Mapping[str, Paper],
    candidates: pa.Table,
    now: datetime,
    originals: Mapping[str, Mapping[str, Any]] | None = None,
    input_count: int | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the result of a ranking; `output_path` is None until the result is saved.

    `papers` contains at least the shown papers by id, `candidates` the rows of `filter_papers`. `originals` are the
    records as the caller gave them, by id; without them `original_data` is the stored paper. Scores are not rounded:
    `final` can be recomputed from `breakdown`, `weights`, bonus and penalties to the last bit.
    """
    header = ranking.header
    shown = ranking.shown.to_pylist()
    removed = candidates.filter(candidates.column("reason").is_valid()).to_pylist()
    titles = dict(zip(candidates.column("paper_id").to_pylist(), candidates.column("title").to_pylist(), strict=True))
    avoided = [
        _filtered_paper({"paper_id": paper_id, "title": titles.get(paper_id), "reason": reason, "phase": _SCORED_PHASE})
        for paper_id, tags in zip(
            *(ranking.rows.column(name).to_pylist() for name in ("paper_id", "tags")), strict=True
        )
        if (reason := removing_tag(tags))
    ]
    files = local_pdfs([row["paper_id"] for row in shown], reader.pdf_names)
    ranked = [
        _ranked_paper(row, papers[row["paper_id"]], ranking, originals or {}, files, reader.pdf_dir) for row in shown
    ]
    contrastive = [paper for paper in ranked if "CONTRASTIVE_PICK" in paper["tags"]]
    summary = {
        "input_count": candidates.num_rows if input_count is None else input_count,
        "filtered_count": len(removed) + len(avoided),
        "scored_count": ranking.rows.num_rows,
        "output_count": len(shown),
        "profile_used": reader.profile_used if reader.profile else None,
        "warnings": list(warnings),
    }
    return {
        **_result(summary, header, now=now),
        "ranked_papers": ranked,
        "filtered_papers": [*(_filtered_paper(row) for row in removed), *avoided],
        "contrastive_paper": {**contrastive[0], "contrastive_info": header["contrastive_info"]}
        if contrastive
        else None,
    }


def _filtered_paper(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "paper_id": row["paper_id"],
        "title": row["title"],
        "filter_reason": row["reason"],
        "filter_phase": row["phase"],
    }


def failed_result(error: str, *, input_count: int, options: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return a result of the same shape for a failed call; `error` is the reason in one line."""
    chosen = {name: options.get(name) for name in ("purpose", "ranking_mode")}
    summary = {"input_count": input_count, **chosen, "profile_used": None}
    return {**_result(summary, {}, now=now), "success": False, "error": error}


def _result(summary: Mapping[str, Any], header: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return a result without papers; `header` is that of the ranking, empty if there is none."""
    return {
        "success": True,
        "error": None,
        "summary": {
            "input_count": 0,
            "filtered_count": 0,
            "scored_count": 0,
            "output_count": 0,
            "purpose": header.get("purpose"),
            "ranking_mode": header.get("ranking_mode"),
            "profile_used": None,
            "llm_verification_used": header.get("llm_verification_used", False),
            "llm_calls_made": header.get("llm_calls_made", 0),
            "llm_note": header.get("llm_note"),
            "threshold": header.get("threshold"),
            "levels": header.get("levels"),
            "more_likely": header.get("more_likely", 0),
            "quiet": header.get("quiet", False),
            "warnings": [],
            **summary,
        },
        "ranked_papers": [],
        "filtered_papers": [],
        "contrastive_paper": None,
        "comparison_notes": header.get("comparison_notes", []),
        "output_path": None,
        "generated_at": now.isoformat(timespec="seconds"),
    }


def _ranked_paper(
    row: Mapping[str, Any],
    paper: Paper,
    ranking: Ranking,
    originals: Mapping[str, Mapping[str, Any]],
    files: Mapping[str, str],
    pdf_dir: Path | None,
) -> dict[str, Any]:
    file, level = files.get(paper.paper_id), level_of_row(row, ranking.header)
    return {
        "rank": row["rank"],
        "paper_id": paper.paper_id,
        "title": paper.title,
        "authors": list(paper.authors),
        "published": paper.day.isoformat() if paper.day else None,
        **({"level": level.name} if level else {}),
        "score": {
            "final": row["final"],
            "breakdown": {name: row[name] for name in DIMENSIONS},
            **({} if row.get("learned") is None else {"learned": row["learned"]}),
            "weights": dict(ranking.header["weights"]),
            "bonus": row["bonus"],
            "soft_penalty": row["soft_penalty"],
            "penalty_keywords": row["penalty_keywords"],
            "diversity_penalty": row["diversity_penalty"],
            "evaluation_method": row["evaluation_method"],
        },
        "tags": row["tags"],
        "local_status": {
            "already_downloaded": file is not None,
            "local_path": str(pdf_dir / file) if pdf_dir and file else file,
        },
        "original_data": originals.get(paper.paper_id) or paper_to_mapping(paper),
    }
