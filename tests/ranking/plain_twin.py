"""Plain, slow reference of the gatekeeper's arithmetic: one paper at a time, one regular expression per keyword.

The reference to which the array version is compared, here and in `benchmarks/scoring.py`. It shares no code
with the package but the records and the settings.
"""

import math
import re
import unicodedata
from datetime import date

from paper_assets.paper import Paper
from paper_assets.profile import Profile, RankingOptions
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

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


SURVEY = re.compile(r"\A[^\x01]*(?<!\w)surveys?(?!\w)")  # the other words for one do not occur in invented papers


def keyword_pattern(keyword: str, *, titles: bool = False) -> re.Pattern[str] | None:
    """What finds a keyword in a plain text; None if it holds neither letter nor digit. `titles`: in titles alone."""
    phrase = plain(keyword)
    title = phrase.startswith("title:") or (titles and not phrase.startswith("abstract:"))
    phrase = phrase.removeprefix("title:" if phrase.startswith("title:") else "abstract:").strip()
    if not any(c.isalnum() for c in phrase):
        return None
    before = "" if re.match(f"[{CJK}]", phrase) else rf"(?<![^\W{CJK}])"
    if title:
        before = r"\A[^\x01]*" + before
    if re.search(r"[^\W_]\*$", phrase) and (sum(c.isalnum() for c in phrase) >= 3 or re.search(f"[{CJK}]", phrase)):
        return re.compile(before + re.escape(phrase[:-1]))
    beginning, last = phrase[: phrase.rfind(" ") + 1], phrase[phrase.rfind(" ") + 1 :]
    endings = [re.escape(form) for form in numbers(last)]
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


def distinct(keywords: list[str], *, titles: bool = False) -> dict[str, re.Pattern[str]]:
    """Each keyword that can match, once, with its pattern."""
    found: dict[str, re.Pattern[str]] = {}
    for keyword in keywords:
        pattern = keyword_pattern(keyword, titles=titles)
        if pattern and pattern.pattern not in {other.pattern for other in found.values()}:
            found[keyword] = pattern
    return found


def person(name: str) -> str:
    """A name without case, accents, apostrophes, dots and dashes, given name first."""
    words = plain(re.sub("['`´‘’ʼ]", "", name)).replace(".", " ")
    if "," in words:
        family, *rest = [part.strip() for part in words.split(",")]
        suffixes = [part for part in rest if part in {"jr", "sr", "ii", "iii", "iv"}]
        words = " ".join([*(part for part in rest if part not in suffixes), family, *suffixes])
    return " ".join(words.split())


def same_person(one: str, other: str) -> bool:
    """Whether two names as `person` writes them are equal except for middle initials that one of them lacks."""

    def short(words: str) -> str:
        first, *middle = words.split()[:-1]
        return " ".join([first, *(word for word in middle if len(word) > 1), words.split()[-1]])

    if one == other or min(len(name.split()) for name in (one, other)) < 2:
        return one == other != ""
    if 1 in (len(one.split()[0]), len(other.split()[0])):
        return False
    return short(one) == other or one == short(other)


def perhaps_same_person(one: str, other: str) -> bool:
    """Whether two names as `person` writes them have one family name, and given names or initials that may be one's."""
    ours, theirs = ([word for word in name.split() if word not in {"jr", "sr"}] for name in (one, other))
    if same_person(one, other) or min(len(ours), len(theirs)) < 2:
        return same_person(one, other)
    if len(ours) == len(theirs) == 2 and ours == [theirs[1], theirs[0]]:
        return True
    given = [(ours[0], theirs[0]), *zip(ours[1:-1], theirs[1:-1], strict=False)]
    return ours[-1] == theirs[-1] and all(
        mine == yours or (min(len(mine), len(yours)) == 1 and mine[0] == yours[0]) for mine, yours in given
    )


def has_page(paper: Paper) -> bool:
    return ".github.io" in f"{paper.comment} {paper.abstract}"


class PlainGatekeeper:
    """A profile's filters and scores, with its patterns compiled once."""

    def __init__(self, profile: Profile, options: RankingOptions, as_of: date, scoring: ScoringConfig) -> None:
        content = profile.content
        self.content, self.options, self.as_of, self.scoring = content, options, as_of, scoring
        self.must = distinct(content.keywords.must_include)
        self.hard = distinct(content.keywords.exclude.hard)
        self.soft = distinct(content.keywords.exclude.soft, titles=options.interest_mode != "seed")
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
        wanted = self.content.constraints.require_code or self.options.purpose == "implementation"
        if wanted and not (paper.github_url or has_page(paper)):
            return "NO_CODE_REQUIRED"
        return None

    def score(self, paper: Paper, relevance: float, *, has_pdf: bool = False) -> dict[str, object]:
        """The paper's dimensions, bonus, penalty, final score and tags."""
        content, options = self.content, self.options
        text = plain(paper.title) + " \x01 " + plain(paper.abstract)
        must = [keyword for keyword, pattern in self.must.items() if pattern.search(text)]
        soft = [keyword for keyword, pattern in self.soft.items() if pattern.search(text)]
        age = (self.as_of - paper.published.date()).days if paper.published else None
        pairs = [(person(name), wanted) for name in paper.authors for wanted in self.authors]
        by_author = any(same_person(*pair) for pair in pairs)
        perhaps = options.interest_mode != "seed" and any(perhaps_same_person(*pair) for pair in pairs)
        places = [plain(place) for place in paper.affiliations]
        by_place = any(pattern.search(place) for place in places for pattern in self.institutions.values())
        parts = {
            "semantic_relevance": relevance,
            "must_keywords": len(must) / len(self.must) if self.must else 1.0,
            "author_trust": 1.0 if by_author or not content.preferred_authors else 0.0,
            "institution_trust": 1.0 if by_place or not content.preferred_institutions else 0.0,
            "recency": recency(age),
            "practicality": min(0.5 * (bool(paper.github_url) or has_page(paper)) + 0.3 * has_pdf, 1.0),
        }
        rewarded = {"novelty": "recency", "practicality": "practicality"}.get(options.ranking_mode)
        bonus = 0.1 * parts[rewarded] if rewarded else 0.0
        survey = options.purpose == "literature_review" and options.interest_mode != "seed" and SURVEY.search(text)
        bonus += 0.15 if survey else 0.0
        penalty = max(-0.15 * len(soft), -0.3)
        total = 0.0
        for name, value in parts.items():
            total += self.scoring.weights[options.purpose][DIMENSIONS.index(name)] * value
        page = has_page(paper)
        facts = {
            "SEMANTIC_HIGH_MATCH": relevance >= 0.7,
            "PREFERRED_AUTHOR": by_author,
            "PERHAPS_AUTHOR": perhaps and not by_author,
            "PREFERRED_INSTITUTION": by_place,
            "CODE_AVAILABLE": bool(paper.github_url),
            "VERY_RECENT": age is not None and age <= 14,
            "ALREADY_DOWNLOADED": has_pdf,
            "MUST_KEYWORD_MATCH": bool(must),
            "PROJECT_PAGE": page and not paper.github_url,
            "NO_CODE": not page and not paper.github_url,
            "OLDER_PAPER": age is not None and age >= 90,
            "SURVEY": bool(survey),
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
