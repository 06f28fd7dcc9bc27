"""Questions worth asking: of which papers a word would teach most (SPEC L5).

For each interest the unrated paper of which the ranking is least sure, its probability being nearest to one half; first
those of the interests that the list serves least. At most three a day.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from paper_assets.ranking.final_list import probability_of

MOST = 3
_NOT_SURE = 0.05, 0.95  # outside, the answer is known well enough


def questions(rows: Sequence[Mapping[str, Any]], rated: Collection[str]) -> list[str]:
    """Ids of the papers to ask about, out of the rows of a ranking with a line."""
    shown = Counter(row["lane"] for row in rows if row["shown"])
    best: dict[str | None, tuple[float, str]] = {}
    for row in rows:
        probability = probability_of(row)
        if row["paper_id"] in rated or not _NOT_SURE[0] <= probability <= _NOT_SURE[1]:
            continue
        unsure = abs(probability - 0.5), row["paper_id"]
        best[row["lane"]] = min(best.get(row["lane"], unsure), unsure)
    order = sorted(best, key=lambda lane: (shown[lane], best[lane]))
    return [best[lane][1] for lane in order[:MOST]]
