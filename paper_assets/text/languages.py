"""Detect the language of a text, name the languages of rewrites, and recognise ordinary English words.

Detection uses `py3langid` (Lui & Baldwin, langid.py, 2012), which includes its model, limited to the languages below.

`english_words.txt.gz` has the lower-case words of the en_US Hunspell dictionary with their endings, which is made
from SCOWL. Copyright 2000-2019 by Kevin Atkinson. Permission to use, copy, modify, distribute and sell these word
lists, the associated scripts, the output created from the scripts, and its documentation for any purpose is hereby
granted without fee, provided that the above copyright notice appears in all copies and that both that copyright notice
and this permission notice appear in supporting documentation. Kevin Atkinson makes no representations about the
suitability of this array for any purpose. It is provided "as is" without express or implied warranty.
"""

import gzip
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from paper_assets.text.words import FUNCTION_WORDS, NO_BORDERS, without_addresses

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


# ISO 639-1. Adding a language: a line here, if py3langid knows it.
LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
_FEWEST_LETTERS = 60  # letters of a text that show its language; fewer show only its script
_OTHER_SCRIPTS = frozenset(("ar", "bg", "bn", "el", "fa", "he", "hi", "ja", "ko", "ru", "th", "uk", "zh"))
_MOST_LATIN = 0.8  # share of Latin letters in a text of another script
_ALIKE = ({"da", "no", "sv"}, {"hr", "sl"}, {"cs", "sk"}, {"es", "ca", "pt"})  # short texts of these are confused
_SURE = 300  # letters from which even these are distinguished


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the main language of a text; None if the text is too short."""
    letters = re.sub(r"[^\w\s]|[\d_]", " ", text)
    if sum(letter.isalpha() for letter in letters) < _FEWEST_LETTERS:
        return None
    return _identifier().classify(letters)[0]


def is_in_language(text: str, language: str) -> bool:
    """Return whether a text and each longer paragraph is in this language; of a short text only the script counts."""
    latin = [letter.isascii() or "À" <= letter <= "ɏ" for letter in text if letter.isalpha()]
    share = sum(latin) / max(len(latin), 1)  # a Korean summary holds many English terms, an English one no Korean ones
    if latin and (share > _MOST_LATIN if language in _OTHER_SCRIPTS else share < 0.5):
        return False
    for part in {text, *(part for part in text.split("\n") if len(part) > 80)}:
        found = language_of(part)
        if found not in (None, language):
            confused = any({found, language} <= group for group in _ALIKE) and len(part) < _SURE
            if not confused:
                return False
    return True


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # a second

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    return identifier


_WORD = re.compile(rf"[{NO_BORDERS}]|[^\W\d_{NO_BORDERS}]{{2,}}")
_BETWEEN_CLAUSES = re.compile(r"[.!?;:,()\[\]\n。，；：！？]+")
_WORDS_OF_A_CLAUSE = 4
_MOST_ENGLISH = 0.5  # share of words in the dictionary, which "note" and "articles" are in French too


def has_foreign_words(text: str) -> bool:
    """Return whether a clause of an English text is in another language: it has no English function word, and few of
    its words are in the dictionary. So have 127 of 8,267 abstracts, most of them lists of names.
    """
    for clause in _BETWEEN_CLAUSES.split(without_addresses(text)):
        words = [word.lower() for word in _WORD.findall(clause)]
        no_function_word = len(words) >= _WORDS_OF_A_CLAUSE and FUNCTION_WORDS.isdisjoint(words)
        if no_function_word and sum(map(is_ordinary_word, words)) <= _MOST_ENGLISH * len(words):
            return True
    return False


_PREFIXES = (
    "anti", "auto", "back", "bi", "bio", "co", "counter", "cross", "cyber", "data", "de", "dis", "electro", "fine",
    "geo", "hyper", "in", "inter", "key", "macro", "meta", "micro", "mid", "mis", "multi", "neuro", "non", "omni",
    "on", "out", "over", "para", "photo", "poly", "post", "pre", "pseudo", "quasi", "re", "run", "self", "semi",
    "spatio", "sub", "super", "tele", "time", "trans", "tri", "ultra", "un", "under", "uni", "up",
)  # fmt: skip
_ENDINGS = (
    ("ization", "ize"), ("izations", "ize"), ("isation", "ize"), ("ising", "izing"), ("ised", "ized"), ("ise", "ize"),
    ("yses", "ysis"), ("ysing", "yzing"), ("ysed", "yzed"), ("lling", "ling"), ("lled", "led"), ("ability", "able"),
    ("able", ""), ("able", "e"), ("ability", ""), ("ability", "e"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"),
    ("s", ""), ("es", ""), ("ly", ""), ("al", ""), ("ial", "y"), ("ic", ""), ("ized", "ize"), ("izing", "ize"),
    ("er", ""), ("er", "e"), ("ers", ""), ("ers", "e"), ("ness", ""), ("ment", ""), ("our", "or"), ("oural", "oral"),
    ("ation", "e"), ("ations", "e"), ("ity", ""), ("less", ""), ("ive", "ion"), ("ive", "e"), ("wise", ""),
)  # fmt: skip
# Words of this field that the dictionary lacks.
_OF_THE_FIELD = frozenset([
    "affordance", "agentic", "aleatoric", "amongst", "centroid", "contrastive", "convolutional", "cryptographic",
    "differentiable", "embedding", "embeddings", "epistemic", "equivariant", "equivariance", "heatmap", "invertible",
    "kurtosis", "leaderboard", "leaderboards", "modelling", "multimodal", "panoptic", "parallelism", "perceptron",
    "pre", "quantile", "quantiles", "softmax", "sparsification", "spatio", "spectrogram", "subword", "timestep",
    "tokenization", "tokenizer", "transformers", "unimodal", "variational", "verifier", "verifiers", "voxel",
    "workflow",
])  # fmt: skip
_FEWEST = 3  # letters that a word keeps without its prefix or ending


@lru_cache(maxsize=50_000)
def is_ordinary_word(word: str) -> bool:
    """Return whether a lower-case word is in the dictionary or derived from one by prefix and ending."""
    return _is_made(word, 2)


def _is_made(word: str, steps: int) -> bool:
    if word in _words() or word in _OF_THE_FIELD:
        return True
    if not steps or len(word) <= _FEWEST:
        return False
    beheaded = (word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix))
    made_of = (word[: -len(ending)] + instead for ending, instead in _ENDINGS if word.endswith(ending))
    return any(len(left) >= _FEWEST + 1 and _is_made(left, steps - 1) for left in (*beheaded, *made_of))


@cache
def _words() -> frozenset[str]:
    packed = Path(__file__).with_name("english_words.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode("ascii").split())
