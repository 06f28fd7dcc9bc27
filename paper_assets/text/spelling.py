"""Find the British and the American spelling of a word (`quantisation`, `quantization`)."""

import re

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
