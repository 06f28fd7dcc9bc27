"""Detect the language of a text, and name the languages in which a rewrite can be requested.

Detection uses `py3langid` (Lui & Baldwin, langid.py, 2012), which includes its model, limited to the languages below.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

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
_FEWEST_LETTERS = 60  # of a text that says which language it is; fewer say which script
_OTHER_SCRIPTS = frozenset(("ar", "bg", "bn", "el", "fa", "he", "hi", "ja", "ko", "ru", "th", "uk", "zh"))
_MOST_LATIN = 0.8  # share of Latin letters in a text of another script
_ALIKE = ({"da", "no", "sv"}, {"hr", "sl"}, {"cs", "sk"}, {"es", "ca", "pt"})  # short texts of these are confused
_SURE = 300  # letters from which even these are told apart


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the main language of a text; None if the text is too short."""
    letters = re.sub(r"[^\w\s]|[\d_]", " ", text)
    if sum(letter.isalpha() for letter in letters) < _FEWEST_LETTERS:
        return None
    code: str = _identifier().classify(letters)[0]
    return code


def is_in_language(text: str, language: str) -> bool:
    """Return whether a text, and each longer paragraph of it, is in this language; for a short text only its script
    counts.
    """
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
