"""Explain in sentences why a paper has its place, and recompute its score from the stored parts (SPEC G16).

The functions read a row of a stored ranking and its header.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.filters import FILTERS
from paper_assets.ranking.final_list import match_of, order_value, points_on_topic
from paper_assets.ranking.levels import LIKELY, learned_of, level_of_row, probability_of
from paper_assets.ranking.scoring import final_scores
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, COPY_OF, avoided_topic, tag_in_words
from paper_assets.ranking.term_matching import matched_terms
from paper_assets.settings import ScoringConfig
from paper_assets.text.acronyms import spelled_out
from paper_assets.text.numbers import percent
from paper_assets.text.sentences import cut_with_ellipsis
from paper_assets.text.statements import topic_in
from paper_assets.text.tex import readable
from paper_assets.text.words import asks, commonest_forms, normal_form, singular, words_in
from paper_assets.weights import DIMENSIONS

_TAG_OF_WISH = {
    "must_keywords": "MUST_KEYWORD_MATCH",
    "author_trust": "PREFERRED_AUTHOR",
    "institution_trust": "PREFERRED_INSTITUTION",
}
FOR_ALL, LEARNED = "for_all", "learned"  # names of parts of a score that are not a column of the row
ADDED_IN_WORDS = {
    "bonus": "ranking mode and purpose",
    "soft_penalty": "keywords you avoid",
    "diversity_penalty": "similar to a paper higher up",
}
LEARNED_IN_WORDS = "what your ratings taught"
PARTS_IN_WORDS = {**DIMENSIONS_IN_WORDS, LEARNED: LEARNED_IN_WORDS, **ADDED_IN_WORDS}
_NAMED = 4  # words of an interest
_REASONS_IN_WORDS = {paper_filter.code: paper_filter.words for paper_filter in FILTERS}


def recompute(rows: pa.Table, weights: Mapping[str, float], scoring: ScoringConfig) -> NDArray[np.float64]:
    """Recompute the final scores (n,) from the parts in a ranking's rows and the weights of its header."""
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
    missing: str | None = None,
    texts: tuple[str, str] | None = None,
    numbers: bool = True,
) -> list[str]:
    """Explain a row in sentences: its place, the reason, what is missing, and with `numbers` the sum.

    `scored` is the number of ranked papers. `missing` is the sentence for a paper that is not in the list
    (`what_was_missing`). `texts` are title and abstract, in which the words of the interest are looked up (None: no
    words are named).
    """
    said = reason(row, header, texts)
    sentences = [f"Place {row['rank']} of {scored}.", f"{said[:1].upper()}{said[1:]}"]
    if "CONSIDERED_BEFORE" in row["tags"] and row["evaluation_method"] != "embedding+llm":
        sentences.append("An earlier list considered it and did not show it, which lowers the probability.")
    sentences += [*_learned_in_words(row, texts), missing or ""]
    if numbers:
        sentences += [f"The {order_name(header)} is {order_as_sum(row, header)}.", *_relevance_in_words(row, header)]
    return list(filter(None, sentences))


_MOST_OF_A_TOPIC = 60  # characters
_IN_A_REASON = (
    "MUST_KEYWORD_MATCH", "PREFERRED_AUTHOR", "PERHAPS_AUTHOR", "PREFERRED_INSTITUTION", "CODE_AVAILABLE",
    "PROJECT_PAGE", "SURVEY", "ALREADY_DOWNLOADED", "LIKE_WORTH", "LIKE_NO", "LLM_VERIFIED", *CONTRASTIVE_IN_WORDS,
)  # fmt: skip


def reason(
    row: Mapping[str, Any],
    header: Mapping[str, Any],
    texts: tuple[str, str] | None = None,
    *,
    named: Mapping[str, str] | None = None,
) -> str:
    """Explain a row in one sentence: "medical image segmentation in title and abstract; few labels not found; code.".

    `texts` are title and abstract, `named` the words of tags by tag where they name an author, an institution or a
    keyword.
    """
    nearest, parts = row.get("nearest"), list[str]()
    if nearest and nearest_is_liked(row):
        parts.append(f"like “{cut_with_ellipsis(readable(nearest), _MOST_OF_A_TOPIC)}”, which you like")
    elif nearest:
        parts += _topic_found(nearest, texts)
    if row["paper_id"] in (header.get("interest_places") or {}):
        parts.append("the only one shown for that interest")
    for tag in row["tags"]:
        if tag in _IN_A_REASON or ":" in tag:
            parts.append((named or {}).get(tag) or _BRIEF.get(tag) or tag_in_words(tag))
    if row["diversity_penalty"]:
        parts.append("similar to a paper above it")
    return f"{'; '.join(parts)}." if parts else ""


_BRIEF = {"CODE_AVAILABLE": "code", "PROJECT_PAGE": "project page", "SURVEY": "survey"}


