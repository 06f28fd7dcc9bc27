"""Select the contrastive paper, which differs from the list in one aspect, and compare shown papers (SPEC G12-G14).

`contrastive_paper` selects the paper for the last place. `comparison_notes` names similar pairs of shown papers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import ContrastiveType
from paper_assets.ranking.scoring import alike
from paper_assets.ranking.traits import TRAIT_DIMENSIONS, Taxonomy, traits_of
from paper_assets.settings import ScoringConfig
from paper_assets.text.words import normal_form

Bools = NDArray[np.bool_]

# For each type of contrast (the dimension that must differ) the dimension that must be shared.
SHARED = {"method": "problem", "assumption": "method", "domain": "method"}

CONTRASTIVE_PICK = "CONTRASTIVE_PICK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The contrastive paper, and in what it differs from the chosen papers.

    Attributes:
        place: its place in the order that it was picked from; 0 is the best.
        kind: the dimension in which it differs.
        like: the places of the chosen papers that have one of the traits `shared`.
        shared: its traits on the dimension `SHARED[kind]` that are common among the chosen papers.
        info: the result's `contrastive_info` (G12).
    """

    place: int
    kind: ContrastiveType
    like: tuple[int, ...]
    shared: tuple[str, ...]
    info: dict[str, Any]


def contrastive_paper(
    texts: pa.ChunkedArray,
    order: NDArray[np.int64],
    *,
    chosen: int,
    kind: ContrastiveType,
    taxonomy: Taxonomy,
) -> Contrast | None:
    """Return the first paper after the `chosen` first ones of `order` that contrasts with them, or None.

    `texts` (n,) are title and abstract, `order` (n,) the rows from best to last. A paper contrasts if

    - on the dimension `kind` it has traits, the chosen ones have some, and no chosen paper has one of its traits;
    - on the dimension `SHARED[kind]` it has a trait that is common among the chosen ones (`common_traits`).

    Returns None if nothing is chosen (top_k = 1), because there is nothing to contrast with.
    """
    first = traits_of(texts.take(order[:chosen]).to_pylist(), taxonomy)
    chosen_traits: Bools = np.logical_or.reduce(first)
    differ, same = taxonomy.columns[kind], taxonomy.columns[SHARED[kind]]
    common = common_traits(first[:, same])
    if not (chosen_traits[differ].any() and common.any()):
        return None
    for place in range(chosen, len(order)):
        (traits,) = traits_of([texts[int(order[place])].as_py()], taxonomy)
        shared = traits[same] & common
        if shared.any() and traits[differ].any() and not (traits[differ] & chosen_traits[differ]).any():
            return Contrast(
                place=place,
                kind=kind,
                like=tuple(np.flatnonzero((first[:, same] & shared).any(axis=1)).tolist()),
                shared=tuple(np.array(taxonomy.names[same])[shared].tolist()),
                info=_info(first, traits, kind, taxonomy),
            )
    return None


def common_traits(traits: Bools) -> Bools:
    """Return (t,) which traits at least half of the papers (n, t) have; if none, those of the largest number of papers.

    Traits that all papers have would be too few: abstracts do not name every trait of a paper.
    """
    papers = traits.sum(axis=0)
    half = 2 * papers >= max(len(traits), 1)
    return half if half.any() else (papers == papers.max(initial=0)) & (papers > 0)


def contrast_tags(kind: ContrastiveType) -> tuple[str, str]:
    """Return the tags of the contrastive paper (G13)."""
    return CONTRASTIVE_PICK, f"CONTRASTIVE_{kind.upper()}"


def _info(first: Bools, this: Bools, kind: ContrastiveType, taxonomy: Taxonomy) -> dict[str, Any]:
    """Return `contrastive_info` of the traits `first` (chosen, t) of the chosen papers and `this` (t,) of the
    contrastive paper.

    Its dimensions are `kind` and the others in which it shares no trait with any chosen paper.
    """
    chosen_traits: Bools = np.logical_or.reduce(first)
    common = np.concatenate([common_traits(first[:, taxonomy.columns[dimension]]) for dimension in TRAIT_DIMENSIONS])

    def parted(dimension: str) -> bool:
        part = taxonomy.columns[dimension]
        return bool(this[part].any() and chosen_traits[part].any() and not (this[part] & chosen_traits[part]).any())

    dimensions: Sequence[str] = [kind, *(name for name in TRAIT_DIMENSIONS if name != kind and parted(name))]
    return {
        "type": kind,
        "selected_papers_common_traits": taxonomy.named(common),
        "this_paper_traits": taxonomy.named(this),
        "contrast_dimensions": [
            {
                "dimension": dimension,
                "others": taxonomy.named(common, dimension),
                "this": taxonomy.named(this, dimension),
            }
            for dimension in dimensions
        ],
    }


_MOST_WORDS = 3  # of a paper's own traits in a note
_WORD = re.compile(r"\w{4,}")  # shorter words do not distinguish papers; those below are frequent in titles
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
    """Return notes (G14) on pairs of similar papers among the shown ones, and on the contrastive paper.

    The k shown papers are given in the order of their ranks; with a `contrast` the last one is the contrastive paper,
    which is not compared. `vectors` is (k, d). Two papers are similar if their cosine is at least `similar_pair`, or at
    least `similar_pair_with_traits` and they share a problem and a method; without vectors the traits are enough. Notes
    are in the order of the ranks, with that of the contrastive paper last.
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


NO_DIFFERENCE = "title and abstract show no difference"


def _differentiator(own: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{paper_id}: {', '.join(words[:_MOST_WORDS])}" for paper_id, words in own.items() if words]
    return "; ".join(parts) or NO_DIFFERENCE


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
    """Return the words of a text that can distinguish it, in normal form, each once."""
    return [word for word in dict.fromkeys(_WORD.findall(normal_form(text))) if word not in _EMPTY_WORDS]
