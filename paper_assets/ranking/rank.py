"""The ranking of one profile for one day: every candidate scored, explained and put in order (SPEC G4 to G14)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.profile import Profile, RankingOptions
from paper_assets.ranking import dimensions
from paper_assets.ranking.columns import ages_in_days, among, has_code
from paper_assets.ranking.contrast import contrast_tags, contrastive_pick
from paper_assets.ranking.diversity import repeating
from paper_assets.ranking.interest_modes import (
    Relevance,
    Sought,
    relevance_of,
    what_is_sought,
    with_every_lane,
    without_lanes,
)
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.ranking.lexical import words_of_papers
from paper_assets.ranking.llm_check import PROMPT_VERSION, SecondLook, check_relevance
from paper_assets.ranking.notes import comparison_notes
from paper_assets.ranking.relevance import keyword_relevance
from paper_assets.ranking.scoring import best_first, final_scores, mode_bonus, soft_penalty, weights_for
from paper_assets.ranking.tags import Evidence, named_where, tags_of
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.settings import DIMENSIONS, Scoring
from paper_assets.sources.local_pdfs import local_pdfs
from paper_assets.stores.rankings import ranking_schema

if TYPE_CHECKING:
    import pyarrow as pa

EMBEDDING, KEYWORD, PROFILE_FREE = "embedding", "keyword", "profile_free"  # G5 evaluation_method
EMBEDDING_AND_LLM = "embedding+llm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """All scored candidates in final order (`ranking_schema`), and what they were ranked by (JSON-ready)."""

    rows: "pa.Table"
    header: dict[str, Any]

    @property
    def shown(self) -> "pa.Table":
        """The rows of the top K."""
        return self.rows.filter(self.rows.column("shown"))


def rank(
    candidates: "pa.Table",
    profile: Profile | None,
    *,
    options: RankingOptions,
    as_of: date,
    scoring: Scoring,
    sought: Sought | None = None,
    vectors: NDArray[np.float32] | None = None,
    asked: NDArray[np.float32] | None = None,
    pdf_names: Sequence[str] = (),
    second_look: SecondLook | None = None,
) -> Ranking:
    """Score and order the candidates (papers that passed the filters), the same whatever order they come in.

    `sought` is what the profile looks for (None: what it says itself, no liked paper by its id). `vectors` (n, d)
    are aligned with `candidates` and `asked` (t, d) with `sought.texts`; without them keyword matching takes over
    (G6). Without a profile only recency and practicality count (G10). `second_look` is the LLM to ask about papers
    of middling relevance (G5); None asks nobody.
    """
    import pyarrow as pa

    content = profile.content if profile else None
    must = distinct(content.keywords.must_include) if content else []
    soft = distinct(content.keywords.exclude.soft) if content else []
    texts = paper_texts(candidates)
    found = keywords_in(texts, [*must, *soft])
    must_found, soft_found = found[:, : len(must)], found[:, len(must) :]

    if content and sought is None:
        sought = what_is_sought(content.interests, options=options, scoring=scoring)
    method, relevance = _relevance(candidates, texts, sought, vectors=vectors, asked=asked, scoring=scoring)
    methods = np.full(candidates.num_rows, method, dtype=object)
    check = None
    if second_look and sought and method == EMBEDDING and options.enable_llm_verification:
        check = check_relevance(
            candidates,
            relevance.values,
            sought.in_words,
            ask=second_look.ask,
            model=second_look.model or "",
            scoring=scoring,
            known=second_look.known,
            keep=second_look.keep,
        )
        relevance = replace(relevance, values=check.relevance)
        methods[check.verified] = EMBEDDING_AND_LLM

    ages = ages_in_days(candidates, as_of)
    code = has_code(candidates)
    ids = candidates.column("paper_id")
    downloaded = among(candidates, local_pdfs(ids.to_pylist(), pdf_names) if pdf_names else ())
    values = np.column_stack(
        [
            relevance.values,
            dimensions.must_keywords(must_found),
            dimensions.author_trust(candidates, content.preferred_authors if content else ()),
            dimensions.institution_trust(candidates, content.preferred_institutions if content else ()),
            dimensions.recency(ages, scoring),
            dimensions.practicality(code, downloaded, scoring),
        ]
    )
    weights = weights_for(options.purpose, scoring, profile_free=content is None)
    bonus = mode_bonus(values, options.ranking_mode, scoring)
    penalty = soft_penalty(soft_found, scoring)

    def in_order(places: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], dict[int, int]]:
        """Deduction for likeness, final score and order, with `places` filled by score; who has a lane's place."""
        deduction = np.zeros(candidates.num_rows)
        final = final_scores(
            values, weights, bonus=bonus, penalty=penalty, diversity_penalty=deduction, scoring=scoring
        )
        if options.ranking_mode == "diversity" and vectors is not None:
            lowered = final_scores(
                values,
                weights,
                bonus=bonus,
                penalty=penalty,
                diversity_penalty=deduction + scoring.diversity_penalty,
                scoring=scoring,
            )
            again = repeating(
                final,
                lowered,
                vectors,
                days=-ages,
                paper_ids=ids,
                places=places,
                similarity=scoring.diversity_similarity,
            )
            deduction, final = np.where(again, scoring.diversity_penalty, 0.0), np.where(again, lowered, final)
        order, entered = with_every_lane(best_first(final, -ages, ids), relevance.serves, places=places)
        return deduction, final, order, entered

    top_k, taxonomy, pick = options.top_k, standard_taxonomy(), None
    diversity_penalty, final, order, entered = in_order(top_k - options.include_contrastive)
    if options.include_contrastive:
        pick = contrastive_pick(texts, order, chosen=top_k - 1, kind=options.contrastive_type, taxonomy=taxonomy)
        if pick:
            order = np.insert(np.delete(order, pick.place), top_k - 1, order[pick.place])
        else:
            diversity_penalty, final, order, entered = in_order(top_k)
    tags = tags_of(
        Evidence(
            dimensions=values,
            ages=ages,
            code=code,
            downloaded=downloaded,
            must_found=must_found,
            soft_found=soft_found,
            soft_keywords=soft,
            llm_verified=methods == EMBEDDING_AND_LLM,
            content=content,
            scoring=scoring,
        )
    )
    places = np.arange(candidates.num_rows)
    columns: dict[str, Any] = {
        "paper_id": ids,
        "final": final,
        **dict(zip(DIMENSIONS, values.T, strict=True)),
        "bonus": bonus,
        "soft_penalty": penalty,
        "diversity_penalty": diversity_penalty,
        "penalty_keywords": named_where(soft_found, soft),
        "evaluation_method": pa.array(methods, type=pa.string()),
        "tags": tags,
        "lane": pa.array(relevance.names, type=pa.string()).take(pa.array(relevance.best, mask=relevance.best < 0)),
    }
    rows = pa.table(columns).take(order)
    rows = rows.append_column("rank", pa.array(places + 1, type=pa.int32()))
    rows = rows.append_column("shown", pa.array(places < top_k))
    if pick:
        told = rows.column("tags").to_pylist()
        told[top_k - 1] = [*told[top_k - 1], *contrast_tags(pick.kind)]
        rows = rows.set_column(rows.column_names.index("tags"), "tags", pa.array(told, type=pa.list_(pa.string())))
    shown = candidates.take(order[:top_k])
    header = {
        "as_of": as_of.isoformat(),
        "profile": profile.name if profile else None,
        "profile_hash": profile.content_hash if profile else None,
        **options.model_dump(mode="json"),
        "weights": dict(zip(DIMENSIONS, weights, strict=True)),
        "evaluation_method": method,
        "views": [view.mode for view in sought.views] if sought else [],
        "lane_places": dict(sorted((ids[row].as_py(), relevance.names[lane]) for row, lane in entered.items())),
        "contrastive_info": pick.info if pick else None,
        "comparison_notes": comparison_notes(
            shown.column("paper_id").to_pylist(),
            shown.column("title").to_pylist(),
            shown.column("abstract").to_pylist(),
            vectors[order[:top_k]] if vectors is not None else None,
            taxonomy=taxonomy,
            scoring=scoring,
            contrast=pick,
        ),
        "llm_verification_used": check.used if check else False,
        "llm_calls_made": check.usage.calls if check else 0,
        "llm_input_tokens": check.usage.input_tokens if check else 0,
        "llm_output_tokens": check.usage.output_tokens if check else 0,
        "llm_cached": check.cached if check else 0,
        "llm_model": second_look.model if check and second_look else None,
        "llm_prompt": PROMPT_VERSION if check else None,
        "llm_note": check.warning if check else None,
    }
    return Ranking(rows=rows.select(ranking_schema().names).cast(ranking_schema()), header=header)


def _relevance(
    candidates: "pa.Table",
    texts: "pa.ChunkedArray",
    sought: Sought | None,
    *,
    vectors: NDArray[np.float32] | None,
    asked: NDArray[np.float32] | None,
    scoring: Scoring,
) -> tuple[str, Relevance]:
    """How the papers were judged (G5 evaluation_method), and the judgement."""
    if sought is not None and vectors is not None and asked is not None:
        words = words_of_papers(texts)
        return EMBEDDING, relevance_of(sought, vectors=vectors, asked=asked, words=words, scoring=scoring)
    if sought is None:
        method, values = PROFILE_FREE, np.zeros(candidates.num_rows)
    else:
        method, values = KEYWORD, keyword_relevance(texts, sought.in_words, repeats=scoring.interest_repeats)
    return method, without_lanes(values)
