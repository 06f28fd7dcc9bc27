"""Papers that a profile's hard keywords exclude: neither evidence nor rewrite on its page (G3).

The ranking never holds them; a stored answer or rewrite may, from before the keyword or from another profile.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.stores.rewrites import RewriteItem


def papers_named(answers: Iterable[Mapping[str, Any]]) -> set[str]:
    """The papers that stored answers cite."""
    return {name for each in _documents(answers) if (name := each["metadata"].get("paper_id"))}


def without_excluded(
    answers: Sequence[Mapping[str, Any]],
    rewrites: Sequence[RewriteItem],
    *,
    papers: Mapping[str, Paper],
    keywords: Sequence[str],
) -> tuple[list[dict[str, Any]], list[RewriteItem]]:
    """Answers and rewrites without what the keywords exclude; a side from which something is gone says so.

    `papers` by id, as far as stored; of others what the answer or the rewrite itself holds is looked at.
    """
    texts = {
        each["metadata"].get("paper_id") or each["doc_id"]: (each["metadata"].get("title") or "", each["page_content"])
        for each in _documents(answers)
    }
    texts |= {item.paper_id: (item.title, item.original_text) for item in rewrites}
    texts |= {paper_id: (paper.title, paper.abstract) for paper_id, paper in papers.items() if paper_id in texts}
    excluded = _excluded(texts, keywords)
    kept = [
        {**answer, "sides": [_side(side, excluded) for side in answer["sides"]]} if excluded else dict(answer)
        for answer in answers
    ]
    return kept, [item for item in rewrites if item.paper_id not in excluded]


def _excluded(texts: Mapping[str, tuple[str, str]], keywords: Sequence[str]) -> set[str]:
    names, known = list(texts), distinct(keywords)
    if not names or not known:
        return set()
    table = pa.table({"title": [texts[name][0] for name in names], "abstract": [texts[name][1] for name in names]})
    found = keywords_in(paper_texts(table), known)
    return {names[row] for row in np.flatnonzero(found.any(axis=1)).tolist()}


def _side(side: Mapping[str, Any], excluded: set[str]) -> dict[str, Any]:
    stays = [each for each in side["documents"] if (each["metadata"].get("paper_id") or each["doc_id"]) not in excluded]
    gone = len(side["documents"]) - len(stays)
    if not gone:
        return dict(side)
    left_out = f"{gone} left out, which {'holds' if gone == 1 else 'hold'} a keyword that you exclude"
    told = "; ".join(part for part in (side["shortfall"], left_out) if part)
    return {**side, "documents": stays, "shortfall": told}


def _documents(answers: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (each for answer in answers for side in answer["sides"] for each in side["documents"])