@lru_cache(1024)  # for the file, the pages and the answer of a list
def _topic_found(interest: str, texts: tuple[str, str] | None) -> Sequence[str]:
    """Return where an interest, or else which of its words, are in title and abstract, and which are in neither."""
    interest = topic_in(interest)
    topic = cut_with_ellipsis(readable(interest), _MOST_OF_A_TOPIC)
    if texts is None:
        return [f"near to {topic}"]
    phrase = f" {normal_form(interest)} "
    holding = [
        field
        for field, text in zip(("title", "abstract"), texts, strict=True)
        if phrase in f" {' '.join(words_in(text))} " or phrase in f" {normal_form(text)} "
    ]
    if holding:
        return [f"{topic} in {' and '.join(holding)}"]
    in_title, in_abstract = matched_terms(interest, *texts)
    found = {singular(word) for word in words_in(" ".join((*in_title, *in_abstract)))}
    asked = [word for word in dict.fromkeys(words_in(interest)) if asks(word)]
    missing = [word for word in asked if not found.issuperset(_sought(word))] if len(asked) <= _NAMED else []
    written = {singular(word): word for word in (*spelled_out(words_in(interest)), *words_in(interest))}
    parts = [
        f"{', '.join(_apart(_as_found(term, written) for term in terms)[:_NAMED])} in {field}"
        for terms, field in ((in_title, "title"), (in_abstract, "abstract"))
        if terms
    ]
    if not parts:
        return [f"near to {topic} in meaning"]
    phrases = re.sub(r"\S+", lambda word: word[0] if word[0] in missing else ",", " ".join(words_in(interest)))
    named = list(filter(None, (" ".join(phrase.split()) for phrase in phrases.split(","))))
    return [*parts, *([f"{', '.join(dict.fromkeys(named[:_NAMED]))} not found"] if missing else [])]


def _sought(word: str) -> set[str]:
    """Return the words whose presence means that a word was found: those of its long form if it is an acronym."""
    return {singular(each) for each in spelled_out([word]) if asks(each)}


def _apart(terms: Iterable[str]) -> list[str]:
    """Return the terms, each once, that are not part of another one: SLAM of "visual SLAM"."""
    once = list(dict.fromkeys(terms))
    return [term for term in once if not any(f" {term} " in f" {other} " for other in once if other != term)]


def _as_found(term: str, written: Mapping[str, str]) -> str:
    """Return a matched term as the paper has it: the acronym or the derived form that follows it in brackets."""
    words, _, form = term.partition(" (")
    return form.removesuffix(")") or " ".join(written.get(word, word) for word in words.split())


