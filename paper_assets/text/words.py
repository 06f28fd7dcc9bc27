"""Normalise texts, split them into words, and find the stem and the other spelling of a word.

There is one normal form in which texts are compared and one way to split them into words. Everything that asks whether
two texts contain the same word uses this module: keywords, BM25, names, notes, the taxonomy. Code that needs another
splitter (PDF text, the check of a rewrite's claims) has it in its own module with the reason.

A stem is one form for a family of words (`robot`, `robots`, `robotic`), to match interests with abstracts. Stemming is
small on purpose: it removes the plural, then one ending from a list. The result need not be a word; it only has to be
equal for words of one family and different for others. A stem depends on its own word alone, so matches do not depend
on other texts.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from unicodedata import normalize

# Words that an interest may contain without meaning them. Not among them: `few` (few-shot), `over` (over-smoothing),
# `against`.
SMALL_WORDS = frozenset([
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "how",
    "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "our", "such", "than", "that", "the",
    "their", "then", "there", "these", "they", "this", "those", "to", "use", "used", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with",
])  # fmt: skip
# With auxiliaries, pronouns and the like, which occur in sentences (questions, claims) and not in interests.
FUNCTION_WORDS = SMALL_WORDS.union([
    "about", "above", "after", "again", "against", "all", "also", "am", "because", "been", "before", "being",
    "below", "between", "both", "could", "did", "does", "doing", "down", "during", "each", "few", "further", "had",
    "having", "he", "her", "here", "hers", "him", "his", "i", "just", "may", "me", "might", "more", "most", "must",
    "my", "nor", "off", "once", "only", "other", "out", "over", "own", "s", "same", "she", "should", "so", "some",
    "t", "through", "too", "under", "until", "up", "us", "very", "while", "whom", "would", "you", "your",
])  # fmt: skip

_DASHES = (
    "-\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d"
    "\u301c\u3030\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d\U00010d6e\U00010ead"
)
_BREAKS = re.compile(rf"[\s{re.escape(_DASHES)}]+")
_ASCII_BREAKS = str.maketrans(dict.fromkeys("-\t\n\v\f\r\x1c\x1d\x1e\x1f", " "))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]+")
_LIGATURES = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
_ACCENTS = re.compile("[\u0300-\u036f]")  # not the Japanese voicing marks: those make another letter
_NOT_PLURALS = frozenset({"dynamics", "genetics", "logistics", "news"})  # without s another word

# Characters of scripts that know no word borders: Chinese, Japanese, Korean, Thai.
NO_BORDERS = (
    "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
HAS_NO_BORDERS = re.compile(f"[{NO_BORDERS}]")
_WORD = re.compile(r"[^\W_]+")
_ENDS_IN_LETTERS, _ENDS_IN_Y = re.compile(r"[a-z]{2}$"), re.compile(r"[^aeiou]y$")
_HISSES, _HISSES_TWICE = re.compile(r"(?:s|x|z|ch|sh)$"), re.compile(r"(?:s|x|z|ch|sh)es$")
# An address: with its scheme (also "https: //"), with www., of a host with a path, of GitHub's pages, or of mail.
_ADDRESS = re.compile(
    r"(?:https?\s?:\s?//|www\.)\s?\S+"
    r"|(?<![\w.-])(?:[\w-]+\.)+[a-z]{2,}/\S*"
    r"|(?<![\w.-])(?:[\w-]+\.)+github\.io\b"
    r"|(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}",
    re.IGNORECASE,
)
_BETWEEN_TEXTS = "\0"
_TEXTS_AT_ONCE = 1024  # about 1.3 MB, which stay in the processor's cache
_ASCII_BLANKS = str.maketrans({letter: " " for letter in map(chr, range(128)) if not letter.isalnum()})

# Compounds that abstracts write in several ways, each as most of them do: "pre training" for "pretraining", but
# "multimodal" for "multi modal". The parts are those of words that 8,267 abstracts have in both forms; every first
# part goes with every second one.
JOINED = (
    r"\b(auto|bi|geo|hyper|light|multi|non|pair|photo|spatio|uni) +"
    r"(asymptotic|convex|convexity|crafted|directional|encoders?|encoding|existent|faceted|invasive|lingual|linear|"
    r"linearit(?:y|ies)|local|modal|modality|modalities|negative|parameters?|parametric|realistic|regressive|"
    r"rigid|smooth|spatial|spectral|standard|stationary|stationarity|temporal|trivial|uniform|variate|weight|wise)\b"
)
SPLIT = (
    r"\b(cross|deep|few|fine|multi|one|post|pre|real|self|semi|super|time|zero)"
    r"(agents?|attention|class|domain|fakes?|heads?|hop|labels?|layers?|levels?|objective|party|"
    r"processing|resolution|scales?|series|shot|sources?|stages?|steps?|supervised|supervision|tasks?|"
    r"time|trained|training|trains?|tuned|tunes?|tuning|turn|views?)\b"
)
_JOINED, _SPLIT = re.compile(JOINED), re.compile(SPLIT)
_TO_JOIN = re.compile(JOINED.replace(" +", "[ -]+"), re.IGNORECASE)
_TO_HYPHENATE = re.compile(
    re.sub(r"\(cross.*?\)", "(cross|few|fine|multi|pre|self|semi|super|zero)[ -]?", SPLIT, count=1), re.IGNORECASE
)
_DEEPFAKE = re.compile(r"\bdeep[ -]?(?=fakes?\b)", re.IGNORECASE)


def in_one_spelling(text: str) -> str:
    """Return a text in lower case and without hyphens, with one spelling of compounds written in several ways."""
    return _SPLIT.sub(r"\1 \2", _JOINED.sub(r"\1\2", text))


def in_usual_spelling(text: str) -> str:
    """Return a text for the embedding model, with compounds spelled as most abstracts spell them."""
    joined = _DEEPFAKE.sub("deep", _TO_JOIN.sub(r"\1\2", text))
    return _BRITISH.sub(lambda word: _american(word[0]), _TO_HYPHENATE.sub(r"\1-\2", joined))


def normal_form(text: str) -> str:
    """Normalise a text for comparison: no case, no accents, compatibility forms resolved, dashes and white space one
    space, compounds in one spelling.
    """
    return in_one_spelling(_plain_form(text))


def _plain_form(text: str) -> str:
    if text.isascii():
        return _single_spaced(text.lower().translate(_ASCII_BREAKS))
    text = _ACCENTS.sub("", normalize("NFKD", text)).casefold()
    text = _LIGATURE.sub(lambda letter: _LIGATURES[letter[0]], normalize("NFKC", text))
    return _BREAKS.sub(" ", _INVISIBLE.sub("", text))


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Normalise many texts at once, four times as fast as one by one; a NUL counts as a space."""
    forms = [""] * len(texts)
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = [text.replace(_BETWEEN_TEXTS, " ") for text in texts[start : start + _TEXTS_AT_ONCE]]
        # One character beyond ASCII makes Python store and read the whole string at two or four bytes a character.
        for ascii_only in (True, False):
            rows = [row for row, text in enumerate(part) if text.isascii() is ascii_only]
            joined = normal_form(_BETWEEN_TEXTS.join(part[row] for row in rows))
            for row, form in zip(rows, joined.split(_BETWEEN_TEXTS) if rows else (), strict=True):
                forms[start + row] = form
    return forms


