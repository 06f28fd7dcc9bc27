"""Who does better in a text: the authors' work, or what it is compared with (B2).

A word of winning or losing (`opposites.toml`) has one who does so before it and, mostly, one to whom it is done behind
it. Where one of them is known for the authors' own work or for a rival, the text says who does better, in whatever
words: "it beats earlier methods", "others do less well than ours", "the baseline was left behind".
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paper_assets.text.sentences import sentence_spans

_THING = (
    r"(?:methods?|models?|approach(?:es)?|programs?|systems?|techniques?|ones?|algorithms?|tools?|networks?|baselines?"
    r"|versions?|learning|solutions?|works?|architectures?|frameworks?|designs?|detectors?|classifiers?|agents?)"
)
_RIVAL = (
    r"baselines?|rivals?|competitors?|predecessors?|counterparts?|sota|others|the rest|state[- ]of[- ]the[- ]art"
    r"(?! (?:performance|results?|scores?|accurac))"
    r"|(?:existing|previous|previously|prior|earlier|conventional|traditional|other|competing|ordinary|standard|usual"
    r"|common|classical|older|best|current|today['’]s|known|established|leading|strongest|alternative|unchanged"
    r"|comparable|vanilla|naive|plain|recent)(?:(?:,? and|,)? [\w'’/-]{1,40}){0,4}? "
    + _THING
    + r"|[\w-]{1,40} alone|[\w-]{1,40}-only"
)
_OWN = (
    r"we|our|ours|theirs|it"
    r"|(?:their|our|this|the(?: authors['’])?)(?: (?:new|proposed|resulting|mixed|own|large|small))? "
    r"(?:method|model|approach|program|system|technique|algorithm|tool|network|version|architecture|framework|design)"
)
_BEGINS_CLAUSE = re.compile(
    r"[;:()]|\b(?:where|while|whereas|but|although|though|because|since|when|if|unlike)\b", re.I
)
_NEGATED = re.compile(
    r"\b(?:not(?! only)|no|never|cannot|hardly|barely|scarcely|without|neither|nor|nothing|unable|fail(?:s|ed|ing)? to"
    r"|\w+n['’]t)(?: [\w-]+){0,2} $",
    re.I,
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|get|gets|got)(?: \w+){0,2} $", re.I)
_BY = re.compile(r" (?:\w+ )?by (?!\d|an? (?:large |wide |clear )?margin|up to|over|more|about|at least)", re.I)
_HOW = re.compile(r"\b(\w+ly) $")
_AROUND = re.compile(r"^(?:do|does|did|doing|(?:work|perform)(?:s|ed|ing)?) | than$", re.I)  # what need not be shown
_FAR = 90  # characters between a word of winning and those whom it is about
_AFTER = 45
_RIGHT_BEHIND = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A word of winning (`up`) or losing; `own_ahead` None where it is not known who is compared."""

    shown: str
    start: int
    end: int
    up: bool
    own_ahead: bool | None


def contests(text: str, *, own: str = "") -> tuple[Contest, ...]:
    """Every word of winning or losing in an English text. `own`: a pattern of further names of the authors' work."""
    return tuple(each for start, end in sentence_spans(text) for each in _of_sentence(text, start, end, own))


def _of_sentence(text: str, start: int, end: int, own: str) -> Iterator[Contest]:
    sides = _sides(text, start, end, own)
    bounds = [start, *(found.start() for found in _BEGINS_CLAUSE.finditer(text, start, end)), end]
    objects: set[int] = set()  # where those stand to whom something is done: nobody who does the next
    for found in _terms().finditer(text, start, end):
        first, last = found.span()
        clause = max(bound for bound in bounds if bound <= first), min(bound for bound in bounds if bound >= last)
        before = [at for at in sides if clause[0] <= at < first and first - at <= _FAR and at not in objects]
        behind = [at for at in sides if first <= at < clause[1] and at - last <= _AFTER]
        kind = found.lastgroup or ""
        if kind.endswith("object") and not (behind and behind[0] - last <= _RIGHT_BEHIND):
            continue
        up = kind.startswith("up")
        if _NEGATED.search(text, clause[0], first):
            up = not up
        if _PASSIVE.search(text, clause[0], first) and _BY.match(text, last, clause[1]):
            up = not up
        doer = sides[before[-1]] if before else None
        done_to = sides[behind[0]] if behind else None
        objects.update(behind[:1])
        how = _HOW.search(text, clause[0], first)
        shown = " ".join(_AROUND.sub("", text[first:last]).split())
        shown = f"{how[1]} {shown}" if how else shown
        yield Contest(shown=shown, start=first, end=last, up=up, own_ahead=_own_ahead(doer, done_to, up))


def _own_ahead(doer: bool | None, done_to: bool | None, up: bool) -> bool | None:
    """`doer`, `done_to`: whether it is the authors' own; None where neither tells, or both tell different things."""
    if doer is None and done_to is None:
        return None
    if doer is None or doer != done_to:
        return up == (doer if doer is not None else not done_to)
    return None


def _sides(text: str, start: int, end: int, own: str) -> dict[int, bool]:
    """Where somebody is mentioned, and whether it is the authors' own work; ascending."""
    return {found.start(): found.lastgroup == "own" for found in _mentions(own).finditer(text, start, end)}


@cache
def _mentions(own: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:(?P<rival>{_RIVAL})|(?P<own>{_OWN}{'|' + own if own else ''}))(?!\w)", re.I)


@cache
def _terms() -> re.Pattern[str]:
    data = tomllib.loads(Path(__file__).with_name("opposites.toml").read_text(encoding="utf-8"))["contest"]
    sides = "|".join(
        f"(?P<{side}>{'|'.join(data[side].split(', '))})"
        for side in ("down", "up", "down_with_object", "up_with_object")
    )
    return re.compile(rf"\b(?:{sides.replace('GOOD', data['better']).replace('MUCH', data['much'])})\b", re.I)
