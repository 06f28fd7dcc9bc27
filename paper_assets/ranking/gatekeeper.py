"""The gatekeeper in one call: papers in, the few worth reading out, every decision explained (SPEC 2).

The Dagster assets use the same parts one by one: `filter_papers`, then `rank`, then `ranking_result`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from paper_assets.errors import InvalidInput, ModelUnavailable, PaperAssetsError, StoreError, StoreUnwritable
from paper_assets.models.hub import reason_of
from paper_assets.paper import Paper, embedded_text, paper_from_mapping, papers_from_table, papers_to_table
from paper_assets.profile import Profile, RankingOptions, load_history, load_profile
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.interest_modes import InterestQueries, interest_queries, liked_ids
from paper_assets.ranking.rank import rank
from paper_assets.ranking.result import failed_result, ranking_result
from paper_assets.ranking.task import RankingTask, Vectors, with_vectors
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import Settings
from paper_assets.small_files import is_folder, lies_there
from paper_assets.sources.code_links import with_code_url
from paper_assets.sources.local_pdfs import pdf_files
from paper_assets.stores.ranking_files import save_ranking
from paper_assets.weights import Weights

_LONGEST_PATH = 120  # characters of a path in a message

Embed = Callable[[list[str]], NDArray[np.float32]]
FindPapers = Callable[[list[str]], pa.Table]
ReadProfile = Callable[[Path], Profile]


def rank_and_filter_papers(
    papers: Sequence[Mapping[str, Any]],
    *,
    settings: Settings,
    as_of: date,
    now: datetime,
    embed: Embed | None = None,
    find_papers: FindPapers | None = None,
    verifier: Verifier | None = None,
    read_profile: ReadProfile = load_profile,
    working_dir: Path | None = None,
    profile_path: str | Path | None = None,
    history_path: str | Path | None = None,
    local_pdf_dir: str | Path | None = None,
    top_k: int | None = None,
    purpose: str | None = None,
    ranking_mode: str | None = None,
    include_contrastive: bool | None = None,
    contrastive_type: str | None = None,
    enable_llm_verification: bool | None = None,
    interest_mode: str | None = None,
    line: float | None = None,
    save: bool = True,
) -> dict[str, Any]:
    """Filter, score and order the papers for a profile; returns the result of SPEC G15 and never raises for input.

    An option left None is the profile's, else the default. `profile_path` is a profile's folder or its profile.json;
    without one only recency and practicality count. Without `history_path` and `local_pdf_dir` the profile's own
    history and `pdf/` hold. A relative path is looked for in the output folder (PDFs: the PDF folder), then in
    `working_dir`. `embed` gives unit rows for texts; if it is None, fails or gives no such rows, keyword matching
    takes over and a warning in the summary says so. Papers that the profile likes by their id are looked for among
    the given ones, then by `find_papers` (such as `papers_by_id` of a warehouse). `verifier` is the LLM to ask
    about papers of middling relevance; what comes of it, also a failure, stands in the summary. `read_profile` reads a
    profile's folder, and may check more of it than is needed here.
    """
    given = {
        "top_k": top_k,
        "purpose": purpose,
        "ranking_mode": ranking_mode,
        "include_contrastive": include_contrastive,
        "contrastive_type": contrastive_type,
        "enable_llm_verification": enable_llm_verification,
        "interest_mode": interest_mode,
        "line": line,
    }
    count = len(papers) if isinstance(papers, Sequence) else 0
    try:
        return _result(
            papers,
            settings=settings,
            as_of=as_of,
            now=now,
            embed=embed,
            find_papers=find_papers,
            verifier=verifier,
            profile_file=_found(profile_path, settings.output_dir, working_dir),
            read_profile=read_profile,
            profile_used=None if profile_path is None else str(profile_path),
            history_file=_found(history_path, settings.output_dir, working_dir),
            pdf_dir=_found(local_pdf_dir, settings.pdf_dir, working_dir),
            save=save,
            given=given,
        )
    except PaperAssetsError as error:
        return failed_result(str(error), input_count=count, options=given, now=now)


def ranking_options(profile: Profile | None, given: Mapping[str, Any]) -> RankingOptions:
    """The profile's options with those of `given` that are not None put over them. Raises InvalidInput."""
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