def what_was_missing(paper_id: str, rows: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> str | None:
    """Return why a paper is not in the list; None for a paper in the list. `rows` are all rows of the ranking."""
    row = next(row for row in rows if row["paper_id"] == paper_id)
    shown = [other for other in rows if other["shown"]]
    if row["shown"]:
        return None
    if of := next((tag.partition(":")[2] for tag in row["tags"] if tag.startswith(COPY_OF)), None):
        return f"Not in the list: it is the same paper as {of}, which stands for both."
    if topic := avoided_topic(row["tags"]):
        return f"Not in the list: it is nearer to what you avoid ({topic}) than to anything that you want."
    if header.get("threshold") is None:
        gap = order_value(shown[-1], header) - order_value(row, header)
        if gap <= 0:
            return f"Not among the first {len(shown)}: the last of them has the same score and comes first as newer."
        return f"Not among the first {len(shown)}: {gap:.3f} short of the last of them."
    level = level_of_row(row, header)
    if level is None:
        return "Not in the list: it is unlikely to be about your interests."
    places = "the place" if len(shown) == 1 else f"all {len(shown)} places"
    places += f" went to {'newer papers or ' if header.get('ranking_mode') == 'novelty' else ''}better matches"
    if level.least < LIKELY:
        return f"Not in the list: it is {level.name}, and {places}."
    ahead = sum(not other["shown"] and other["rank"] < row["rank"] for other in rows)
    if order_value(row, header) > order_value(shown[-1], header) and (given := header.get("interest_places")):
        places = f"a place went to a paper that is about as likely, for your interest in {', '.join(given.values())}"
    return f"Not in the list: it is {level.name}, and {places}. It is number {ahead + 1} of the likely papers after it."


def parts_of(row: Mapping[str, Any], weights: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """Return the parts of a row's score, the largest first: (name of the column, words, points).

    Preferences that the profile does not have give every paper the same points; together they are one part, `FOR_ALL`.
    """
    points = {name: weights[name] * row[name] for name in DIMENSIONS}
    for_all = sum(points.pop(name) for name in _TAG_OF_WISH if _as_every_paper(name, row))
    parts = [(name, DIMENSIONS_IN_WORDS[name], by) for name, by in points.items()]
    parts.append((LEARNED, LEARNED_IN_WORDS, weights["semantic_relevance"] * learned_of(row)))
    parts += [(name, ADDED_IN_WORDS[name], row[name]) for name in ADDED_IN_WORDS]
    parts.append((FOR_ALL, "the same for every paper", for_all))
    return sorted((part for part in parts if part[2]), key=lambda part: -abs(part[2]))


def as_sum(row: Mapping[str, Any], weights: Mapping[str, float]) -> str:
    """Return a row's score as one line of arithmetic, the largest part first."""
    terms = [f"{points:+.3f} {words}" for _, words, points in parts_of(row, weights)]
    return f"{row['final']:.3f} = {' '.join(terms).removeprefix('+')}"


def order_name(header: Mapping[str, Any]) -> str:
    """Return the name of the number that orders the list: "match" or "score"."""
    return "score" if header.get("preference_weight") is None else "match"


def order_parts(row: Mapping[str, Any], header: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return the parts whose sum is the number that orders the list (`order_value`): (name, words, points)."""
    weights, preference_weight = header["weights"], header.get("preference_weight")
    if preference_weight is None:
        return parts_of(row, weights)
    probability, cap = probability_of(row), header.get("probability_cap")
    words = f"{percent(probability)} on topic"
    if cap and probability > cap:
        words += f" (for ideas it counts as {percent(cap)})"
    parts = [("semantic_relevance", words, points_on_topic(row, header))]
    for name in DIMENSIONS:
        if name != "semantic_relevance":
            value = row[name] - 1 if name == "recency" or _as_every_paper(name, row) else row[name]
            parts.append((name, DIMENSIONS_IN_WORDS[name], preference_weight * weights[name] * value))
    parts += [(name, words, preference_weight * row[name]) for name, words in ADDED_IN_WORDS.items()]
    return [parts[0], *sorted((part for part in parts[1:] if part[2]), key=lambda part: -abs(part[2]))]


def order_as_sum(row: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Return the number that orders the list as one line of arithmetic: the match, or the score where there is none."""
    match = match_of(row, header)
    if match is None:
        return as_sum(row, header["weights"])
    terms = [f"{points:+.2f} for {words}" for _, words, points in order_parts(row, header)]
    return f"{match:.2f} = {' '.join(terms).removeprefix('+')}"


def why_removed(reason: str) -> str:
    """Return a filter's reason as a sentence."""
    return f"Not ranked: {removed_in_words(reason)}."


def removed_in_words(reason: str) -> str:
    """Return a filter's reason in words."""
    code, _, detail = reason.partition(":")
    words = _REASONS_IN_WORDS.get(code, code)
    return f"{words} {detail}" if detail else words


def _as_every_paper(name: str, row: Mapping[str, Any]) -> bool:
    """Return whether every paper has the value 1 in this dimension because the profile has no such preference."""
    return name in _TAG_OF_WISH and row[name] == 1 and _TAG_OF_WISH[name] not in row["tags"]


def nearest_is_liked(row: Mapping[str, Any]) -> bool:
    """Return whether what a row is nearest to is the title of a liked paper, and not an interest."""
    return row.get("interest_probability") is None and row.get("library") is not None


def _relevance_in_words(row: Mapping[str, Any], header: Mapping[str, Any]) -> list[str]:
    """Return what relevance is computed from: cosine and words, the nearest interest, liked papers.

    Empty for rankings without these parts.
    """
    named_parts = (("meaning", "by meaning"), ("words", "by words"))
    parts = " and ".join(f"{row[name]:.2f} {words}" for name, words in named_parts if row.get(name) is not None)
    if not parts:
        return []
    nearest, probability, library = (row.get(name) for name in ("nearest", "interest_probability", "library"))
    if probability is None:
        to = "the papers you like" if library is not None else "your interests"
        return [f"It is near {to}: {parts}{f', most of all to {nearest}' if nearest else ''}."]
    if best := header.get("best_matches"):
        parts += f", and similarity to the {best} papers that match it best"
    sentences = (
        [f"Nearest is your interest in {nearest}: {parts}, which alone would make {percent(probability)}."]
        if nearest
        else []
    )
    if library is not None:
        sentences.append(f"The papers you like alone would make {percent(library)}.")
    return sentences


def _learned_in_words(row: Mapping[str, Any], texts: tuple[str, str] | None) -> list[str]:
    """Return by how much ratings changed the probability, with the words and the rated papers that explain it."""
    learned = learned_of(row)
    if not learned:
        return []
    change = f"Your ratings moved the probability by {100 * learned:+.1f} points to {percent(probability_of(row))}"
    explanations = []
    if row.get("learned_words"):
        forms = commonest_forms(texts or (), [word[1:] for word in row["learned_words"]])
        words = (f"{word[0]}{forms.get(word[1:], word[1:])}" for word in row["learned_words"])
        explanations.append(f"by the words {', '.join(words)}")
    if row.get("learned_near"):
        explanations.append(f"next to {' and '.join(row['learned_near'])}, which you rated")
    return [f"{change}{': ' if explanations else ''}{'; '.join(explanations)}."]
