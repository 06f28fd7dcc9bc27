"""Rank papers for one reader: filter, score and order them, with a reason for every decision.

No file is read or written here: `pipeline/ranking_call.py` reads the profile and saves the result. The Dagster assets
call the same parts one by one: `filter_papers`, then `rank`, then `ranking_result`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from paper_assets.errors import InvalidInput, ModelUnavailable, StoreError
from paper_assets.models.embedder import reason_of
from paper_assets.paper import (
    Paper,
    embedded_text,
    oversized_fields,
    paper_from_mapping,
    papers_from_table,
    papers_to_table,
)
from paper_assets.profile import Profile, RankingOptions, understood
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.rank import RankingTask, Vectors, rank, with_vectors
from paper_assets.ranking.relevance import InterestQueries, interest_queries, liked_ids
from paper_assets.ranking.result import Reader, ranking_result
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import ScoringConfig
from paper_assets.sources.paper_fields import with_code_url
from paper_assets.weights import Weights

Embed = Callable[[list[str]], NDArray[np.float32]]
FindPapers = Callable[[list[str]], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """The functions and models that a ranking may call; each may be None.

    Attributes:
        embed: returns unit vectors (texts, d). If it is None, raises or returns anything else, relevance is computed
            from keywords and the summary has a warning.
        model: the name of the model behind `embed`, if it is known.
        find_papers: returns liked papers that are not among the given ones (such as `papers_by_id` of a warehouse).
        verifier: the LLM that checks papers of doubtful relevance; its failure is reported in the summary.
    """

    embed: Embed | None = None
    model: str | None = None
    find_papers: FindPapers | None = None
    verifier: Verifier | None = None


def rank_papers(
    records: Sequence[Mapping[str, Any]],
    reader: Reader,
    options: RankingOptions,
    *,
    scoring: ScoringConfig,
    as_of: date,
    now: datetime,
    backends: Backends,
) -> dict[str, Any]:
    """Filter, score and order papers, and return the result (G15) with `output_path` None.

    `records` are the papers as the caller gave them, `as_of` is the day for which ages are computed, `now` the time
    stamp of the result. Raises InvalidInput for a record that is not a paper.
    """
    profile, warnings = reader.profile, []
    paper_by_id = _deduplicated(records)
    if len(paper_by_id) < len(records):
        warnings.append(
            f"{len(records) - len(paper_by_id)} of {len(records)} papers repeat an id; each id was kept once"
        )
    table = papers_to_table(paper for paper, _ in paper_by_id.values())
    criteria = FilterCriteria(
        content=profile.content if profile else None,
        options=options,
        scoring=scoring,
        read_ids=reader.read_ids.union(liked_ids(profile.content.interests) if profile else ()),
    )
    rows = filter_papers(table, criteria)
    task = with_vectors(
        RankingTask(
            candidates=table.filter(rows.column("passed")),
            profile=profile,
            options=options,
            as_of=as_of,
            scoring=scoring,
            queries=_queries(profile, [paper for paper, _ in paper_by_id.values()], options, scoring, backends),
            pdf_names=reader.pdf_names,
        ),
        partial(_embedded, embed=backends.embed, model=backends.model),
    )
    ranking = rank(task, verifier=backends.verifier)
    return ranking_result(
        ranking,
        reader,
        papers={paper_id: paper for paper_id, (paper, _) in paper_by_id.items()},
        originals={
            paper_id: _as_json(paper_by_id[paper_id][1]) for paper_id in ranking.shown.column("paper_id").to_pylist()
        },
        candidates=rows,
        now=now,
        input_count=len(records),
        warnings=[*warnings, *task.warnings, *ranking.header["notes"]],
    )


def _queries(
    profile: Profile | None,
    papers: Sequence[Paper],
    options: RankingOptions,
    scoring: ScoringConfig,
    backends: Backends,
) -> InterestQueries | None:
    """Return what the profile's interests are compared by, with the texts of its liked papers; None without one."""
    if profile is None:
        return None
    interests, notes = understood(profile.content)
    known = _known_texts(liked_ids(interests), papers, backends.find_papers)
    return interest_queries(interests, options=options, scoring=scoring, known=known, notes=notes)


