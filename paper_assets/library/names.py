"""Split the names of authors into their parts and write them as reference managers expect.

The parts are those of BibTeX, found by bibtexparser's `splitname`: given names, particles in lower case ("van der"),
family name, suffix. Two things are added: particles with a capital, as most authors write them ("De Nadai"), and
suffixes without a comma ("King Jr.").
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from paper_assets.text.cleaning import one_line

_PARTICLES = frozenset(("De", "Di", "Del", "Della", "Dos", "Da", "Das", "Al", "El", "Van", "Von", "La", "Le", "Ter"))
_SUFFIX = re.compile(r"(?:[JS]r\.?|I{2,3}|IV)")
_GROUP = re.compile(
    r"\b(?:collaborations?|consortium|teams?|groups?|project|institute|university|laborator(?:y|ies)|inc|society|"
    r"initiative|network|committee|community|foundation)\b",
    re.IGNORECASE,
)
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ı": "i", "þ": "th", "ð": "d"})
_STOPWORDS = frozenset(
    ("a", "an", "the", "on", "of", "in", "for", "to", "and", "with", "from", "is", "are", "at", "by")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An author's name in parts; a group and a single word are only a family name."""

    family: str
    given: str = ""
    particle: str = ""
    suffix: str = ""

    @property
    def last(self) -> str:
        """The family name with its particle."""
        return f"{self.particle} {self.family}".strip()

    @property
    def natural(self) -> str:
        """The name as it is spoken: given names first."""
        return " ".join(part for part in (self.given, self.last, self.suffix) if part)


def is_name(text: str) -> bool:
    """Whether the text has a letter: arXiv's lists of authors contain ":" where a collaboration is named."""
    return any(map(str.isalpha, text))


def split_name(text: str) -> Name:
    """Split a name as written, `Given van Family Jr.` or `van Family, Jr., Given`."""
    from bibtexparser.customization import splitname

    text = one_line(text)
    words = text.split()
    if len(words) < 2 or ("," not in text and _GROUP.search(text)):
        return Name(family=text)
    suffix = ""
    if "," not in text and len(words) > 2 and _SUFFIX.fullmatch(words[-1]):
        *words, suffix = words
        words[-1] = words[-1].rstrip(",")
    if "," not in text:  # in lower case they count as particles
        text = " ".join(
            word.lower() if 0 < at < len(words) - 1 and word in _PARTICLES else word for at, word in enumerate(words)
        )
    try:
        parts = splitname(text.replace("{", "").replace("}", ""), strict_mode=False)
    except Exception:  # the library raises StopIteration and others for names of marks alone: show them as written
        return Name(family=text)
    written = {word.lower(): word for word in words}
    particle = " ".join(written.get(word, word) for word in parts["von"])
    given, family = " ".join(parts["first"]), " ".join(parts["last"])
    if not family:
        return Name(family=text)
    return Name(given=given, particle=particle, family=family, suffix=suffix or " ".join(parts["jr"]))


def keys_of(works: Sequence[tuple[Sequence[str], int | None, str]]) -> list[str]:
    """Return a citation key for each work (authors, year, title), such as `hollein2026morphany`; all differ."""
    taken: set[str] = set()
    keys = []
    for authors, year, title in works:
        named = next((name for name in authors if is_name(name)), "")
        family = _plain(split_name(named).family) or "unknown"
        words = [word for word in map(_plain, re.split(r"[\s\-–—/:,.]+", title)) if word]
        first = next((word for word in words if word not in _STOPWORDS), "")
        key = base = f"{family}{year or ''}{first}"
        number = 1
        while key in taken:
            number += 1
            key = f"{base}{number}"
        taken.add(key)
        keys.append(key)
    return keys


def _plain(text: str) -> str:
    """Return the letters and digits of ASCII, accents removed, in lower case."""
    bare = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return re.sub(r"[^a-z0-9]", "", bare)
