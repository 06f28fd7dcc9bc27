"""Why a paper stands above one with a higher score: the list goes by more than the score (SPEC G12, G17)."""

from collections.abc import Mapping, Sequence
from typing import Any

from paper_assets.ranking.final_list import tenth

_SHOWN = 0.0005  # a smaller difference is none on the page


def order_notes(shown: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> dict[str, str]:
    """A sentence by paper id, for those whose place is not that of their score. `shown`: the list's rows by rank."""
    notes: dict[str, str] = {}
    for at, row in enumerate(shown):
        better = [each for each in shown[at + 1 :] if each["final"] > row["final"] + _SHOWN]
        picks = [each for each in better if "CONTRASTIVE_PICK" in each["tags"]]
        for pick in picks:
            notes[pick["paper_id"]] = "It has the last place whatever its score: it was picked for contrast."
        if header.get("line") is None or len(picks) == len(better):
            continue
        passed = next(each for each in better if each not in picks)
        mine, its = (each["semantic_relevance"] for each in (row, passed))
        if tenth(mine) > tenth(its):
            notes[row["paper_id"]] = (
                f"Above no. {passed['rank']}, whose score is higher: it is more probably on topic ({mine:.2f} against "
                f"{its:.2f}), and the list goes by tenths of that before it goes by score."
            )
    return notes
