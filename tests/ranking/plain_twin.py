"""The gatekeeper's arithmetic once more, plain and slow: one paper at a time, one regular expression per keyword.

The reference to which the array version is compared, here and in `benchmarks/scoring.py`. It shares no code
with the package but the records and the settings.
"""

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import date

from paper_assets.paper import Paper
from paper_assets.profile import Profile, RankingOptions
from paper_assets.settings import Scoring

LIGATURES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
CJK = "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
CJK += "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
DASHES = "-\u058a\u05be\u1400\u1806\u2010-\u2015\u2043\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030\u30a0"
BREAKS = re.compile(rf"[\s\{DASHES}\U00010ead]+")


def plain(text: str) -> str:
    """A text without case, accents, dashes and runs of white space."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not "\u0300" <= c <= "\u036f")
        text = unicodedata.normalize("NFKC", text.casefold()).translate(LIGATURES)
        text = re.sub("[\u00ad\u200b\u200c\u200d\u2060\ufeff]", "", text)
    return BREAKS.sub(" ", text.lower()).strip()


def keyword_pattern(keyword: str) -> re.Pattern[str] | None:
    """What finds a keyword in a plain text; None if it holds neither letter nor digit."""
    phrase = plain(keyword)
    if not any(c.isalnum() for c in phrase):
        return None
    beginning, last = phrase[: phrase.rfind(" ") + 1], phrase[phrase.rfind(" ") + 1 :]
    endings = [re.escape(form) for form in numbers(last)]
    before = "" if re.match(f"[{CJK}]", phrase) else rf"(?<![^\W{CJK}])"
    after = rf"(?![^\W{CJK}]|\+\+|\#)" if re.search(rf"[^\W{CJK}]$", phrase) else ""
    return re.compile(before + re.escape(beginning) + "(" + "|".join(endings) + ")" + after)


def numbers(word: str) -> list[str]:
    """A word in the singular and plural that it may have."""
    forms = [word]
    if re.search("[a-z][a-z]$", word) and not re.fullmatch("(dynamic|genetic|logistic|new)s?", word):
        forms.append(word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s"))
        if re.search("[^aeiou]y$", word):
            forms[-1] = word[:-1] + "ies"
        if len(word) >= 4 and re.search("[^s]s$", word):
            forms.append(word[:-1])
            if word.endswith("ies"):
                forms.append(word[:-3] + "y")
            elif re.search("(s|x|z|ch|sh)es$", word):
                forms.append(word[:-2])
    return forms


def distinct(keywords: list[str]) -> dict[str, re.Pattern[str]]:
    """Each keyword that can match, once, with its pattern."""
    found: dict[str, re.Pattern[str]] = {}
    for keyword in keywords:
        pattern = keyword_pattern(keyword)
        if pattern and plain(keyword) not in {plain(other) for other in found}:
            found[keyword] = pattern
    return found


def person(name: str) -> str:
    """A name without case, accents, dots and dashes, given name first."""
    words = plain(name).replace(".", " ")
    if "," in words:
        family, *rest = [part.strip() for part in words.split(",")]
        suffixes = [part for part in rest if part in {"jr", "sr", "ii", "iii", "iv"}]
        words = " ".join([*(part for part in rest if part not in suffixes), family, *suffixes])
    return " ".join(words.split())


class PlainGatekeeper:
    """A profile's filters and scores, with its patterns compiled once."""

    def __init__(self, profile: Profile, options: RankingOptions, as_of: date, scoring: Scoring) -> None:
        content = profile.content
        self.content, self.options, self.as_of, self.scoring = content, options, as_of, scoring
        self.must = distinct(content.keywords.must_include)
        self.hard = distinct(content.keywords.exclude.hard)
        self.soft = distinct(content.keywords.exclude.soft)
        self.institutions = distinct(content.preferred_institutions)
        self.authors = {person(name) for name in content.preferred_authors} - {""}

    def reason(self, paper: Paper, read_ids: frozenset[str] = frozenset()) -> str | None:
        """Why the paper is removed, or None."""
        if paper.withdrawn:
            return "WITHDRAWN"
        if paper.paper_id in read_ids:
            return "ALREADY_READ"
        text = plain(paper.title) + " \x01 " + plain(paper.abstract)
        for keyword, pattern in self.hard.items():
            if pattern.search(text):
                return f"BLACKLIST_KEYWORD:{keyword}"
        earliest = self.content.constraints.min_year
        if earliest and self.options.purpose == "literature_review":
            earliest -= 5
        if earliest and paper.published and paper.published.year < earliest:
            return f"TOO_OLD:{paper.published.year}"
        if (self.content.constraints.require_code or self.options.purpose == "implementation") and not paper.github_url:
            return "NO_CODE_REQUIRED"
        return None

    def score(self, paper: Paper, relevance: float, *, has_pdf: bool = False) -> dict[str, object]:
        """The paper's dimensions, bonus, penalty, final score and tags."""
        content, options = self.content, self.options
        text = plain(paper.title) + " \x01 " + plain(paper.abstract)
        must = [keyword for keyword, pattern in self.must.items() if pattern.search(text)]
        soft = [keyword for keyword, pattern in self.soft.items() if pattern.search(text)]
        age = (self.as_of - paper.published.date()).days if paper.published else None
        by_author = any(person(name) in self.authors for name in paper.authors)
        places = [plain(place) for place in paper.affiliations]
        by_place = any(pattern.search(place) for place in places for pattern in self.institutions.values())
        parts = {
            "semantic_relevance": relevance,
            "must_keywords": len(must) / len(self.must) if self.must else 1.0,
            "author_trust": 1.0 if by_author or not content.preferred_authors else 0.0,
            "institution_trust": 1.0 if by_place or not content.preferred_institutions else 0.0,
            "recency": recency(age),
            "practicality": min(0.5 * bool(paper.github_url) + 0.3 * has_pdf, 1.0),
        }
        rewarded = {"novelty": "recency", "practicality": "practicality"}.get(options.ranking_mode)
        bonus = 0.1 * parts[rewarded] if rewarded else 0.0
        penalty = max(-0.15 * len(soft), -0.3)
        total = 0.0
        for weight, value in zip(self.scoring.weights[options.purpose], parts.values(), strict=True):
            total += weight * value
        facts = {
            "SEMANTIC_HIGH_MATCH": relevance >= 0.7,
            "PREFERRED_AUTHOR": by_author,
            "PREFERRED_INSTITUTION": by_place,
            "CODE_AVAILABLE": bool(paper.github_url),
            "VERY_RECENT": age is not None and age <= 14,
            "ALREADY_DOWNLOADED": has_pdf,
            "MUST_KEYWORD_MATCH": bool(must),
            "NO_CODE": not paper.github_url,
            "OLDER_PAPER": age is not None and age >= 90,
        }
        return {
            **parts,
            "bonus": bonus,
            "soft_penalty": penalty,
            "penalty_keywords": soft,
            "final": min(max(total + bonus + penalty, -0.5), 1.5),
            "tags": [tag for tag, true in facts.items() if true] + [f"SOFT_PENALTY:{keyword}" for keyword in soft],
        }


