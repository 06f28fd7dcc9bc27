"""Relevance and the final list once more, plain and slow: one paper, one interest, one word at a time.

The plain reference for `ranking/calibration.py` and `ranking/final_list.py`. Of the package it shares only the
records, the settings and the coefficients, which are data.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import paper_assets.ranking as package
from paper_assets.paper import Paper
from paper_assets.profile import Profile, RankingOptions
from paper_assets.ranking.relevance import topic_of
from paper_assets.settings import ScoringConfig
from tests.ranking.plain_twin import cosine, distinct, numbers, plain

FOLDER = Path(package.__file__).parent if package.__file__ else Path(next(iter(package.__path__)))
DATA = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))
LOGITS, LIBRARY = DATA["logits"], DATA["library"]
WORD_HOLDERS = dict(
    line.split("\t") for line in (FOLDER / "word_frequencies.tsv").read_text(encoding="utf-8").splitlines()
)
SCORING = ScoringConfig()
COSINES = DATA["cosines"]
MEANINGS = {
    acronym: meaning.split()
    for acronym, meaning, *_ in (
        line.split("\t") for line in (FOLDER.parent / "text" / "acronyms.tsv").read_text(encoding="utf-8").splitlines()
    )
}
HOLDERS = dict(line.split("\t") for line in (FOLDER / "stem_frequencies.tsv").read_text(encoding="utf-8").splitlines())
SMALL_WORDS = {"of", "the", "with", "a", "an", "for", "and", "on"}  # of those that the tests use
ENDINGS = [
    "ization", "isation", "izations", "ational", "fulness", "ousness", "iveness", "ations", "ation", "ating",
    "ators", "ator", "ative", "ated", "ates", "ions", "ion", "ings", "ing", "ness", "ment", "ments", "ities", "ity",
    "ically", "ical", "ics", "ic", "ive", "ous", "ful", "ers", "er", "ed", "es", "ly", "al", "ate", "s", "e", "y",
]  # fmt: skip


@cache
def singular(word: str) -> str:
    """A word without the s of its plural."""
    if len(word) > 3 and re.search("[a-z]s$", word) and not word.endswith("ss") and len(numbers(word)) > 1:
        if word.endswith("ies"):
            return word[:-3] + "y"
        if re.search("(sses|xes|shes|tzes)$", word):
            return word[:-2]
        if word.endswith("ches"):
            return word[:-1] if word in ("caches", "niches") or word.endswith("avalanches") else word[:-2]
        irregular = ("biases", "lenses", "atlases", "canvases", "aliases", "tuses", "nuses", "ruses", "puses", "suses")
        if word in ("gases", "buses") or word.endswith((*irregular, "cuses", "iuses")):
            return word[:-2]
        return word[:-1]
    return word


def stem(word: str) -> str:
    """A word without the s of its plural and without its ending."""
    word = singular(word)
    if not word.isalpha() or len(word) < 5:
        return word
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz" else word


def stems(text: str) -> list[str]:
    """The stems of a text's words, small words and single letters left out."""
    words = re.findall(r"[^\W_]+", plain(text))
    return [stem(word) for word in words if len(word) > 1 and word not in SMALL_WORDS]


def idf(one: str, papers: Sequence[Counter[Any]]) -> float:
    """Worth of a stem among these papers and the background."""
    known = DATA["background_weight"] * int(HOLDERS.get(one, 0)) / DATA["background_papers"]
    held = sum(one in paper for paper in papers) + known
    return math.log1p((len(papers) + DATA["background_weight"] - held + 0.5) / (held + 0.5))


Term = tuple[str, ...]


def spelled_out(part: str) -> list[str]:
    """A text's words in the singular, acronyms replaced by what they mean."""
    words = [singular(word) for word in re.findall(r"[^\W_]+", part)]
    return [singular(each) for word in words for each in MEANINGS.get(word, [word])]