def words_of_normal(text: str) -> list[str]:
    """Return the words of a text that is in normal form."""
    return _WORD.findall(text)


def words_in(text: str) -> list[str]:
    """Return the words of a text in order: letters and digits only, in normal form."""
    if text.isascii():
        return in_one_spelling(text.lower().translate(_ASCII_BLANKS)).split()
    return words_of_normal(normal_form(text))


def without_addresses(text: str) -> str:
    """Remove web and mail addresses: their words (http, a user's name) are not words of the text."""
    return _ADDRESS.sub(" ", text)


def word_forms(word: str) -> list[str]:
    """Return the word, its plural, and its possible singulars. A form that does not exist does no harm."""
    if not _ENDS_IN_LETTERS.search(word) or not _NOT_PLURALS.isdisjoint({word, word + "s"}):
        return [word]
    forms = [word]
    if _ENDS_IN_Y.search(word):
        forms.append(word[:-1] + "ies")
    else:
        forms.append(word + ("es" if _HISSES.search(word) else "s"))
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms.append(word[:-1])
        if word.endswith("ies"):
            forms.append(word[:-3] + "y")
        elif _HISSES_TWICE.search(word):
            forms.append(word[:-2])
    return forms


def _single_spaced(text: str) -> str:
    """Replace runs of spaces by one, in ASCII; numpy takes half the time of str.replace and re on whole papers."""
    import numpy as np  # `mcp` reads profiles and starts without it

    letters = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    keep = np.ones(len(letters), dtype=bool)
    keep[1:] = (letters[1:] != ord(" ")) | (letters[:-1] != ord(" "))
    return letters[keep].tobytes().decode("ascii")


