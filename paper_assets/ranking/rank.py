"""Rank the candidates of one profile for one day: score, explain and order every paper (SPEC G4 to G14).

`rank` runs the steps in this order: relevance, must keywords, earlier lists, facts and dimensions, ratings, the LLM's
check, the final list. A `RankingTask` has everything that a ranking is computed from, so that
another process can compute it (SPEC X4).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.errors import ModelUnavailable
from paper_assets.profile import Profile, ProfileContent, RankingOptions, understood
from paper_assets.ranking.calibration import Calibration, standard_calibration
from paper_assets.ranking.contrast import comparison_notes, contrast_tags
from paper_assets.ranking.dimensions import DIMENSION_TABLE, DimensionFacts, perhaps_followed
from paper_assets.ranking.filters import ages_in_days, among, has_project_page, has_repository
from paper_assets.ranking.final_list import FinalList, Scored, final_list, list_order
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.ranking.levels import counted
from paper_assets.ranking.preferences import Preferences, Shift, shift_of, shifted
from paper_assets.ranking.relevance import (
    InterestQueries,
    Relevance,
    interest_queries,
    keyword_relevance,
    relevance_of,
    without_interests,
)
from paper_assets.ranking.scoring import mode_bonus, soft_penalty, weights_for
from paper_assets.ranking.tags import TagFacts, copies_of, named_where, tags_of, with_copies
from paper_assets.ranking.term_matching import PaperWords, paper_words
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.ranking.verifier import (
    GRADED,
    PROMPT_VERSION,
    LLMCheck,
    Verifier,
    check_relevance,
    grade_papers,
    reader_of_profile,
)
from paper_assets.settings import ScoringConfig
from paper_assets.sources.pdf_files import local_pdfs
from paper_assets.stores.rankings import ranking_schema
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.weights import DIMENSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Vectors of papers (n, d), in the order of the candidates, and of the texts of the queries (t, d).

    `model` is the name of the embedding model; None: it is not known.
    """

    papers: NDArray[np.float32]
    queries: NDArray[np.float32]
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTask:
    """Everything that `rank` needs, read from the stores.

    Attributes:
        queries: what papers are compared with; None: `rank` derives it from the profile.
        vectors: those of the candidates and queries; None: papers are judged by words alone.
        pdf_names: names of the local PDF files.
        preferences: what ratings have taught; None: nothing.
        shown_before: title and abstract of the papers of the window that earlier lists showed; None: there are none.
        considered: ids of the candidates of the last list for the same interests, which could have shown them.
        warnings: those to report with the result.
    """

    candidates: pa.Table
    profile: Profile | None
    options: RankingOptions
    as_of: date
    scoring: ScoringConfig
    queries: InterestQueries | None = None
    vectors: Vectors | None = None
    pdf_names: tuple[str, ...] = ()
    preferences: Preferences | None = None
    shown_before: pa.Table | None = None
    considered: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


def with_vectors(task: RankingTask, vectors_of: Callable[[pa.Table, InterestQueries], Vectors]) -> RankingTask:
    """Add the vectors that `vectors_of` returns; if it raises ModelUnavailable, add a warning instead.

    The function call (`gatekeeper.py`) and the graph both prepare their tasks here.
    """
    warnings, vectors = list(task.queries.warnings) if task.queries else [], None
    if task.queries and task.candidates.num_rows:
        try:
            vectors = vectors_of(task.candidates, task.queries)
        except ModelUnavailable as error:
            warnings.append(f"relevance was judged by keywords only: {error}")
    return replace(task, vectors=vectors, warnings=(*task.warnings, *warnings))


