"""Explain in plain sentences why a paper has its place, and prove its score from the stored parts (SPEC G16)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.filters import FILTERS
from paper_assets.ranking.final_list import (
    ScoredPapers,
    arrange,
    edge_of,
    learned_of,
    match_of,
    order_value,
    points_above,
    probability_of,
    scored_papers,
    tenth,
)
from paper_assets.ranking.scoring import REWARDED, final_scores
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, IN_WORDS, SOFT_PENALTY
from paper_assets.ranking.term_matching import matched_terms
from paper_assets.settings import ScoringConfig
from paper_assets.text.numbers import percent, percent_against
from paper_assets.text.words import commonest_forms
from paper_assets.weights import DIMENSIONS

_TAG_OF_WISH = {
    "must_keywords": "MUST_KEYWORD_MATCH",
    "author_trust": "PREFERRED_AUTHOR",
    "institution_trust": "PREFERRED_INSTITUTION",
}
FOR_ALL, LEARNED = "for_all", "learned"  # names of parts that have no column
_ADDED_IN_WORDS = {
    "bonus": "ranking mode and purpose",
    "soft_penalty": "keywords you avoid",
    "diversity_penalty": "likeness to one above",
}
_METHODS_IN_WORDS = {
    "embedding": "by the meaning and words of title and abstract",
    "embedding+llm": "by a language model, which was asked because the meaning alone left it open",
    "keyword": "by keywords only, because the embedding model could not be loaded",
    "profile_free": "not judged, because there is no profile",
}
_SAID_BY_THE_MATCH = frozenset(("SEMANTIC_HIGH_MATCH", "VERY_RECENT", "NO_CODE"))
LEARNED_IN_WORDS = "what your ratings taught"
_NAMED = 4  # words of an interest
_SCORING = ScoringConfig()
_BEST = {"practicality": _SCORING.practicality_code + _SCORING.practicality_pdf}  # the others can reach 1
_REASONS_IN_WORDS = {each.code: each.words for each in FILTERS}


def recompute(rows: pa.Table, weights: Mapping[str, float], scoring: ScoringConfig) -> NDArray[np.float64]:
    """Return (n,) the final scores that follow from the stored parts of a ranking's rows and its header's weights."""
    column = {
        name: rows.column(name).to_numpy() for name in (*DIMENSIONS, "bonus", "soft_penalty", "diversity_penalty")
    }
    learned = rows.column("learned")
    return final_scores(
        np.column_stack([column[name] for name in DIMENSIONS]),
        [weights[name] for name in DIMENSIONS],
        bonus=column["bonus"],
        penalty=column["soft_penalty"],
        diversity_penalty=column["diversity_penalty"],
        learned=None if not learned.is_valid().to_numpy().any() else learned.fill_null(0.0).to_numpy(),
        scoring=scoring,
    )


def why(
    row: Mapping[str, Any],
    header: Mapping[str, Any],
    *,
    scored: int,
    place: int | None = None,
    missing: str | None = None,
    texts: tuple[str, str] | None = None,
) -> list[str]:
    """Explain a ranking's row in sentences: place, what each dimension brought, bonus, penalties, tags, what it lacks.

    `scored` is the number of ranked papers, `place` the number under which the paper is shown, `missing` what to say
    last of one that is not shown (`what_was_missing`). `texts`: title and abstract, to name the words of the interest
    that they hold.
    """
    weights, line = header["weights"], header.get("line")
    sentences = [f"Place {row['rank']} of {scored} with a score of {row['final']:.3f}."]
    if match_of(row, header) is not None:
        sentences[0] = f"Place {row['rank']} of {scored}. {_match_in_words(row, header)}"
    if place not in (None, row["rank"]):
        sentences.append("Papers before it that are almost certainly off topic are not shown.")
    if line is not None:
        sentences.append(_against_threshold(probability_of(row), line))
        rule = header.get("line_rule")
        if rule and line > rule["lowest"]:
            sentences.append(
                "With a lower threshold, too few of the list's papers would be on topic: "
                f"{percent(rule['right'])} of them are needed."
            )
        elif rule and line < rule["lowest"]:
            sentences.append("The first list for these interests shows its best paper even if it is doubtful.")
    brought = {name: weights[name] * row[name] for name in DIMENSIONS if weights[name]}
    for name in sorted(brought, key=lambda name: -brought[name]):
        words, note, mark = DIMENSIONS_IN_WORDS[name], "", f"{row[name]:.2f} of 1"
        if name == "semantic_relevance":
            mark = percent(row[name])  # as everywhere else
            note = f", judged {_METHODS_IN_WORDS[row['evaluation_method']]}"
        elif _as_every_paper(name, row):
            note = ", as every paper has: the profile names none"
        sentences.append(
            f"{words[0].upper()}{words[1:]}: {brought[name]:.3f} ({mark}, weight {weights[name]:.2f}{note})."
        )
        if name == "semantic_relevance":
            sentences += _relevance_in_words(row, header)
            sentences += _words_found(row, texts)
            sentences += _must_keyword_in_words(row, header)
            if "CONSIDERED_BEFORE" in row["tags"] and row["evaluation_method"] != "embedding+llm":
                sentences.append("An earlier list considered it and did not show it, which lowers the probability.")
            sentences += _learned_in_words(row, weights[name], texts)
    if row["bonus"]:
        sentences.append(_bonus_in_words(row, header["ranking_mode"]))
    if row["soft_penalty"]:
        sentences.append(f"Keywords you avoid ({', '.join(row['penalty_keywords'])}) take {-row['soft_penalty']:.2f}.")
    if row["diversity_penalty"]:
        sentences.append(f"Its likeness to a paper placed higher takes {-row['diversity_penalty']:.2f}.")
    in_words = IN_WORDS | CONTRASTIVE_IN_WORDS
    notes = [in_words[tag] for tag in row["tags"] if not tag.startswith(SOFT_PENALTY)]
    if notes:
        sentences.append(f"Notable: {', '.join(notes)}.")
    if row["paper_id"] in (header.get("lane_places") or {}):
        lane = header["lane_places"][row["paper_id"]]
        sentences.append(f"It has its place for your interest in {lane}, which no other paper shown serves.")
    return [*sentences, *([missing] if missing else [])]


def why_briefly(row: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Explain a ranking's row in one line: its match as a sum, the nearest interest, and what its tags say."""
    parts = [order_as_sum(row, header)]
    if lane := row.get("lane"):
        parts.append(f"nearest: {lane}")
    in_words = IN_WORDS | CONTRASTIVE_IN_WORDS
    parts += [in_words[tag] for tag in row["tags"] if tag in in_words and tag not in _SAID_BY_THE_MATCH]
    return "; ".join(parts)


