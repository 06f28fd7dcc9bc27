"""Compare names of people (SPEC G18).

`same_person` says whether two names are one person's. `maybe_same_person` also accepts an initial or a usual short form
of a given name, a missing particle, and the family name first. These fit several people, so interfaces say "perhaps".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paper_assets.text.words import normal_form

Bools = NDArray[np.bool_]

_SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv"})
_PARTICLES = frozenset([
    "al", "ben", "bin", "da", "de", "del", "dela", "della", "den", "der", "di", "do", "dos", "du", "el", "ibn", "la",
    "le", "ten", "ter", "van", "vander", "vom", "von", "y", "zu", "zum", "zur",
])  # fmt: skip
_BETWEEN_NAMES = "\0"
# All characters that are used as the apostrophe of O'Connor: typed, typographic, modifiers, primes, spacing accents.
_APOSTROPHES = str.maketrans(dict.fromkeys("'`´‘’‛ʹʻʼʽˈˊˋ′‵＇", ""))
_SHORT_FORMS = {
    full: frozenset(shorts.split())
    for full, shorts in {
        "alexander": "alex sasha", "alexandra": "alex sasha", "andrew": "andy", "anthony": "tony", "benjamin": "ben",
        "charles": "charlie chuck", "christian": "chris", "christina": "chris tina", "christopher": "chris kit",
        "daniel": "dan danny", "david": "dave", "edward": "ed ted", "elizabeth": "liz beth", "frederick": "fred",
        "gregory": "greg", "jacob": "jake", "james": "jim jamie", "jeffrey": "jeff", "jennifer": "jen jenny",
        "john": "jack", "jonathan": "jon", "joseph": "joe", "joshua": "josh", "katherine": "kate kathy",
        "kenneth": "ken", "lawrence": "larry", "margaret": "meg peggy", "matthew": "matt", "maximilian": "max",
        "michael": "mike mick", "nathaniel": "nate", "nicholas": "nick", "patricia": "pat", "patrick": "pat",
        "peter": "pete", "philip": "phil", "rebecca": "becky", "richard": "rick dick", "robert": "bob rob",
        "ronald": "ron", "samuel": "sam", "stephen": "steve", "steven": "steve", "susan": "sue", "theodore": "ted",
        "thomas": "tom", "timothy": "tim", "victoria": "vicky", "vincent": "vince", "william": "bill will",
        "zachary": "zach",
    }.items()
}  # fmt: skip


def name_form(name: str) -> str:
    """Return a name in the form in which names are compared: `Müller, J.-P.` becomes `j p muller`."""
    return name_forms([name])[0]


def name_forms(names: Sequence[str]) -> list[str]:
    """Return the `name_form` of each name, folded in one pass over all of them."""
    if not names:
        return []
    joined = normal_form(
        _BETWEEN_NAMES.join(name.replace(_BETWEEN_NAMES, " ") for name in names).translate(_APOSTROPHES)
    )
    forms = joined.replace(".", " ").split(_BETWEEN_NAMES)
    return [" ".join((_given_name_first(form) if "," in form else form).split()) for form in forms]


def same_person(names: Sequence[str], preferred: Sequence[str]) -> Bools:
    """Return (n, k) whether each name is that of each preferred person.

    Two names are the same with or without the middle initials of one of them: `Maria K. O'Connor` is `Maria O’Connor`,
    but not `Maria L. O'Connor`. `J. Smith` is not `John Smith`, because the initial fits too many people.
    """
    same = np.zeros((len(names), len(preferred)), dtype=bool)
    preferred_forms = [(form, _without_initials(form)) for form in name_forms(preferred)]
    endings = {form.rpartition(" ")[2] for form, _ in preferred_forms}
    for row, form in enumerate(name_forms(names)):
        if form and form.rpartition(" ")[2] in endings:  # few names reach this comparison
            short = _without_initials(form)
            same[row] = [
                form in (full, without_initials) or short == full for full, without_initials in preferred_forms
            ]
    return same


def maybe_same_person(names: Sequence[str], preferred: Sequence[str]) -> Bools:
    """Return (n, k) whether each name may be that of each preferred person; true also where `same_person` is."""
    maybe = same_person(names, preferred)
    wanted = [_words(form) for form in name_forms(preferred)]
    family_names = {word for words in wanted for word in (*words[:1], *words[-1:])}
    for row, form in enumerate(name_forms(names)):
        words = _words(form)
        if words and words[-1] in family_names:
            maybe[row] |= [_fits(words, other) for other in wanted]
    return maybe


def _fits(words: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two names of several words have one family name and given names that do not contradict."""
    if min(len(words), len(other)) < 2:
        return False
    if len(words) == len(other) == 2 and words[::-1] == list(other):
        return True  # the family name first
    if words[-1] != other[-1] or not _given_fits(words[0], other[0]):
        return False
    return all(_given_fits(one, two) for one, two in zip(words[1:-1], other[1:-1], strict=False))


def _given_fits(one: str, other: str) -> bool:
    """Return whether two given names are equal, one is the other's initial, or one a short form of the other."""
    if one == other or (1 in (len(one), len(other)) and one[0] == other[0]):
        return True
    return other in _SHORT_FORMS.get(one, ()) or one in _SHORT_FORMS.get(other, ())


def _words(form: str) -> list[str]:
    """Return the words of a name form without particles and suffixes."""
    return [word for word in form.split() if word not in _PARTICLES and word not in _SUFFIXES]


def _given_name_first(form: str) -> str:
    """Return `muller, j p, jr` as `j p muller jr`."""
    parts = [part.strip() for part in form.split(",")]
    suffixes = [part for part in parts[1:] if part in _SUFFIXES]
    given = [part for part in parts[1:] if part not in _SUFFIXES]
    return " ".join([*given, parts[0], *suffixes])


def _without_initials(form: str) -> str:
    """Return the name without middle initials; unchanged if it begins with an initial or has fewer than three words."""
    first, *others = form.split() or [""]
    if len(first) == 1 or len(others) < 2:
        return form
    return " ".join([first, *(part for part in others[:-1] if len(part) > 1), others[-1]])