def recency(age: int | None) -> float:
    """Worth of an age in days."""
    if age is None:
        return 0.1
    for days, worth in ((14, 1.0), (30, 0.85), (90, 0.7), (180, 0.5), (365, 0.3)):
        if age <= days:
            return worth
    return 0.1


def cosine(one: list[float], other: list[float]) -> float:
    """Cosine of two vectors, clamped to 0..1."""
    lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(y * y for y in other))
    return min(max(sum(x * y for x, y in zip(one, other, strict=True)) / lengths, 0.0), 1.0) if lengths else 0.0


def ordered(scored: list[tuple[Paper, dict[str, object]]]) -> list[tuple[Paper, dict[str, object]]]:
    """Best first; ties by newer day, then by id."""
    day = {paper.paper_id: paper.published.date().toordinal() if paper.published else 0 for paper, _ in scored}
    return sorted(scored, key=lambda one: (-one[1]["final"], -day[one[0].paper_id], one[0].paper_id))  # type: ignore[operator]


SMALL_WORDS = {"of", "the", "with", "a", "for", "and", "on"}  # of those that the tests use


def bm25(texts: list[str], asked: str) -> list[float] | None:
    """BM25 (k1 = 1.2, b = 0) of each text, as a share of a text with every asked word once; None without words."""
    groups: list[tuple[set[str], int]] = []  # forms of a word, times asked
    for word in re.findall(r"[^\W_]+", plain(asked)):
        if len(word) == 1 or word in SMALL_WORDS:
            continue
        at = next((at for at, (forms, _) in enumerate(groups) if forms & set(numbers(word))), None)
        if at is None:
            groups.append((set(numbers(word)), 1))
        else:
            groups[at] = groups[at][0] | set(numbers(word)), groups[at][1] + 1
    if not groups:
        return None
    words = [re.findall(r"[^\W_]+", plain(text)) for text in texts]
    scores, best = [0.0] * len(texts), 0.0
    for forms, times in groups:
        counts = [sum(word in forms for word in one) for one in words]
        held = sum(count > 0 for count in counts)
        idf = math.log1p((len(texts) - held + 0.5) / (held + 0.5))
        best += times * idf
        for at, count in enumerate(counts):
            scores[at] += times * idf * count * 2.2 / (count + 1.2)
    return [min(score / best, 1.0) for score in scores]