def terms(text: str) -> list[Term]:
    """A text's content words, and the pairs of them that follow each other with nothing but a space between."""
    found: list[Term] = []
    for part in re.split(r"[^\w\s'+#-]+", plain(text)):
        kept = [word if len(word) > 1 and word not in SMALL_WORDS else "" for word in spelled_out(part)]
        found += [(word,) for word in kept if word]
        found += [(one, two) for one, two in pairwise(kept) if one and two]
    return list(dict.fromkeys(found))


def shorter(text: str, term: Term) -> list[str]:
    """The acronyms of a text's phrases that hold the whole term."""
    found = []
    for acronym, meaning in MEANINGS.items():
        phrase = [singular(word) for word in meaning]
        inside = times(phrase, term)
        if inside and any(times(spelled_out(part), tuple(phrase)) for part in re.split(r"[^\w\s'+#-]+", plain(text))):
            found.append(acronym)
    return found


def across(text: str, term: Term) -> list[Term]:
    """The pairs in which an acronym of the text's phrases is written for the words on one side of a pair of words."""
    found: list[Term] = []
    phrases = {acronym: [singular(word) for word in meaning] for acronym, meaning in MEANINGS.items()}
    for part in re.split(r"[^\w\s'+#-]+", plain(text)):
        words = spelled_out(part)
        for at, pair in enumerate(pairwise(words)):
            if pair != term:
                continue
            ends = [each for each, phrase in phrases.items() if words[: at + 1][-len(phrase) :] == phrase]
            begins = [each for each, phrase in phrases.items() if words[at + 1 :][: len(phrase)] == phrase]
            found += [(one, two) for one in [term[0], *ends] for two in [term[1], *begins]]
    return found


def times(words: list[str], term: Term) -> int:
    """How often a text's words hold a term."""
    return sum(tuple(words[at : at + len(term)]) == term for at in range(len(words)))


def word_scores(papers: list[tuple[str, str]], text: str) -> list[float] | None:
    """How strongly each paper (title, abstract) holds the terms of a text; None for a text without words."""
    asked = terms(text)
    if not asked:
        return None
    fields = [[[singular(word) for word in re.findall(r"[^\W_]+", plain(field))] for field in one] for one in papers]
    shorts = {term: shorter(text, term) for term in asked}
    forms = {
        term: list(dict.fromkeys([term, *((each,) for each in shorts[term]), *across(text, term)])) for term in asked
    }
    often = [
        {term: sum(3 * times(title, form) + times(abstract, form) for form in forms[term]) for term in asked}
        for title, abstract in fields
    ]
    weight, count = DATA["background_weight"], len(papers)
    worth = {}
    for term in asked:
        known = [int(WORD_HOLDERS.get(word, 0)) for word in term]
        short = sum(int(WORD_HOLDERS.get(each, 0)) for each in shorts[term])
        share = (short + (known[0] if len(term) == 1 else 0.25 * min(known))) / DATA["background_papers"]
        held = sum(one[term] > 0 for one in often) + weight * share
        worth[term] = math.log1p((count + weight - held + 0.5) / (held + 0.5)) ** 2
    length = math.sqrt(sum(worth.values()))
    written = [[re.findall(r"[^\W_]+", plain(field)) for field in one] for one in papers]
    single = [term for term in asked if len(term) == 1]
    derived = [
        {
            term: sum(
                times * [stem(word) for word in words].count(stem(term[0]))
                for times, words in zip((3, 1), one, strict=True)
            )
            for term in single
            if not held_times[term]
        }
        for held_times, one in zip(often, written, strict=True)
    ]
    family_worth = {}
    for term in single:
        share = int(HOLDERS.get(stem(term[0]), 0)) / DATA["background_papers"]
        held = sum(other.get(term, 1) > 0 for other in derived) + weight * share
        family_worth[term] = min(math.log1p((count + weight - held + 0.5) / (held + 0.5)) ** 2, worth[term])
    return [
        min(
            (
                sum(worth[term] * (1 + math.log(one[term])) for term in asked if one[term])
                + sum(0.5 * family_worth[term] * (1 + math.log(count)) for term, count in other.items() if count)
            )
            * (
                0.5
                if len(single) in (2, 3) and sum(bool(one[term] or other.get(term)) for term in single) == 1
                else 1.0
            )
            / length
            * max(1, 4 / length)
            / math.sqrt(max(len(title) + len(abstract), 50)),
            2.0,
        )
        for one, other, (title, abstract) in zip(often, derived, fields, strict=True)
    ]


