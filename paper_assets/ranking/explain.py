"""Why a paper stands where it stands, in plain sentences, and the proof that its score is no accident (SPEC G16)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking import filters
from paper_assets.ranking.scoring import final_scores
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, IN_WORDS, SOFT_PENALTY
from paper_assets.settings import DIMENSIONS, Scoring

if TYPE_CHECKING:
    import pyarrow as pa

DIMENSIONS_IN_WORDS = {
    "semantic_relevance": "relevance to your interests",
    "must_keywords": "keywords you ask for",
    "author_trust": "authors you follow",
    "institution_trust": "institutions you follow",
    "recency": "how recent it is",
    "practicality": "code and PDF at hand",
}
_TAG_OF_WISH = {
    "must_keywords": "MUST_KEYWORD_MATCH",
    "author_trust": "PREFERRED_AUTHOR",
    "institution_trust": "PREFERRED_INSTITUTION",
}
_METHODS_IN_WORDS = {
    "embedding": "by the meaning of title and abstract",
    "embedding+llm": "by a language model, which was asked because the meaning alone left it open",
    "keyword": "by keywords only, because the embedding model could not be loaded",
    "profile_free": "not judged, because there is no profile",
}
_REASONS_IN_WORDS = {
    filters.WITHDRAWN: "its authors have withdrawn it",
    filters.ALREADY_READ: "you have already read it",
    filters.BLACKLIST_KEYWORD: "it holds your excluded keyword",
    filters.TOO_OLD: "it is older than the earliest year you want; it is from",
    filters.NO_CODE_REQUIRED: "you want code and none is known",
    filters.ALREADY_SHOWN: "it stood in your list on an earlier day",
}


def recompute(rows: "pa.Table", weights: Mapping[str, float], scoring: Scoring) -> NDArray[np.float64]:
    """(n,) the final scores that follow from the stored parts of a ranking's rows and its header's weights."""
    column = {
        name: rows.column(name).to_numpy() for name in (*DIMENSIONS, "bonus", "soft_penalty", "diversity_penalty")
    }
    return final_scores(
        np.column_stack([column[name] for name in DIMENSIONS]),
        [weights[name] for name in DIMENSIONS],
        bonus=column["bonus"],
        penalty=column["soft_penalty"],
        diversity_penalty=column["diversity_penalty"],
        scoring=scoring,
    )


def why(row: Mapping[str, Any], header: Mapping[str, Any], *, scored: int, cutoff: float | None) -> list[str]:
    """Sentences on a ranking's row: place, what each dimension brought, bonus, penalties, tags, what was missing.

    `scored` is the number of ranked papers and `cutoff` the score of the last one shown (None: the list is not full).
    """
    weights = header["weights"]
    sentences = [f"Place {row['rank']} of {scored} with a score of {row['final']:.3f}."]
    brought = {name: weights[name] * row[name] for name in DIMENSIONS if weights[name]}
    for name in sorted(brought, key=lambda name: -brought[name]):
        words, note = DIMENSIONS_IN_WORDS[name], ""
        if name == "semantic_relevance":
            note = f", judged {_METHODS_IN_WORDS[row['evaluation_method']]}"
        elif row[name] == 1 and name in _TAG_OF_WISH and _TAG_OF_WISH[name] not in row["tags"]:
            note = ", as every paper has: the profile names none"
        sentences.append(
            f"{words[0].upper()}{words[1:]}: {brought[name]:.3f} "
            f"({row[name]:.2f} of 1, weight {weights[name]:.2f}{note})."
        )
    if row["bonus"]:
        sentences.append(f"The mode {header['ranking_mode']} adds {row['bonus']:.3f}.")
    if row["soft_penalty"]:
        sentences.append(f"Keywords you avoid ({', '.join(row['penalty_keywords'])}) take {-row['soft_penalty']:.2f}.")
    if row["diversity_penalty"]:
        sentences.append(f"Its likeness to a paper placed higher takes {-row['diversity_penalty']:.2f}.")
    in_words = IN_WORDS | CONTRASTIVE_IN_WORDS
    notes = [in_words[tag] for tag in row["tags"] if not tag.startswith(SOFT_PENALTY)]
    if notes:
        sentences.append(f"To note: {', '.join(notes)}.")
    if row["paper_id"] in header.get("lane_places", {}):
        lane = header["lane_places"][row["paper_id"]]
        sentences.append(f"It has its place for your interest in {lane}, which no other paper shown serves.")
    if not row["shown"] and cutoff is not None:
        sentences.append(_what_was_missing(row, weights, top_k=header["top_k"], gap=cutoff - row["final"]))
    return sentences


def cutoff(shown: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> float | None:
    """The score it takes to stand in the list: the lowest among those shown for their score alone."""
    others = header["lane_places"]
    scores = [row["final"] for row in shown if "CONTRASTIVE_PICK" not in row["tags"] and row["paper_id"] not in others]
    return min(scores, default=None)


def as_sum(row: Mapping[str, Any], weights: Mapping[str, float]) -> str:
    """A row's score as one line of arithmetic, the largest part first."""
    parts = {DIMENSIONS_IN_WORDS[name]: weights[name] * row[name] for name in DIMENSIONS}
    parts |= {"ranking mode": row["bonus"], "keywords you avoid": row["soft_penalty"]}
    parts["likeness to one above"] = row["diversity_penalty"]
    told = [f"{by:+.3f} {name}" for name, by in sorted(parts.items(), key=lambda part: -abs(part[1])) if by]
    return f"{row['final']:.3f} = {' '.join(told).removeprefix('+')}"


def why_removed(reason: str) -> str:
    """A filter's reason as a sentence."""
    code, _, detail = reason.partition(":")
    words = _REASONS_IN_WORDS.get(code, code)
    return f"Not ranked: {words}{f' {detail}' if detail else ''}."


def _what_was_missing(row: Mapping[str, Any], weights: Mapping[str, float], *, top_k: int, gap: float) -> str:
    """What a paper outside the list lacks, and which single dimension at its best would have closed the gap."""
    if gap <= 0:
        return f"Not among the first {top_k}: the last of them has the same score and is newer or has the lower id."
    room = {name: weights[name] * (1 - row[name]) for name in DIMENSIONS}
    if row["soft_penalty"]:
        room["soft_penalty"] = -row["soft_penalty"]
    words = {**DIMENSIONS_IN_WORDS, "soft_penalty": "none of the keywords you avoid"}
    enough = [words[name] for name in sorted(room, key=lambda name: -room[name]) if room[name] > gap]
    remedy = f"the best mark in one of these would do: {'; '.join(enough)}" if enough else "no single mark would do"
    return f"Not among the first {top_k}: {gap:.3f} short of the last of them; {remedy}."
