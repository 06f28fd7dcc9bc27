"""Notes: which of the shown papers say much the same, and what each has of its own (SPEC G14)."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.contrast import SHARED, Contrast
from paper_assets.ranking.diversity import alike
from paper_assets.ranking.traits import Taxonomy, traits_of
from paper_assets.settings import ScoringConfig
from paper_assets.text.words import normal_form

_MOST_WORDS = 3  # of a paper's own traits in a note
_WORD = re.compile(r"\w{4,}")  # short ones tell little; the empty ones below are not those of BM25, but of titles
_EMPTY_WORDS = frozenset([
    "about", "after", "among", "approach", "based", "beyond", "both", "does", "from", "into", "learning", "method",
    "methods", "model", "models", "more", "over", "paper", "study", "than", "that", "their", "these", "this",
    "through", "toward", "towards", "under", "using", "what", "when", "where", "which", "with", "without",
])  # fmt: skip
_IN_WORDS = {"problem": "problem", "method": "method", "assumption": "learning assumption", "domain": "field"}


def comparison_notes(
    paper_ids: Sequence[str],
    titles: Sequence[str],
    abstracts: Sequence[str],
    vectors: NDArray[np.float32] | None,
    *,
    taxonomy: Taxonomy,
    scoring: ScoringConfig,
    contrast: Contrast | None = None,
) -> list[dict[str, Any]]:
    """Notes on the shown papers, given in rank order with vectors (k, d) if there are any; with a `contrast` the last
    one is the pick.

    Two papers are similar if their cosine is at least `similar_pair`, or at least `similar_pair_with_traits` and they
    share a problem and a method; without vectors such traits are enough. The pick is in no similar pair. The notes
    stand in the order of the ranks, the pick's at the end.
    """
    texts = [f"{title} . {abstract}" for title, abstract in zip(titles, abstracts, strict=True)]
    traits = traits_of(texts, taxonomy)
    problem, method = (traits[:, taxonomy.columns[name]].astype(int) for name in ("problem", "method"))
    similar = (problem @ problem.T > 0) & (method @ method.T > 0)
    if vectors is not None:
        similar &= alike(vectors, vectors, scoring.similar_pair_with_traits)
        similar |= alike(vectors, vectors, scoring.similar_pair)
    compared = len(paper_ids) - (contrast is not None)
    notes = []
    for one, other in combinations(range(compared), 2):
        if similar[one, other]:
            own = {
                paper_ids[a]: taxonomy.named(traits[a] & ~traits[b]) or _own_words(titles[a], texts[b])
                for a, b in ((one, other), (other, one))
            }
            both = set(_words(titles[other]))
            notes.append(
                {
                    "paper_ids": [paper_ids[one], paper_ids[other]],
                    "relation": "similar_approach",
                    "shared_traits": taxonomy.named(traits[one] & traits[other])
                    or [word for word in _words(titles[one]) if word in both],
                    "differentiator": _differentiator(own),
                }
            )
    return [*notes, _contrast_note(contrast, paper_ids)] if contrast else notes


def _differentiator(own: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{paper_id}: {', '.join(words[:_MOST_WORDS])}" for paper_id, words in own.items() if words]
    return "; ".join(parts) or "title and abstract show no difference"


def _contrast_note(contrast: Contrast, paper_ids: Sequence[str]) -> dict[str, Any]:
    differs = contrast.info["contrast_dimensions"][0]
    same, other = _IN_WORDS[SHARED[contrast.kind]], _IN_WORDS[contrast.kind]
    return {
        "paper_ids": [paper_ids[-1], *(paper_ids[place] for place in contrast.like)],
        "relation": "contrastive",
        "contrast_point": f"same {same} ({', '.join(contrast.shared)}), other {other}: "
        f"{', '.join(differs['this'])} instead of {', '.join(differs['others'])}",
    }


def _own_words(title: str, other: str) -> list[str]:
    known = set(_words(other))
    return [word for word in _words(title) if word not in known]


def _words(text: str) -> list[str]:
    """The telling words of a text in normal form, each once."""
    return [word for word in dict.fromkeys(_WORD.findall(normal_form(text))) if word not in _EMPTY_WORDS]
