"""Find papers on a topic that the reader does not want, and what they lose for it (SPEC W2).

A topic to avoid is judged as an interest is, by meaning and by words, among the wanted interests. It is never positive
evidence. Words that it shares with a wanted interest do not count: "diffusion models in medicine" excludes medicine for
a reader who wants diffusion models.

- A paper that is nearer to a topic to avoid than to every wanted one, or that names the topic in its title, is removed.
- A paper that is near both loses points of log odds, in proportion to the probability that it is on the avoided topic;
  all of them if it is much nearer than others to what only the topic to avoid means.
- A topic that is only less interesting removes no paper, and costs half as many points.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.calibration import Cosines
from paper_assets.ranking.keywords import keywords_in
from paper_assets.ranking.preferences import shifted
from paper_assets.ranking.similarity import cosines
from paper_assets.text.acronyms import acronyms_ending_in, acronyms_of_phrases, spelled_out
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.text.words import asks, stem, stems_in, words_in

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BETWEEN_PARTS = re.compile(r"[(),;]|\b(?:or|and)\b")
_NEAR = 0.12  # probability of the topic to avoid from which a paper is near it
_BESIDE = 2.0  # standard deviations of `beside_wanted` from which a paper is certainly on the topic
_LEAST_OWN = 0.5  # length of a topic's own direction below which it means the same as a wanted topic
_TINY = 1e-6
_LOST, _LOST_IF_MILD = 2.0, 1.0  # points of log odds that a paper loses which is certainly on the topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Avoided:
    """What n papers lose for the topics to avoid.

    Attributes:
        names: the topics.
        nearest: (n,) index in `names` of the topic that decides; -1 if the paper is near none.
        removed: (n,) whether the paper leaves the list.
        points: (n,) points of log odds that it loses, 0 or less.
    """

    names: tuple[str, ...]
    nearest: NDArray[np.intp]
    removed: Bools
    points: Floats

    def values(self, relevance: Floats) -> Floats:
        """Return the relevance (n,) of the papers after the loss; that of removed papers is 0."""
        return np.where(self.removed, 0.0, shifted(relevance, self.points))


def avoided_papers(
    names: tuple[str, ...],
    mild: Sequence[bool],
    *,
    probabilities: Floats,
    of_wanted: Floats,
    in_title: Bools,
    beside: Floats | None = None,
) -> Avoided:
    """Return what n papers lose, from the probabilities (t, n) of t topics to avoid and the highest wanted one (n,).

    `in_title` (n, t) is whether the title names the topic, `mild` (t,) whether the topic is only less interesting,
    `beside` (t, n) what `beside_wanted` returns.
    """
    is_mild = np.array(mild, dtype=bool)[:, None]
    certain = in_title.T if beside is None else in_title.T | (beside >= _BESIDE)
    on_topic = np.where(certain, 1.0, np.where(probabilities >= _NEAR, probabilities, 0.0))
    removing: Bools = ~is_mild & (in_title.T | ((on_topic > 0) & (probabilities > of_wanted)))
    lost = on_topic * np.where(is_mild, _LOST_IF_MILD, _LOST)
    nearest = (lost + removing * _LOST).argmax(axis=0)
    return Avoided(
        names=names,
        nearest=np.where(on_topic.any(axis=0), nearest, -1),
        removed=np.asarray(removing.any(axis=0)),
        points=-lost.max(axis=0),
    )


def beside_wanted(vectors: NDArray[np.float32], avoided: Floats, wanted: Floats, *, usual: Cosines) -> Floats:
    """Return (t, n) how near papers are to what t topics to avoid mean beside the wanted ones, in standard deviations.

    Of each topic's vector (t, d) the part that the wanted vectors (w, d) span is left out: "healthcare" for a reader
    of federated learning does not mean federated learning, and "speech synthesis" from speech.
    """
    if len(wanted):
        _, sizes, directions = np.linalg.svd(wanted, full_matrices=False)
        spanned = directions[sizes > _TINY]
        avoided = avoided - (avoided @ spanned.T) @ spanned
    length = np.linalg.norm(avoided, axis=1)
    near = cosines(vectors, avoided / np.maximum(length, _TINY)[:, None]).T
    papers = near.shape[1]
    away = near - (np.sort(near, axis=1).sum(axis=1) / max(papers, 1))[:, None]
    squares = np.sort(away**2, axis=1).sum(axis=1) + usual.weight * usual.spread**2
    z: Floats = away / np.sqrt(squares / (papers + usual.weight))[:, None]
    return np.where(length[:, None] < _LEAST_OWN, 0.0, z)


def own_words(wanted: Sequence[str], topic: str) -> str:
    """Return a topic without the words that a wanted topic has too; the topic itself if none would be left."""
    known = {each for text in wanted for each in stems_in(text)}
    parts = [
        " ".join(word for word in words_in(part) if asks(word) and stem(word) not in known)
        for part in _BETWEEN_PARTS.split(topic)
    ]
    return "; ".join(filter(None, parts)) or topic


def named_in(titles: IndexedTexts, topics: Sequence[str]) -> Bools:
    """Return (n, t) whether each title names each topic, or a part of one: its words in this order, or its acronym."""
    forms = [_forms(topic) for topic in topics]
    found = keywords_in(titles, [form for of_topic in forms for form in of_topic])
    ends = np.cumsum([len(of_topic) for of_topic in forms])
    return np.column_stack([part.any(axis=1) for part in np.split(found, ends[:-1], axis=1)])


def _forms(topic: str) -> list[str]:
    forms: dict[str, None] = {}
    for part in _BETWEEN_PARTS.split(topic):
        words = words_in(part)
        forms |= {" ".join(words): None, " ".join(spelled_out(words)): None}
        for start, end, acronym in acronyms_of_phrases(words):
            forms[" ".join([*words[:start], acronym, *words[end:]])] = None
        forms |= dict.fromkeys(acronyms_ending_in(words))
    return [form for form in forms if form] or [topic]