def what_was_missing(paper_id: str, rows: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> str | None:
    """Return what a paper outside the list lacks, and what would have brought it in; None for one that is shown.

    `rows` are all of the ranking. Each remedy named is verified: the list is arranged again with that change alone, and
    contains the paper.
    """
    at = next(number for number, row in enumerate(rows) if row["paper_id"] == paper_id)
    row, line = rows[at], header.get("line")
    if row["shown"]:
        return None
    papers = scored_papers(rows, header)
    shown = sum(each["shown"] for each in rows)
    probability, weight = probability_of(row), header["weights"]["semantic_relevance"]
    if line is not None and probability < line:
        words = f"Not in the list: the probability that it is on topic is {_with_needed(probability, line)}"
        if _listed_with(papers, at, probability=line, weight=weight):
            return f"{words}; with that it would be in, whatever else it brings."
        needed = _probability_needed(papers, at, weight)
        return f"{words}; {_tenths(needed)} would bring it into the list." if needed else f"{words}."
    last = _last_for_its_score(rows, header)
    if last is None:
        return f"Not among the first {shown}: all places are taken for an interest or by the contrastive pick."
    remedies = _remedies(papers, at, row, header)
    if papers.rules.shortlist:
        needed = _probability_needed(papers, at, weight)
        words = f"Not among the first {shown}: others above the threshold are more probable"
        if not needed:
            return f"{words}."
        gap = needed - probability
        if gap < 0.001:
            return f"{words}, or as probable with a better score, by less than 0.1 %."
        return f"{words}; with {_tenths(needed)} instead of {_tenths(probability)} it would be among them."
    gap = order_value(last, header) - order_value(row, header)
    remedy = f"the best mark in one of these would do: {'; '.join(remedies)}" if remedies else "no single mark would do"
    if line is not None and papers.rules.nudge is None:
        tenths = tenth(probability), tenth(probability_of(last))
        if tenths[0] < tenths[1]:
            return f"Not among the first {shown}: the papers there are in a higher tenth of probability; {remedy}."
    if gap < 0 and (lanes := header.get("lane_places")):
        interests = ", ".join(dict.fromkeys(lanes.values()))
        return f"Not among the first {shown}: a place goes to your interest in {interests}, whatever its match."
    if gap <= 0:
        return f"Not among the first {shown}: the last of them has the same score and is newer or has the lower id."
    return f"Not among the first {shown}: {gap:.3f} short of the last of them; {remedy}."


def parts_of(row: Mapping[str, Any], weights: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """Return what a row's score is made of, the largest part first: (name of its column, words, points).

    A wish that the profile does not state gives every paper the same: such parts are one, named `FOR_ALL`.
    """
    points = {name: weights[name] * row[name] for name in DIMENSIONS}
    for_all = sum(points.pop(name) for name in _TAG_OF_WISH if _as_every_paper(name, row))
    parts = [(name, DIMENSIONS_IN_WORDS[name], by) for name, by in points.items()]
    parts.append((LEARNED, LEARNED_IN_WORDS, weights["semantic_relevance"] * learned_of(row)))
    parts += [(name, _ADDED_IN_WORDS[name], row[name]) for name in _ADDED_IN_WORDS]
    parts.append((FOR_ALL, "the same for every paper", for_all))
    return sorted((part for part in parts if part[2]), key=lambda part: -abs(part[2]))


def as_sum(row: Mapping[str, Any], weights: Mapping[str, float]) -> str:
    """Return a row's score as one line of arithmetic, the largest part first."""
    terms = [f"{points:+.3f} {words}" for _, words, points in parts_of(row, weights)]
    return f"{row['final']:.3f} = {' '.join(terms).removeprefix('+')}"


def order_name(header: Mapping[str, Any]) -> str:
    """Return what the number that orders the list is called."""
    return "score" if header.get("nudge") is None else "match"


def order_parts(row: Mapping[str, Any], header: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return the parts that add up to the number that orders the list (`order_value`): (name, words, points)."""
    weights, nudge = header["weights"], header.get("nudge")
    if nudge is None:
        return parts_of(row, weights)
    probability, edge = probability_of(row), edge_of(header)
    words = f"{percent(probability)} on topic"
    if edge and probability > edge.probability:
        words += f" (this purpose prefers {percent(edge.probability)})"
    parts = [("semantic_relevance", words, points_above(probability, header))]
    for name in DIMENSIONS:
        if name != "semantic_relevance":
            mark = row[name] - 1 if name == "recency" or _as_every_paper(name, row) else row[name]
            parts.append((name, DIMENSIONS_IN_WORDS[name], nudge * weights[name] * mark))
    parts += [(name, words, nudge * row[name]) for name, words in _ADDED_IN_WORDS.items()]
    return [parts[0], *sorted((part for part in parts[1:] if part[2]), key=lambda part: -abs(part[2]))]


def order_as_sum(row: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Return the number that orders the list as one line of arithmetic: the match, or the score where there is none."""
    match = match_of(row, header)
    if match is None:
        return as_sum(row, header["weights"])
    terms = [f"{points:+.2f} {words}" for _, words, points in order_parts(row, header)]
    return f"{match:.2f} = {' '.join(terms).removeprefix('+')}"


def _match_in_words(row: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Return what the list is ordered by, in a sentence that adds up: the distance from the threshold, and the rest."""
    (_, words, points), *rest = order_parts(row, header)
    side = "below" if points < 0 else "above"
    first = f"{points:+.2f} for {words}, which is {side} the threshold"
    terms = [first, *(f"{by:+.2f} for {name}" for _, name, by in rest)]
    listed = " and ".join(filter(None, (", ".join(terms[:-1]), terms[-1])))
    return f"The list is ordered by the match. Here it is {order_value(row, header):+.2f}: {listed}."


def _tenths(probability: float) -> str:
    """Format a probability that must be exact to be true, in tenths of a percent."""
    return f"{100 * probability:.1f} %"


def why_removed(reason: str) -> str:
    """Return a filter's reason as a sentence."""
    return f"Not ranked: {removed_in_words(reason)}."


def removed_in_words(reason: str) -> str:
    """Return a filter's reason in words."""
    code, _, detail = reason.partition(":")
    words = _REASONS_IN_WORDS.get(code, code)
    return f"{words} {detail}" if detail else words


def _as_every_paper(name: str, row: Mapping[str, Any]) -> bool:
    """Return whether every paper has the full mark of this dimension because the profile has no such preference."""
    return name in _TAG_OF_WISH and row[name] == 1 and _TAG_OF_WISH[name] not in row["tags"]


def nearest_is_liked(row: Mapping[str, Any]) -> bool:
    """Return whether the row's nearest text (`lane`) is the title of a liked paper, and not an interest."""
    return row.get("lane_probability") is None and row.get("library") is not None


def _relevance_in_words(row: Mapping[str, Any], header: Mapping[str, Any]) -> list[str]:
    """Return what the relevance is based on: meaning and words, the nearest interest, likeness to liked papers.

    Empty for rankings that have no such parts.
    """
    named_parts = (("meaning", "by meaning"), ("words", "by words"))
    parts = " and ".join(f"{row[name]:.2f} {words}" for name, words in named_parts if row.get(name) is not None)
    if not parts:
        return []
    lane, probability, library = (row.get(name) for name in ("lane", "lane_probability", "library"))
    if probability is None:
        to = "the papers you like" if library is not None else "your interests"
        return [f"It is near {to}: {parts}{f', most of all to {lane}' if lane else ''}."]
    if best := header.get("best_matches"):
        parts += f", and likeness to the {best} papers that match it best"
    sentences = (
        [f"Nearest is your interest in {lane}: {parts}, which alone would make {percent(probability)}."] if lane else []
    )
    if library is not None:
        sentences.append(f"The papers you like alone would make {percent(library)}.")
    return sentences


def _words_found(row: Mapping[str, Any], texts: tuple[str, str] | None) -> list[str]:
    """Name the words of the nearest interest or liked title that title and abstract contain, if words counted."""
    if texts is None or not row.get("lane") or not row.get("words"):
        return []
    found = zip(matched_terms(row["lane"], *texts), ("in its title", "in its abstract"), strict=True)
    named = [f"{', '.join(f'“{term}”' for term in terms[:_NAMED])} {place}" for terms, place in found if terms]
    of = "the title that you like" if nearest_is_liked(row) else "that interest"
    return [f"Words of {of}: {'; '.join(named)}."] if named else []


def _must_keyword_in_words(row: Mapping[str, Any], header: Mapping[str, Any]) -> list[str]:
    """Return that a keyword raised the probability; empty after a language model's verdict and in older rankings."""
    raised = header.get("nudge") is not None and row["evaluation_method"] != "embedding+llm"
    if not (raised and _TAG_OF_WISH["must_keywords"] in row["tags"]):
        return []
    return ["A keyword that you ask for raises the probability, most of all in the title."]


def _bonus_in_words(row: Mapping[str, Any], mode: str) -> str:
    """Return how much the mode and the purpose add, and why."""
    survey = "SURVEY" in row["tags"]
    if mode in REWARDED:
        reason = f"The mode {mode} and the purpose literature_review add" if survey else f"The mode {mode} adds"
    else:
        reason = "The purpose literature_review adds"
    return f"{reason} {row['bonus']:.3f}{', because it is a survey' if survey else ''}."


def _learned_in_words(row: Mapping[str, Any], weight: float, texts: tuple[str, str] | None) -> list[str]:
    """Return by how much the reader's ratings changed the probability, by which words and which rated papers."""
    learned = learned_of(row)
    if not learned:
        return []
    named_parts = (
        f"Your ratings moved that by {100 * learned:+.1f} points to {percent(probability_of(row))}, "
        f"{weight * learned:+.3f} of the score"
    )
    said = []
    if row.get("learned_words"):
        forms = commonest_forms(texts or (), [each[1:] for each in row["learned_words"]])
        words = (f"{each[0]}{forms.get(each[1:], each[1:])}" for each in row["learned_words"])
        said.append(f"by the words {', '.join(words)}")
    if row.get("learned_near"):
        said.append(f"next to {' and '.join(row['learned_near'])}, which you rated")
    return [f"{named_parts}{': ' if said else ''}{'; '.join(said)}."]


def _against_threshold(probability: float, line: float) -> str:
    side = "Above" if probability >= line else "Below"
    return f"{side} the threshold: the probability that it is on topic is {_with_needed(probability, line)}."


def below_threshold(row: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return why a row follows the list, in a sentence, whatever its match; None for a row above the threshold."""
    line, probability = header.get("line"), probability_of(row)
    return None if line is None or probability >= line else _against_threshold(probability, line)


def _with_needed(probability: float, line: float) -> str:
    has, needed = percent_against(probability, line)
    return f"{has}, {needed} is needed"


def _listed_with(
    papers: ScoredPapers, at: int, *, probability: float | None = None, more: float = 0.0, weight: float = 0.0
) -> bool:
    """Return whether paper number `at` would be listed with another probability or with `more` points of score."""
    probabilities, final = papers.probability.copy(), papers.final.copy()
    if probability is not None:
        more += weight * (probability - probabilities[at])
        probabilities[at] = probability
    final[at] += more
    return bool(arrange(replace(papers, probability=probabilities, final=final)).listed[at])


def _probability_needed(papers: ScoredPapers, at: int, weight: float) -> float | None:
    """Return the least probability in thousandths that brings the paper into the list with nothing else changed."""
    low, high = int(np.ceil(1000 * papers.probability[at])), int(1000 * _best(papers))
    if low > high:
        return None
    if not _listed_with(papers, at, probability=_best(papers), weight=weight):
        return None
    while low < high:  # the more probable, the higher it is ranked
        middle = (low + high) // 2
        enough = _listed_with(papers, at, probability=middle / 1000, weight=weight)
        low, high = (low, middle) if enough else (middle + 1, high)
    return low / 1000


def _best(papers: ScoredPapers) -> float:
    """Return the probability that orders a paper highest: 1, or the edge of the purpose."""
    return papers.rules.edge.probability if papers.rules.edge else 1.0


def _last_for_its_score(rows: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the last paper shown that has its place for its score, and neither for an interest nor as the pick."""
    places = header.get("lane_places") or {}
    own = [
        row for row in rows if row["shown"] and "CONTRASTIVE_PICK" not in row["tags"] and row["paper_id"] not in places
    ]
    return max(own, key=lambda row: row["rank"], default=None)


def _remedies(papers: ScoredPapers, at: int, row: Mapping[str, Any], header: Mapping[str, Any]) -> list[str]:
    """Return in words which dimensions at their best mark, or which penalty removed, would each have brought the paper
    in, the largest first.
    """
    weights = header["weights"]
    gains = {name: weights[name] * (_BEST.get(name, 1.0) - row[name]) for name in DIMENSIONS}
    gains = {name: points for name, points in gains.items() if points > 0}
    if row["soft_penalty"]:
        gains["soft_penalty"] = -row["soft_penalty"]
    words = {**DIMENSIONS_IN_WORDS, "soft_penalty": "none of the keywords you avoid"}
    found = []
    for name in sorted(gains, key=lambda name: -gains[name]):
        if name == "semantic_relevance":
            enough = _listed_with(papers, at, probability=_best(papers), weight=weights[name])
        else:
            enough = _listed_with(papers, at, more=gains[name])
        if enough:
            found.append(words[name])
    return found