# The first of these that leaves four letters is taken off; longer ones come before those that they end in.
_ENDINGS = (
    "ization", "isation", "izations", "ational", "fulness", "ousness", "iveness", "ations", "ation", "ating", "ators",
    "ator", "ative", "ated", "ates", "ions", "ion", "ings", "ing", "ness", "ment", "ments", "ities", "ity", "ically",
    "ical", "ics", "ic", "ive", "ous", "ful", "ers", "er", "ed", "es", "ly", "al", "ate", "s", "e", "y",
)  # fmt: skip
_FEWEST = 4  # letters that a stem keeps
_PLURAL_HISSES = re.compile(r"(?:s|x|z|ch|sh)es$")
# Of plurals in -es the e mostly belongs to the word (`caches`, `diseases`, `sizes`), not in `batches` or `viruses`.
_ENDS_IN_E = re.compile(r"(?:(?:^ca|^ni|avalan)ch|[^t]z|[^s]s)es$")
_ENDS_IN_S = re.compile(r"(?:bia|^ga|len|atla|canva|alia|^bu|[tnrpsc]u|iu)ses$")
_STAY_DOUBLE = "lsz"  # `small`, `loss`, `fuzz`: here two letters belong to the word; in `mapp(ing)` one does


@lru_cache(maxsize=500_000)  # more than the distinct words of 100,000 abstracts
def stem(word: str) -> str:
    """Return the stem of a word in normal form."""
    word = singular(word)
    if len(word) <= _FEWEST or not word.isalpha():
        return word
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _FEWEST), "")
    left = word.removesuffix(ending)
    return left[:-1] if len(left) > _FEWEST and left[-1] == left[-2] and left[-1] not in _STAY_DOUBLE else left


def commonest_forms(texts: Iterable[str], stems: Collection[str]) -> dict[str, str]:
    """Return for each stem its most frequent word in the texts; a stem in no text is left out."""
    counts: dict[str, Counter[str]] = {each: Counter() for each in stems}
    for text in texts:
        for word in words_in(text):
            if (known := counts.get(stem(word))) is not None:
                known[word] += 1
    return {each: min(found, key=lambda word: (-found[word], word)) for each, found in counts.items() if found}


def singular(word: str) -> str:
    """Remove the s of a plural, by the rule of `word_forms`."""
    if len(word) <= 3 or not re.search(r"[a-z]s$", word) or word.endswith("ss") or len(word_forms(word)) == 1:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if _PLURAL_HISSES.search(word) and (_ENDS_IN_S.search(word) or not _ENDS_IN_E.search(word)):
        return word[:-2]
    return word[:-1]