EMBEDDING, KEYWORD, PROFILE_FREE = "embedding", "keyword", "profile_free"  # G5 evaluation_method
EMBEDDING_AND_LLM = "embedding+llm"
# A must keyword adds -_KEYWORD_POINTS ln(share of the papers with it) points of log odds. The share is mixed with a
# usual one, as if of _USUAL_PAPERS more papers.
_USUAL_PAPERS, _USUAL_SHARE, _KEYWORD_POINTS = 30, 0.135, 0.7
_CONSIDERED = -0.7  # points of log odds, measured in docs/evaluation.md
_REVIEWS = ("a", "systematic", "literature", "scoping", "critical", "comprehensive")
SURVEY_TITLES = (
    *("survey", "tutorial", "roadmap", "meta analysis", "review of", "an overview", "overview of"),
    *(f"{kind} review" for kind in _REVIEWS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """All scored candidates in final order (`ranking_schema`), and the header: JSON values that describe them."""

    rows: pa.Table
    header: dict[str, Any]

    @property
    def shown(self) -> pa.Table:
        """The rows of the papers in the list."""
        return self.rows.filter(self.rows.column("shown"))


def rank(task: RankingTask, *, verifier: Verifier | None = None, calibration: Calibration | None = None) -> Ranking:
    """Score and order the candidates of a task; reads no store, and does not depend on the order of the candidates.

    `verifier` is the language model that judges papers of doubtful relevance (None: no such check). `calibration` turns
    comparisons into probabilities (None: the package's).
    """
    candidates, options, scoring = task.candidates, task.options, task.scoring
    queries, vectors = task.queries, task.vectors.papers if task.vectors else None
    calibration = (calibration or standard_calibration()).for_model(task.vectors.model if task.vectors else None)
    content = task.profile.content if task.profile else None
    if content and queries is None:
        interests, notes = understood(content)
        queries = interest_queries(interests, options=options, scoring=scoring, notes=notes)
    by_field = paper_words(candidates) if queries else None
    words = by_field.whole if by_field else None
    method, relevance = _relevance(task, by_field, queries, calibration=calibration)
    if content and by_field and queries and queries.calibrated and candidates.num_rows:
        relevance = _with_must_keywords(relevance, by_field, content)
    # Candidates of an earlier list that did not show them are less relevant.
    considered = among(candidates, task.considered if queries and queries.calibrated else ())
    if considered.any():
        relevance = replace(relevance, values=shifted(relevance.values, np.where(considered, _CONSIDERED, 0.0)))
    if relevance.avoided:
        relevance = replace(relevance, values=relevance.avoided.values(relevance.values))
    copies = copies_of(candidates) if queries and queries.calibrated else {}
    relevance = replace(
        relevance, values=np.where(np.isin(np.arange(candidates.num_rows), [*copies]), 0.0, relevance.values)
    )
    facts = replace(_facts(candidates, words, content, considered, task=task), avoided=relevance.avoided)
    scored = _scored(candidates, paper_texts(candidates), facts, relevance, task=task, vectors=vectors, queries=queries)
    shift = _shift(task, scored, words, calibration=calibration)
    if shift:
        scored = replace(scored, shift=shift.values)
    check = _check(task, scored, relevance, queries, verifier=verifier if method == EMBEDDING else None)
    if check:
        scored = scored.with_relevance(check.values)
        facts = replace(facts, llm_verified=check.verified)
    facts = replace(facts, dimensions=scored.dimensions)
    listed = final_list(scored, options=options, scoring=scoring, taxonomy=standard_taxonomy())
    return Ranking(
        rows=_rows(candidates, scored, facts, relevance, listed, shift, copies, method=method),
        header={
            **_inputs(task, queries, weights=scored.weights, method=method),
            **_levels_header(scored, listed, calibration=calibration),
            **_preference_header(scored, content),
            **_lanes(candidates, relevance, listed),
            "contrastive_info": listed.contrast.info if listed.contrast else None,
            "notes": list(listed.notes),
            "comparison_notes": _notes(candidates, listed, vectors, scoring=scoring),
            **_check_record(check, verifier),
        },
    )


def _inputs(
    task: RankingTask, queries: InterestQueries | None, *, weights: tuple[float, ...], method: str
) -> dict[str, Any]:
    """Return the part of the header that says what the ranking was computed from."""
    profile = task.profile
    return {
        "as_of": task.as_of.isoformat(),
        "profile": profile.name if profile else None,
        "profile_hash": profile.content_hash if profile else None,
        **task.options.model_dump(mode="json"),
        "weights": dict(zip(DIMENSIONS, weights, strict=True)),
        "evaluation_method": method,
        "views": [view.mode for view in queries.views] if queries else [],
        "preferences": task.preferences.version if task.preferences else None,
    }


def _lanes(candidates: pa.Table, relevance: Relevance, listed: FinalList) -> dict[str, Any]:
    """Return the part of the header on interests: how they were compared, and which papers have a place for one."""
    ids = candidates.column("paper_id")
    return {
        **({"best_matches": relevance.best_matches} if relevance.best_matches else {}),
        "interest_places": dict(
            sorted((ids[row].as_py(), relevance.names[interest]) for row, interest in listed.interest_places.items())
        ),
    }


def _relevance(
    task: RankingTask, words: PaperWords | None, queries: InterestQueries | None, *, calibration: Calibration
) -> tuple[str, Relevance]:
    """Return the method by which the candidates were judged (`evaluation_method`), and their relevance."""
    vectors = task.vectors
    if queries is None or words is None:
        return PROFILE_FREE, without_interests(np.zeros(task.candidates.num_rows))
    if vectors is None and not queries.calibrated:
        found = keyword_relevance(words.whole, queries.in_words, repeats=task.scoring.interest_repeats)
        return KEYWORD, without_interests(found)
    return EMBEDDING if vectors else KEYWORD, relevance_of(
        queries,
        vectors=vectors.papers if vectors else None,
        query_vectors=vectors.queries if vectors else None,
        words=words if queries.by_words or vectors is None else None,
        calibration=calibration,
        window=_window_words(task),
    )


def _window_words(task: RankingTask) -> PaperWords | None:
    """Return the words of the candidates and then those of `shown_before`; None if there are none of these."""
    if task.shown_before is None or not task.shown_before.num_rows:
        return None
    columns = ["title", "abstract"]
    return paper_words(pa.concat_tables([task.candidates.select(columns), task.shown_before.select(columns)]))


def _with_must_keywords(relevance: Relevance, words: PaperWords, content: ProfileContent) -> Relevance:
    """Return the relevance, raised for papers with a must keyword: more if the keyword is rare."""
    keywords = distinct(content.keywords.must_include)
    if not keywords:
        return relevance
    found = keywords_in(words.whole, keywords)
    shares = (found.sum(axis=0) + _USUAL_PAPERS * _USUAL_SHARE) / (len(words) + _USUAL_PAPERS)
    points = np.where(found, -_KEYWORD_POINTS * np.log(shares), 0.0).max(axis=1)
    return replace(relevance, values=shifted(relevance.values, points))


def _facts(
    candidates: pa.Table,
    words: IndexedTexts | None,
    content: ProfileContent | None,
    considered: NDArray[np.bool_],
    *,
    task: RankingTask,
) -> TagFacts:
    """Return the facts on the papers except their relevance, whose dimension is still 0."""
    options, scoring, pdf_names = task.options, task.scoring, task.pdf_names
    must = distinct(content.keywords.must_include) if content else []
    own = options.interest_mode != "seed"  # mode `seed` has no rule for surveys and searches abstracts
    soft = distinct(content.keywords.exclude.soft, title_only=own) if content else []
    texts = words or paper_texts(candidates)
    must_found, soft_found = keywords_in(texts, must), keywords_in(texts, soft, title_only=own)
    wanted = SURVEY_TITLES if own and options.purpose == "literature_review" else ()
    ages = ages_in_days(candidates, task.as_of)
    repository = has_repository(candidates)
    page = has_project_page(candidates, among=~repository)
    ids = candidates.column("paper_id").to_pylist() if pdf_names else []
    downloaded = among(candidates, local_pdfs(ids, pdf_names) if pdf_names else ())
    facts = DimensionFacts(
        candidates=candidates,
        must_found=must_found,
        preferred_authors=content.preferred_authors if content else (),
        preferred_institutions=content.preferred_institutions if content else (),
        ages=ages,
        code=repository | page,
        downloaded=downloaded,
        scoring=scoring,
    )
    return TagFacts(
        dimensions=np.column_stack([dimension.of(facts) for dimension in DIMENSION_TABLE]),
        ages=ages,
        code=repository,
        project_page=page,
        downloaded=downloaded,
        perhaps_followed=perhaps_followed(candidates, content.preferred_authors if content and own else ()),
        must_found=must_found,
        soft_found=soft_found,
        soft_keywords=soft,
        survey=np.asarray(keywords_in(texts, wanted, title_only=True).any(axis=1)),
        llm_verified=np.zeros(candidates.num_rows, dtype=bool),
        considered=considered,
        content=content,
        scoring=scoring,
    )


def _scored(
    candidates: pa.Table,
    texts: pa.ChunkedArray,
    facts: TagFacts,
    relevance: Relevance,
    *,
    task: RankingTask,
    vectors: NDArray[np.float32] | None,
    queries: InterestQueries | None,
) -> Scored:
    """Return everything that the order depends on."""
    options, scoring = task.options, facts.scoring
    return Scored(
        paper_ids=candidates.column("paper_id"),
        texts=texts,
        days=-facts.ages,
        dimensions=facts.dimensions,
        weights=weights_for(options.purpose, scoring, chosen=options.weights, profile_free=facts.content is None),
        bonus=mode_bonus(facts.dimensions, options.ranking_mode, scoring) + scoring.survey_bonus * facts.survey,
        penalty=soft_penalty(facts.soft_found, scoring),
        by_interest=relevance.by_interest,
        vectors=vectors,
        floor=queries.floor if queries else None,
        followed=facts.perhaps_followed,
        preference_weight=scoring.implementation_preference_weight
        if options.purpose == "implementation"
        else scoring.preference_weight,
        probability_cap=scoring.idea_probability
        if queries and queries.calibrated and options.purpose == "idea_generation"
        else None,
        looked_for=_looked_for(facts, options),
    ).with_relevance(relevance.values)


def _looked_for(facts: TagFacts, options: RankingOptions) -> dict[str, NDArray[np.bool_]]:
    """Return by its note what purpose and mode bring first, for each paper (n,) whether it is that."""
    found, code = {}, facts.code | facts.project_page
    if options.purpose == "literature_review" and options.interest_mode != "seed":
        found["no likely paper is a survey, which the purpose literature_review puts first"] = facts.survey
    if options.purpose == "implementation":
        found["no likely paper has code, which the purpose implementation puts first"] = code
    if options.ranking_mode == "practicality":
        found["no likely paper has code, which the mode practicality puts first"] = code
    return found


def _shift(task: RankingTask, scored: Scored, words: IndexedTexts | None, *, calibration: Calibration) -> Shift | None:
    """Return by how much ratings move the relevance of each paper; None if they have taught nothing."""
    if not task.preferences or not task.candidates.num_rows:
        return None
    return shift_of(
        task.preferences,
        vectors=task.vectors.papers if task.vectors else None,
        words=words,
        dimensions=scored.dimensions,
        background=calibration.background,
    )


def _check(
    task: RankingTask,
    scored: Scored,
    relevance: Relevance,
    queries: InterestQueries | None,
    *,
    verifier: Verifier | None,
) -> LLMCheck | None:
    """Have the language model judge the first papers of the list; None without one, or if the options forbid it.

    In the seed mode it scores the papers of a band of relevance (G5).
    """
    if not verifier or not queries or not task.options.enable_llm_verification:
        return None
    order = list_order(scored, options=task.options, scoring=task.scoring)
    if not queries.calibrated:
        return check_relevance(
            task.candidates,
            relevance.values,
            queries.in_words,
            verifier=verifier,
            scoring=task.scoring,
            asked_first=lambda doubtful: order[np.isin(order, doubtful)],
        )
    reader = reader_of_profile(queries.in_words, task.profile.content if task.profile else None)
    first = order[relevance.values[order] > 0][:GRADED]
    graded = grade_papers(task.candidates, first, reader, verifier=verifier, scoring=task.scoring)
    return replace(graded, values=shifted(relevance.values, graded.values))


def _rows(
    candidates: pa.Table,
    scored: Scored,
    facts: TagFacts,
    relevance: Relevance,
    listed: FinalList,
    shift: Shift | None,
    copies: Mapping[int, int],
    *,
    method: str,
) -> pa.Table:
    """Return the rows of `ranking_schema` in final order."""
    methods = np.where(facts.llm_verified, EMBEDDING_AND_LLM, method)
    places = np.arange(len(listed.order))
    tags = tags_of(replace(facts, learned=scored.learned if shift else None))
    columns: dict[str, Any] = {
        "paper_id": scored.paper_ids,
        "final": listed.final,
        **dict(zip(DIMENSIONS, scored.dimensions.T, strict=True)),
        "bonus": scored.bonus,
        "soft_penalty": scored.penalty,
        "diversity_penalty": listed.diversity_penalty,
        "penalty_keywords": named_where(facts.soft_found, facts.soft_keywords),
        "evaluation_method": pa.array(methods.astype(object), type=pa.string()),
        "tags": with_copies(tags, copies, scored.paper_ids.to_pylist()) if copies else tags,
        "nearest": pa.array(relevance.names, type=pa.string()).take(pa.array(relevance.best, mask=relevance.best < 0)),
        **{
            name: _known(getattr(relevance, name), len(places))
            for name in ("meaning", "words", "library", "interest_probability")
        },
        "version": candidates.column("version"),
        "learned": _known(scored.learned if shift else None, len(places)),
        "learned_words": pa.array(shift.words if shift else [None] * len(places), type=pa.list_(pa.string())),
        "learned_near": pa.array(shift.near if shift else [None] * len(places), type=pa.list_(pa.string())),
    }
    rows = pa.table(columns).take(listed.order)
    rows = rows.append_column("rank", pa.array(places + 1, type=pa.int32()))
    rows = rows.append_column("shown", pa.array(places < listed.shown))
    if listed.contrast:
        tags_by_row = rows.column("tags").to_pylist()
        tags_by_row[listed.shown - 1] = [*tags_by_row[listed.shown - 1], *contrast_tags(listed.contrast.kind)]
        rows = rows.set_column(
            rows.column_names.index("tags"), "tags", pa.array(tags_by_row, type=pa.list_(pa.string()))
        )
    return rows.select(ranking_schema().names).cast(ranking_schema())


def _known(part: NDArray[np.float64] | None, count: int) -> pa.Array:
    """Return a part of relevance as a column: null where it is missing."""
    return pa.nulls(count, pa.float64()) if part is None else pa.array(part, mask=np.isnan(part))


def _levels_header(scored: Scored, listed: FinalList, *, calibration: Calibration) -> dict[str, Any]:
    """Return the part of the header on how likely the papers are: the lowest probability, and papers by level."""
    if scored.floor is None:
        return {"threshold": None, "levels": None, "more_likely": 0, "quiet": False, "calibration": None}
    shown = listed.order[: listed.shown]
    return {
        "threshold": scored.floor,
        "levels": counted(scored.relevance[shown].tolist()),
        "more_likely": int(scored.likely.sum() - scored.likely[shown].sum()),
        "quiet": not listed.shown and len(listed.order) > 0,
        "calibration": calibration.version,
    }


def _preference_header(scored: Scored, content: ProfileContent | None) -> dict[str, Any]:
    """Return the part of the header on the match (`final_list.py`); empty if the list is ordered by the final score.

    `preference_baseline` is the score without relevance of a new paper that matches no preference of the profile.
    """
    if scored.floor is None or content is None:
        return {}
    unset = {
        "must_keywords": not distinct(content.keywords.must_include),
        "author_trust": not content.preferred_authors,
        "institution_trust": not content.preferred_institutions,
        "recency": True,
    }
    plain = sum(weight for name, weight in zip(DIMENSIONS, scored.weights, strict=True) if unset.get(name))
    return {
        "preference_weight": scored.preference_weight,
        "preference_baseline": plain,
        **({"probability_cap": scored.probability_cap} if scored.probability_cap else {}),
    }


def _notes(
    candidates: pa.Table, listed: FinalList, vectors: NDArray[np.float32] | None, *, scoring: ScoringConfig
) -> list[dict[str, Any]]:
    """Return the comparison notes (G14) on the shown papers."""
    places = listed.order[: listed.shown]
    shown = candidates.take(places)
    return comparison_notes(
        shown.column("paper_id").to_pylist(),
        shown.column("title").to_pylist(),
        shown.column("abstract").to_pylist(),
        vectors[places] if vectors is not None else None,
        taxonomy=standard_taxonomy(),
        scoring=scoring,
        contrast=listed.contrast,
    )


def _check_record(check: LLMCheck | None, verifier: Verifier | None) -> dict[str, Any]:
    """Return the part of the header on the LLM's check: calls, tokens, model and prompt."""
    return {
        "llm_verification_used": check.used if check else False,
        "llm_calls_made": check.usage.calls if check else 0,
        "llm_input_tokens": check.usage.input_tokens if check else 0,
        "llm_output_tokens": check.usage.output_tokens if check else 0,
        "llm_cached": check.cached if check else 0,
        "llm_model": verifier.model if check and verifier else None,
        "llm_prompt": PROMPT_VERSION if check else None,
        "llm_note": check.warning if check else None,
        "llm_failed": bool(check and check.failed),
    }