def standard_scores(cosines: list[float], known: dict[str, float] = COSINES) -> list[float]:
    """Distances from the mean in standard deviations, both drawn towards what is usual."""
    whole = len(cosines) + known["weight_elsewhere"]  # the model of the tests is invented
    mean = (sum(cosines) + known["weight_elsewhere"] * known["mean"]) / whole
    usual = known["weight_elsewhere"] * (known["spread"] ** 2 + (known["mean"] - mean) ** 2)
    spread = math.sqrt((sum((one - mean) ** 2 for one in cosines) + usual) / whole)
    return [(one - mean) / spread for one in cosines]


Counts = Counter[str | tuple[str, str]]


def counted(texts: list[str], *, pairs: bool) -> list[Counts]:
    """How often each text has each stem and, if asked, each pair of neighbouring stems."""
    held = [stems(text) for text in texts]
    return [Counts([*one, *(pairwise(one) if pairs else ())]) for one in held]


def without_rare_pairs(papers: list[Counts], liked: list[Counts]) -> tuple[list[Counts], list[Counts]]:
    """The counts without the pairs that only one of all has."""
    every = [*papers, *liked]
    rare = {
        one for each in every for one in each if isinstance(one, tuple) and sum(one in other for other in every) < 2
    }
    left = [Counts({one: often for one, often in each.items() if one not in rare}) for each in every]
    return left[: len(papers)], left[len(papers) :]


def worth(one: str | tuple[str, str], papers: list[Counts]) -> float:
    """Worth of a stem or of a pair, which the background does not know."""
    if isinstance(one, str):
        return idf(one, papers)
    held, weight = sum(one in paper for paper in papers), DATA["background_weight"]
    return 0.7 * math.log1p((len(papers) + weight - held + 0.5) / (held + 0.5))


def tfidf(papers: list[Counts], liked: Counts) -> list[float]:
    """Cosine of each paper to a liked one by TF-IDF."""
    known = {one: worth(one, papers) for paper in [*papers, liked] for one in paper}

    def weights(counts: Counts) -> dict[str | tuple[str, str], float]:
        return {one: (1 + math.log(often)) * known[one] for one, often in counts.items()}

    asked = weights(liked)
    length = math.sqrt(sum(weight**2 for weight in asked.values()))
    cosines = []
    for paper in map(weights, papers):
        both = math.sqrt(sum(weight**2 for weight in paper.values())) * length
        cosines.append(sum(weight * asked.get(one, 0) for one, weight in paper.items()) / both if both else 0.0)
    return cosines


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def nearest(scores: list[float]) -> float:
    """Mean of the nearest ones."""
    best = sorted(scores, reverse=True)[: LIBRARY["nearest"]]
    return sum(best) / len(best)


def to_usual(papers: list[Counts]) -> list[float]:
    """About the mean cosine of each paper to the papers of the background, by TF-IDF."""
    found = []
    for paper in papers:
        held = {one: (1 + math.log(often)) * worth(one, papers) for one, often in paper.items()}
        length = math.sqrt(sum(weight**2 for weight in held.values()))
        usual = {
            one: 0.027 * int(HOLDERS.get(one, 0)) / DATA["background_papers"] * idf(one, [])
            if isinstance(one, str)
            else 0.0
            for one in held
        }
        found.append(min(1.0, sum(weight * usual[one] for one, weight in held.items()) / length) if length else 0.0)
    return found