# Words that frame a topic ("insightful work including …"): they have no weight in an interest, unless it has no others.
FRAMING_WORDS = frozenset([
    "advances", "anything", "approach", "approaches", "based", "better", "exciting", "especially", "everything",
    "ideally", "important", "improve", "improved", "improves", "improving", "include", "included",
    "includes", "including", "insight", "insightful", "insights", "interested", "interesting", "latest",
    "new", "novel", "paper", "papers", "particularly", "preferably", "recent", "related", "relevant",
    "research", "rigorous", "such", "towards", "useful", "various",
])  # fmt: skip


def asks(word: str) -> bool:
    """Return whether a word carries topic: small words and single letters do not."""
    return len(word) > 1 and word not in SMALL_WORDS


def stems_in(text: str) -> list[str]:
    """Return the stems of a text's words in order, without words that carry no topic."""
    return [stem(word) for word in words_in(text) if asks(word)]


_SWAPPED = {"s": "z", "z": "s"}
_ISE = re.compile(r"([a-z]{3,}i|[a-z]{2,}y)([sz])(e|ed|er|ing|able|ation|ational|ability)")
_OUR = re.compile(
    r"((?:mis|un)?(?:behavi|col|neighb|tum|flav|fav|harb|lab|vap|od|hum|rum|vig|endeav|hon)o)(u?)(r[a-z]*)"
)
_DOUBLED = re.compile(r"(\w*(?:label|model|signal|travel|tunnel|channel|level|cancel|fuel))(l?)(ed|er|ing)")
_PARTS = (  # British and American
    *(("defence", "defense"), ("offence", "offense"), ("artefact", "artifact"), ("ageing", "aging")),
    *(("centre", "center"), ("fibre", "fiber"), ("calibre", "caliber"), ("sulphur", "sulfur")),
    *(("catalogue", "catalog"), ("dialogue", "dialog"), ("analogue", "analog"), ("programme", "program")),
    *(("anaesth", "anesth"), ("paediatr", "pediatr"), ("haemo", "hemo"), ("leukaem", "leukem")),
    *(("ischaem", "ischem"), ("oedema", "edema"), ("oesophag", "esophag"), ("foetal", "fetal")),
    *(("orthopaed", "orthoped"), ("archaeo", "archeo"), ("aetiolog", "etiolog"), ("grey", "gray")),
    *(("sceptic", "skeptic"), ("mould", "mold"), ("judgement", "judgment"), ("aluminium", "aluminum")),
)


_BRITISH_PARTS = "|".join(british for british, _ in _PARTS)
_BRITISH = re.compile(
    rf"\b(?:{_OUR.pattern.replace('(u?)', '(u)')}|{_DOUBLED.pattern.replace('(l?)', 'l')}"
    rf"|\w*(?:{_BRITISH_PARTS})\w*|\w+isations?)\b",
    re.IGNORECASE,
)


def _american(word: str) -> str:
    """Return the American spelling of a British word."""
    if word.lower().endswith(("isation", "isations")):
        return re.sub(r"isation", "ization", word, flags=re.IGNORECASE)
    return _other(word.lower())


def spellings(word: str) -> list[str]:
    """Return a word in normal form and its other spelling, if it may have one. No spelling belongs to two words.

    The rules do not know which words exist: a form that does not exist matches nothing.
    """
    other = _other(word)
    return [word, other] if other != word and _other(other) == word else [word]


def _other(word: str) -> str:
    if found := _ISE.fullmatch(word):
        return f"{found[1]}{_SWAPPED[found[2]]}{found[3]}"
    if found := _OUR.fullmatch(word):
        return f"{found[1]}{'' if found[2] else 'u'}{found[3]}"
    if found := _DOUBLED.fullmatch(word):
        return f"{found[1]}{'' if found[2] else 'l'}{found[3]}"
    for british, american in _PARTS:
        if british in word:
            return word.replace(british, american)
        if american in word:
            return word.replace(american, british)
    return word