def ranking_options(profile: Profile | None, given: Mapping[str, Any]) -> RankingOptions:
    """Override the options of the profile (or the defaults without one) with those of `given` that are not None.

    Raises InvalidInput naming the option that is unknown or has an invalid value.
    """
    base = profile.content.ranking if profile else RankingOptions()
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return RankingOptions.model_validate({**base.model_dump(), **chosen})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            known = Weights.model_fields if fault["loc"][0] == "weights" else RankingOptions.model_fields
            raise InvalidInput(f"{name}: unknown option; expected one of {', '.join(known)}") from None
        message = fault["msg"][0].lower() + fault["msg"][1:]
        raise InvalidInput(f"{name}: {message}, got {str(fault['input'])[:60]!r}") from None


def _deduplicated(records: object) -> dict[str, tuple[Paper, Mapping[str, Any]]]:
    """Return the papers by id with their records. Of papers with the same id the newest version is kept, or the first.

    Raises InvalidInput for a record that is not a paper, or whose fields are too long.
    """
    if not isinstance(records, Sequence) or isinstance(records, str | bytes):
        raise InvalidInput("papers must be a list of objects with paper_id, title, abstract and authors")
    newest: dict[str, tuple[Paper, Mapping[str, Any]]] = {}
    for position, record in enumerate(records):
        paper = with_code_url(paper_from_mapping(record, position=position))
        if excess := oversized_fields(paper):
            raise InvalidInput(f"paper {position + 1} ({paper.paper_id[:60]}): {excess[0]}")
        if paper.paper_id not in newest or paper.version > newest[paper.paper_id][0].version:
            newest[paper.paper_id] = paper, record
    return newest


def _known_texts(
    ids: Sequence[str], papers_given: Sequence[Paper], find_papers: FindPapers | None
) -> dict[str, tuple[str, str]]:
    """Return title and abstract by id, for those of the ids that are known."""
    papers = {paper.paper_id: paper for paper in papers_given if paper.paper_id in ids}
    missing = [paper_id for paper_id in ids if paper_id not in papers]
    if missing and find_papers is not None:
        papers |= {paper.paper_id: paper for paper in papers_from_table(find_papers(missing))}
    return {paper_id: (paper.title, paper.abstract) for paper_id, paper in papers.items()}


def _embedded(candidates: pa.Table, queries: InterestQueries, *, embed: Embed | None, model: str | None) -> Vectors:
    """Return the vectors of the candidates and of `queries.texts`.

    Raises ModelUnavailable if there is no model, or it fails or returns unusable vectors; StoreError from its cache.
    """
    if embed is None:
        raise ModelUnavailable("no embedding model was given")
    titles, abstracts = candidates.column("title").to_pylist(), candidates.column("abstract").to_pylist()
    papers = (embedded_text(*text) for text in zip(titles, abstracts, strict=True))
    texts = [*queries.texts, *papers]
    try:
        vectors = np.asarray(embed(texts), dtype=np.float32)
    except (ModelUnavailable, StoreError):
        raise
    except Exception as error:  # `embed` is the caller's function and may raise anything
        raise ModelUnavailable(f"the embedding model failed: {reason_of(error)}") from None
    lengths = np.linalg.norm(vectors, axis=1) if vectors.ndim == 2 and len(vectors) == len(texts) else np.zeros(1)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelUnavailable(
            f"the embedding model gave no usable vectors (shape {vectors.shape}, {len(texts)} texts)"
        )
    return Vectors(queries=vectors[: len(queries.texts)], papers=vectors[len(queries.texts) :], model=model)


def _as_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's record as JSON values: anything else becomes text, NaN and infinity become null."""
    text = json.dumps(dict(record), default=str, skipkeys=True)
    return json.loads(text, parse_constant=lambda _: None)