def like_best(logits: list[float], vectors: list[list[float]]) -> list[float]:
    """Each paper's mean cosine to the best matches beside it and its copies, weighted by their probability."""
    first = sorted(range(len(logits)), key=lambda at: (-round(logits[at], 9), vectors[at][0]))[: DATA["best_matches"]]
    weights = {at: max(sigmoid(logits[at]) / sigmoid(logits[first[0]]), 1e-6) for at in first}

    def mean(number: int) -> float:
        mine = list(vectors[number])
        others = {at: weight for at, weight in weights.items() if list(vectors[at]) != mine}
        if not others:
            return float(DATA["best_cosines"]["mean"])
        near = {at: weight * uncut_cosine(vectors[number], vectors[at]) for at, weight in others.items()}
        return sum(near.values()) / sum(others.values())

    return [mean(number) for number in range(len(logits))]


def uncut_cosine(first: list[float], second: list[float]) -> float:
    """The cosine, also below 0."""
    lengths = math.sqrt(sum(x * x for x in first)) * math.sqrt(sum(x * x for x in second))
    return sum(x * y for x, y in zip(first, second, strict=True)) / lengths if lengths else 0.0


class PlainInterests:
    """What a profile looks for, compared paper by paper; a vector for each text comes from `vector_of`, if any."""

    def __init__(
        self, profile: Profile, options: RankingOptions, vector_of: Callable[[str], list[float]] | None
    ) -> None:
        wishes = profile.content.interests
        self.options, self.vector_of = options, vector_of
        self.must = distinct(profile.content.keywords.must_include)
        weights: dict[str, float] = {}
        levels = ((wishes.primary, 1.0), (wishes.secondary, 0.7), (wishes.exploratory, 0.4))
        for interest, weight in [(interest, weight) for level, weight in levels for interest in level]:
            weights.setdefault(interest, weight)
        self.lanes = [(topic_of(interest), weight) for interest, weight in weights.items()]  # topics: tested separately
        self.repeated = ". ".join(
            interest
            for round_ in range(3)
            for level, times in ((wishes.primary, 3), (wishes.secondary, 2), (wishes.exploratory, 1))
            if round_ < times
            for interest in level
        )
        self.library = list(dict.fromkeys(f"{paper.title}\n\n{paper.abstract}" for paper in wishes.papers))

    def judge(self, fields: list[tuple[str, str]], vectors: list[list[float]]) -> tuple[list[float], list[list[float]]]:
        """Each paper's relevance, and for each paper and interest its probability by that alone."""
        mode = self.options.interest_mode
        views = ["lanes", "library"] if mode == "hybrid" else [mode]
        views = [view for view in views if self.library or view != "library"] or ["lanes"]
        if mode == "seed":
            return [self.near(self.repeated, vector) for vector in vectors], [[] for _ in fields]
        by_words = mode in ("hybrid", "library") or self.vector_of is None
        asked = self.lanes if "lanes" in views else []
        each = [
            self.logits(text, weight, fields, vectors, by_words=by_words, several=len(asked)) for text, weight in asked
        ]
        papers, library = without_rare_pairs(
            counted([f"{title} {abstract}" for title, abstract in fields], pairs=True),
            counted(self.library, pairs=True),
        )
        liked = [tfidf(papers, one) for one in library] if "library" in views else []
        pooled = (
            [nearest([self.near(text, vector) for text in self.library]) for vector in vectors]
            if (liked and self.vector_of)
            else []
        )
        near = standard_scores(pooled, DATA["library_cosines"])
        pooled_words = [
            nearest([one[at] for one in liked]) - usual if liked else 0.0 for at, usual in enumerate(to_usual(papers))
        ]
        words = standard_scores(pooled_words, DATA["library_words"])
        named = [word_scores(fields, text.partition("\n\n")[0]) or [0.0] * len(fields) for text in self.library]
        wished = self.wished(fields)
        values, serves = [], []
        for at in range(len(fields)):
            logit = None
            if each:
                none = math.prod(1 - sigmoid(one[at]) for one in each)
                logit = math.log(1 - none) - math.log(none)
            if "library" in views:
                by_example = self.liked(at, near, words, named)
                half = LIBRARY["library_share"] * len(liked) / (len(liked) + LIBRARY["library_half"])
                logit = by_example if logit is None else logit + half * (by_example - LIBRARY["library_base"])
            assert logit is not None
            values.append(sigmoid(logit + wished[at]))
            serves.append([sigmoid(one[at]) for one in each] if "lanes" in views else [])
        return values, serves

    def wished(self, fields: list[tuple[str, str]]) -> list[float]:
        """Each paper's points of log odds for a keyword that the profile asks for."""
        points = [0.0] * len(fields)
        for pattern in self.must.values():
            titles = [bool(pattern.search(plain(title))) for title, _ in fields]
            # in front of an abstract a mark, behind which a keyword for titles alone is not found
            held = [
                found or bool(pattern.search(f" \x01 {plain(abstract)}"))
                for found, (_, abstract) in zip(titles, fields, strict=True)
            ]
            rarity = -0.7 * math.log((sum(held) + 30 * 0.135) / (len(fields) + 30))
            points = [max(before, rarity if found else 0.0) for before, found in zip(points, held, strict=True)]
        return points

    def logits(
        self,
        text: str,
        weight: float,
        fields: list[tuple[str, str]],
        vectors: list[list[float]],
        *,
        by_words: bool,
        several: int,
    ) -> list[float]:
        """Each paper's logit by one of several interests."""
        words = word_scores(fields, text) if by_words else None
        if self.vector_of is None:
            parts, near = LOGITS["words_only"], [0.0] * len(fields)
        else:
            parts = LOGITS["interest_wordless" if words is None else "interest"]
            near = standard_scores([self.near(text, vector) for vector in vectors])
        shares = of_highest(words or [0.0] * len(fields))
        found = [
            saturated(
                parts,
                intercept(parts, several)
                + parts.get("meaning", 0.0) * meaning
                + parts.get("words", 0.0) * held
                + parts.get("share", 0.0) * share,
            )
            for meaning, held, share in zip(near, words or [0.0] * len(fields), shares, strict=True)
        ]
        if self.vector_of is not None and words is not None:
            parts = LOGITS["interest_with_best"]
            like = standard_scores(like_best(found, vectors), DATA["best_cosines"])
            found = [
                saturated(
                    parts,
                    intercept(parts, several)
                    + parts["meaning"] * meaning
                    + parts["words"] * held
                    + parts["share"] * share
                    + parts["best"] * best,
                )
                for meaning, held, share, best in zip(near, words, shares, like, strict=True)
            ]
        return [logit + math.log(weight) for logit in found]

    def near(self, text: str, vector: list[float]) -> float:
        assert self.vector_of
        return cosine(vector, self.vector_of(text))

    def liked(self, at: int, near: list[float], words: list[float], named: list[list[float]]) -> float:
        """The logit by liked papers, `named`: how strongly each paper holds the words of each one's title."""
        best = sorted((one[at] for one in named), reverse=True)[: LIBRARY["nearest"]]
        titles = sum(best) / math.sqrt(len(best))
        parts = LOGITS["library_words_only" if self.vector_of is None else "library"]
        meaning = parts["meaning"] * near[at] if self.vector_of else 0.0
        return saturated(parts, parts["intercept"] + meaning + parts["words"] * words[at] + parts["titles"] * titles)