def _result(
    records: Sequence[Mapping[str, Any]],
    *,
    settings: Settings,
    as_of: date,
    now: datetime,
    embed: Embed | None,
    find_papers: FindPapers | None,
    verifier: Verifier | None,
    profile_file: Path | None,
    read_profile: ReadProfile,
    profile_used: str | None,
    history_file: Path | None,
    pdf_dir: Path | None,
    save: bool,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    warnings: list[str] = []
    profile = _profile(profile_file, read_profile)
    options = ranking_options(profile, given)
    kept = _once_each(records)
    if len(kept) < len(records):
        warnings.append(f"{len(records) - len(kept)} of {len(records)} papers repeat an id; each id was kept once")
    history = load_history(history_file, missing_ok=False) if history_file else profile.read_ids if profile else ()
    if pdf_dir is None and profile and profile.path:
        pdf_dir = profile.path / "pdf"
    elif pdf_dir is not None and not is_folder(pdf_dir):
        raise InvalidInput(f"local_pdf_dir: {pdf_dir} is no folder")
    pdf_names = pdf_files(pdf_dir) if pdf_dir else ()

    table = papers_to_table(paper for paper, _ in kept.values())
    criteria = FilterCriteria(
        content=profile.content if profile else None,
        options=options,
        scoring=settings.scoring,
        read_ids=frozenset(history).union(liked_ids(profile.content.interests) if profile else ()),
    )
    rows = filter_papers(table, criteria)
    queries = None
    if profile:
        interests = profile.content.interests
        known = _known_texts(liked_ids(interests), [paper for paper, _ in kept.values()], find_papers)
        queries = interest_queries(interests, options=options, scoring=settings.scoring, known=known)
    task = with_vectors(
        RankingTask(
            candidates=table.filter(rows.column("passed")),
            profile=profile,
            options=options,
            as_of=as_of,
            scoring=settings.scoring,
            queries=queries,
            pdf_names=pdf_names,
        ),
        partial(_embedded, embed=embed),
    )
    ranking = rank(task, verifier=verifier)
    result = ranking_result(
        ranking,
        papers={paper_id: paper for paper_id, (paper, _) in kept.items()},
        originals={paper_id: _as_json(kept[paper_id][1]) for paper_id in ranking.shown.column("paper_id").to_pylist()},
        candidates=rows,
        now=now,
        input_count=len(records),
        profile_used=profile_used if profile else None,
        pdf_dir=pdf_dir,
        pdf_names=pdf_names,
        warnings=[*warnings, *task.warnings],
    )
    if save:
        try:
            path = save_ranking(settings.rankings_dir, profile.name if profile else None, result, now=now)
            result["output_path"] = str(path)
        except StoreUnwritable as error:  # a full disk must not cost the answer
            result["summary"]["warnings"].append(str(error))
    return result


def _once_each(records: object) -> dict[str, tuple[Paper, Mapping[str, Any]]]:
    """The papers by id with the records they came from: of a repeated id the newest version, else the first."""
    if not isinstance(records, Sequence) or isinstance(records, str | bytes):
        raise InvalidInput("papers must be a list of objects with paper_id, title, abstract and authors")
    kept: dict[str, tuple[Paper, Mapping[str, Any]]] = {}
    for position, record in enumerate(records):
        paper = with_code_url(paper_from_mapping(record, position=position))
        if paper.paper_id not in kept or paper.version > kept[paper.paper_id][0].version:
            kept[paper.paper_id] = paper, record
    return kept


def _known_texts(
    ids: Sequence[str], given: Sequence[Paper], find_papers: FindPapers | None
) -> dict[str, tuple[str, str]]:
    """Title and abstract of the papers with these ids, as far as they are known."""
    papers = {paper.paper_id: paper for paper in given if paper.paper_id in ids}
    missing = [paper_id for paper_id in ids if paper_id not in papers]
    if missing and find_papers is not None:
        papers |= {paper.paper_id: paper for paper in papers_from_table(find_papers(missing))}
    return {paper_id: (paper.title, paper.abstract) for paper_id, paper in papers.items()}


def _embedded(candidates: pa.Table, queries: InterestQueries, *, embed: Embed | None) -> Vectors:
    """Vectors of the candidates and of `queries.texts`. Raises ModelUnavailable, StoreError."""
    if embed is None:
        raise ModelUnavailable("no embedding model was given")
    titles, abstracts = candidates.column("title").to_pylist(), candidates.column("abstract").to_pylist()
    papers = (embedded_text(*text) for text in zip(titles, abstracts, strict=True))
    texts = [*queries.texts, *papers]
    try:
        vectors = np.asarray(embed(texts), dtype=np.float32)
    except (ModelUnavailable, StoreError):
        raise
    except Exception as error:  # `embed` is the caller's, and may be anything
        raise ModelUnavailable(f"the embedding model failed: {reason_of(error)}") from None
    lengths = np.linalg.norm(vectors, axis=1) if vectors.ndim == 2 and len(vectors) == len(texts) else np.zeros(1)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelUnavailable(
            f"the embedding model gave no usable vectors (shape {vectors.shape}, {len(texts)} texts)"
        )
    return Vectors(queries=vectors[: len(queries.texts)], papers=vectors[len(queries.texts) :])


def _found(path: str | Path | None, first: Path, then: Path | None) -> Path | None:
    """Where a given path lies: an absolute one as it is, a relative one under the first base that has it."""
    if path is None:
        return None
    try:
        places = [base / Path(path).expanduser() for base in (first, then) if base is not None]
    except RuntimeError:
        raise InvalidInput(f"{str(path)[:60]!r}: no such user") from None
    return next((place for place in places if lies_there(place)), places[0])


def _profile(file: Path | None, read_profile: ReadProfile) -> Profile | None:
    """The profile at a folder or its profile.json. Raises InvalidInput if there is none, InvalidProfile if broken."""
    if file is None:
        return None
    folder = file.parent if file.name == "profile.json" else file
    if not lies_there(folder / "profile.json"):
        shown = str(file) if len(str(file)) <= _LONGEST_PATH else f"…{str(file)[-_LONGEST_PATH:]}"
        raise InvalidInput(f"profile_path: no profile at {shown}; give a profile's folder or its profile.json")
    return read_profile(folder)


def _as_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's record in values that JSON knows, whatever its other keys hold."""
    text = json.dumps(dict(record), default=str, skipkeys=True)
    copied: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return copied
