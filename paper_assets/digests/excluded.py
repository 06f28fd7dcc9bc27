"""Remove papers with excluded keywords from stored answers and rewrites (G3).

Rankings never contain them; answers and rewrites may, from before the keyword was added or from another profile.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.stores.rewrites import RewriteItem


def papers_named(answers: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of the papers that stored answers cite."""
    return {name for each in _documents(answers) if (name := each["metadata"].get("paper_id"))}


def without_excluded(
    answers: Sequence[Mapping[str, Any]],
    rewrites: Sequence[RewriteItem],
    *,
    papers: Mapping[str, Paper],
    keywords: Sequence[str],
) -> tuple[list[dict[str, Any]], list[RewriteItem]]:
    """Remove what the keywords exclude from answers and rewrites; a side that loses documents reports how many.

    `papers`: by id, as far as stored; for others the text in the answer or rewrite is checked.
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
    removed = f"{gone} removed because of your excluded keywords"
    shortfall = "; ".join(part for part in (side["shortfall"], removed) if part)
    return {**side, "documents": stays, "shortfall": shortfall}


def _documents(answers: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (each for answer in answers for side in answer["sides"] for each in side["documents"])