def of_highest(scores: list[float]) -> list[float]:
    """Each score divided by the mean of the highest ones, which is drawn towards what is usual."""
    known = DATA["highest_scores"]
    highest = sum(sorted(scores, reverse=True)[: known["papers"]]) / known["papers"]
    whole = len(scores) + known["weight"]
    return [one * whole / (len(scores) * highest + known["weight"] * known["usual"]) for one in scores]


def intercept(parts: dict[str, float], interests: int) -> float:
    """The logit of a paper that nothing speaks for, which is lower if there are more interests."""
    return parts["intercept"] + parts.get("number", 0.0) * math.log(min(interests, 3))


def saturated(parts: dict[str, float], evidence: float) -> float:
    """The logit of this evidence: what is above -1 counts less."""
    return evidence - parts.get("saturation", 0.0) * (max(evidence + 1, 0.0) + math.log1p(math.exp(-abs(evidence + 1))))


def plain_matches(papers: list[tuple[Paper, dict[str, Any]]], options: RankingOptions) -> list[float]:
    """The number that each paper is put in order by where relevance is a probability."""
    weights, preference_weight = SCORING.weights[options.purpose], 14.0 if options.purpose == "implementation" else 10.0
    weight = options.weights.in_order[0] if options.weights else weights[0]
    match = []
    for p, scores in ((scores["semantic_relevance"], scores) for _, scores in papers):
        odds = -30.0 if p == 0 else 30.0 if p == 1 else min(max(math.log(p) - math.log1p(-p), -30.0), 30.0)
        if options.purpose == "idea_generation":  # from .8 on all count the same
            odds = min(odds, math.log(0.8) - math.log1p(-0.8))
        match.append(odds + preference_weight * (scores["final"] - weight * p))
    return match