class PlainInterests:
    """What a profile looks for, compared paper by paper; a vector for each text comes from `vector_of`."""

    def __init__(self, profile: Profile, options: RankingOptions, vector_of: Callable[[str], list[float]]) -> None:
        wishes = profile.content.interests
        self.options, self.vector_of = options, vector_of
        self.lanes = [(text, 1.0) for text in wishes.primary]
        self.lanes += [(text, 0.7) for text in wishes.secondary] + [(text, 0.4) for text in wishes.exploratory]
        once = wishes.primary + wishes.secondary + wishes.exploratory
        again = wishes.primary + wishes.secondary + wishes.primary if options.interest_mode != "hybrid" else []
        self.seed = ". ".join(once + again)
        self.library = [f"{paper.title}\n\n{paper.abstract}" for paper in wishes.papers]

    def one(self, text: str, texts: list[str], vectors: list[list[float]]) -> list[float]:
        """Each paper's score against one text."""
        wanted = self.vector_of(text)
        scores = [cosine(vector, wanted) for vector in vectors]
        words = bm25(texts, text) if self.options.interest_mode == "hybrid" else None
        return [0.6 * score + 0.4 * word for score, word in zip(scores, words, strict=True)] if words else scores

    def scale(self, score: float) -> float:
        if self.options.interest_mode != "hybrid":
            return score
        for low, high, bottom, top in ((0.0, 0.3, 0.0, 0.4), (0.3, 0.68, 0.4, 0.7), (0.68, 1.0, 0.7, 1.0)):
            if score <= high:
                return bottom + (score - low) * (top - bottom) / (high - low)
        return 1.0

    def judge(self, texts: list[str], vectors: list[list[float]]) -> tuple[list[float], list[list[float]]]:
        """Each paper's relevance, and for each paper and lane how relevant to it, 0 if not."""
        mode = self.options.interest_mode
        views = self.options.hybrid_of if mode == "hybrid" else [mode]
        views = [view for view in views if self.library or view != "library"] or ["seed"]
        lanes = [self.one(text, texts, vectors) for text, _ in self.lanes] if "lanes" in views else []
        seed = self.one(self.seed, texts, vectors) if "seed" in views else []
        library = [self.one(text, texts, vectors) for text in self.library] if "library" in views else []
        values, serves = [], []
        for at in range(len(texts)):
            kinds, words = [], []
            if seed:
                words.append(seed[at])
            if lanes:
                words.append(max(weight * lane[at] for lane, (_, weight) in zip(lanes, self.lanes, strict=True)))
            if words:
                kinds.append(sum(words) / len(words))
            if library:
                nearest = sorted(liked[at] for liked in library)[-3:]
                kinds.append(sum(nearest) / len(nearest))
            values.append(self.scale(sum(kinds) / len(kinds)))
            alike = [self.scale(lane[at]) for lane in lanes]
            serves.append([score if score >= 0.4 else 0.0 for score in alike])
        return values, serves


def with_every_lane(order: list[int], serves: list[list[float]], places: int) -> list[int]:
    """Bring in the best paper of each unseen lane for the lowest that is not needed; papers by number, best first."""
    inside = order[:places]
    for lane in range(len(serves[0]) if serves else 0):
        seen = any(serves[paper][lane] for paper in inside)
        best = max(order, key=lambda paper: (serves[paper][lane], -order.index(paper)))
        free = [
            paper
            for paper in inside
            if all(
                not mine or any(serves[other][at] for other in inside if other != paper)
                for at, mine in enumerate(serves[paper])
            )
        ]
        if not seen and serves[best][lane] and free:
            inside.remove(free[-1])
            inside.append(best)  # as the lowest
    return [paper for paper in order if paper in inside] + [paper for paper in order if paper not in inside]
