"""How the papers of a list stand to each other: which go the same way, and what the contrastive pick differs in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper_assets.digests.plain_text import sentence
from paper_assets.text.cleaning import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Why the contrastive pick stands here; `rows`: dimension, this paper's traits, those of the others."""

    point: str
    rows: tuple[tuple[str, str, str], ...]


def contrast_of(header: Mapping[str, Any], places: Mapping[str, int]) -> Contrast:
    """Of the pick that a ranking's header describes; shown papers are named by their `places`."""
    points = [note["contrast_point"] for note in header["comparison_notes"] if note["relation"] == "contrastive"]
    info = header["contrastive_info"] or {}
    return Contrast(
        point=_by_place(points[0], places) if points else "",
        rows=tuple(
            (one_line(row["dimension"]), _listed(row["this"]), _listed(row["others"]))
            for row in info.get("contrast_dimensions", ())
        ),
    )


def same_way(note: Mapping[str, Any], places: Mapping[str, int]) -> str:
    """A comparison note as a line; shown papers are named by their places."""
    papers = " and ".join(f"no. {places[each]}" if each in places else one_line(each) for each in note["paper_ids"])
    shared = f" ({_listed(note['shared_traits'])})" if note["shared_traits"] else ""
    own = _by_place(note["differentiator"], places)
    return f"{sentence(papers)} go the same way{shared}. {sentence(own)}."


def _by_place(text: str, places: Mapping[str, int]) -> str:
    """The text with the ids of shown papers replaced by their places."""
    if not places:
        return one_line(text)
    ids = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(places, key=len, reverse=True)))
    return one_line(ids.sub(lambda found: f"no. {places[found[0]]}", text))


def _listed(traits: Sequence[str]) -> str:
    return ", ".join(one_line(trait) for trait in traits) or "–"