def final_order(
    papers: list[tuple[Paper, dict[str, Any]]],
    serves: list[list[float]],
    options: RankingOptions,
    floor: float | None,
) -> tuple[list[int], int]:
    """Papers by number in the order of the list, best first, and how many of them are in it."""

    def tie(at: int) -> tuple[float, int, str]:
        paper, scores = papers[at]
        return -scores["final"], -(paper.published.date().toordinal() if paper.published else 0), paper.paper_id

    everybody = range(len(papers))
    if floor is None:
        return sorted(everybody, key=tie), min(options.top_k, len(papers))
    match = plain_matches(papers, options)
    relevance = [scores["semantic_relevance"] for _, scores in papers]
    tier = [(p >= floor) + (p >= max(floor, 0.5)) for p in relevance]

    def newest(at: int) -> tuple[bool, float]:
        published = papers[at][0].published
        day = published.date().toordinal() if published else -math.inf
        return (relevance[at] < 0.9, -day) if options.ranking_mode == "novelty" and tier[at] == 2 else (True, 0.0)

    order = sorted(everybody, key=lambda at: (-tier[at], newest(at), -match[at], tie(at)))
    places = min(options.top_k, sum(map(bool, tier)))
    serving = [[p >= 0.5 and tier[at] == 2 for p in serves[at]] for at in everybody]
    by_people = [
        at for at in order if tier[at] == 2 and {"PREFERRED_AUTHOR", "PERHAPS_AUTHOR"} & set(papers[at][1]["tags"])
    ]
    return with_every_interest(order, serving, relevance, by_people, places, most=options.top_k // 3), places


def with_every_interest(
    order: list[int],
    serves: list[list[bool]],
    relevance: list[float],
    by_people: list[int],
    places: int,
    *,
    most: int,
) -> list[int]:
    """Fill the places with papers by followed people and the best others, then bring in the best paper of each unseen
    lane for the lowest that is not needed and not by these people, if it is about as likely.
    """
    first = [*by_people, *(paper for paper in order if paper not in by_people)][:places]
    inside, entered = [paper for paper in order if paper in first], set[int]()
    for lane in range(len(serves[0]) if serves else 0):
        best = next((paper for paper in order if serves[paper][lane]), None)
        if best is None or any(serves[paper][lane] for paper in inside) or len(entered & set(inside)) >= most:
            continue
        free = [
            paper
            for paper in inside
            if paper not in by_people
            and not any(
                mine and not any(serves[other][at] for other in inside if other != paper)
                for at, mine in enumerate(serves[paper])
            )
        ]
        if free and relevance[best] >= relevance[free[-1]] - 0.05:
            inside.remove(free[-1])
            inside.append(best)  # as the lowest
            entered.add(best)
    return [paper for paper in order if paper in inside] + [paper for paper in order if paper not in inside]
