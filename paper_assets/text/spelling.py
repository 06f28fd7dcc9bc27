"""Find the British and the American spelling of a word (`quantisation`, `quantization`)."""

import re

_SWAPPED = {"s": "z", "z": "s"}
_ISE = re.compile(r"([a-z]{3,}i|[a-z]{2,}y)([sz])(e|ed|er|ing|able|ation|ational|ability)")
_OUR = re.compile(r"((?:mis|un)?(?:behavi|col|neighb|tum|flav|fav|harb|lab|vap|od|hum|rum|vig|endeav|hon))ou?(r[a-z]*)")
_DOUBLED = re.compile(r"(\w*(?:label|model|signal|travel|tunnel|channel|level|cancel|fuel))l?(ed|er|ing)")
# British and American, where one stands for the other at the beginning, inside or at the end of words.
_PARTS = [
    (re.compile(british), re.compile(american), british, american)
    for british, american in (
        *(("defence", "defense"), ("offence", "offense"), ("artefact", "artifact"), ("ageing", "aging")),
        *(("centre", "center"), ("fibre", "fiber"), ("calibre", "caliber"), ("sulphur", "sulfur")),
        *(("catalogue", "catalog"), ("dialogue", "dialog"), ("analogue", "analog"), ("programme", "program")),
        *(("anaesth", "anesth"), ("paediatr", "pediatr"), ("haemo", "hemo"), ("leukaem", "leukem")),
        *(("ischaem", "ischem"), ("oedema", "edema"), ("oesophag", "esophag"), ("foetal", "fetal")),
        *(("orthopaed", "orthoped"), ("archaeo", "archeo"), ("aetiolog", "etiolog"), ("grey", "gray")),
        *(("sceptic", "skeptic"), ("mould", "mold"), ("judgement", "judgment"), ("aluminium", "aluminum")),
    )
]


def spellings(word: str) -> list[str]:
    """Return a word in normal form and its other spelling, if it may have one. A form that does not exist does no
    harm.
    """
    if found := _ISE.fullmatch(word):
        return [word, f"{found[1]}{_SWAPPED[found[2]]}{found[3]}"]
    if found := _OUR.fullmatch(word):
        return [word, f"{found[1]}{'o' if 'ou' + found[2] == word[len(found[1]) :] else 'ou'}{found[2]}"]
    if found := _DOUBLED.fullmatch(word):
        once, twice = f"{found[1]}{found[2]}", f"{found[1]}l{found[2]}"
        return [word, twice if word == once else once]
    for british, american, in_british, in_american in _PARTS:
        if british.search(word):
            return [word, british.sub(in_american, word)]
        if american.search(word):
            return [word, american.sub(in_british, word)]
    return [word]
