"""Detect a rewrite that says the opposite of its original: increases for decreases, worse for better, cannot for can
(B2).

Two methods, both by words alone (`opposites.toml`). First, every directed word ("increases") is compared with the words
around it: a rewrite is stopped if a directed word is used of the same words as its opposite in the original, and the
original nowhere says of them what the rewrite says. Second, contests ("outperforms"): a word of winning or losing has a
subject before it and mostly an object after it ("A outperforms B", "A is beaten by B"), and the rewrite may not swap
who wins. Opposites expressed in other words are not found; the critic has to. Recall and false alarms are in
docs/evaluation.md.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from paper_assets.rewriting.quantities import plain
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.stems import stem
from paper_assets.text.words import FUNCTION_WORDS

_THING = (
    r"(?:methods?|models?|approach(?:es)?|programs?|systems?|techniques?|ones?|algorithms?|tools?|networks?|baselines?"
    r"|versions?|learning|solutions?|works?|architectures?|frameworks?|designs?|detectors?|classifiers?|agents?)"
)
_CONTEST_RIVAL = (
    r"baselines?|rivals?|competitors?|predecessors?|counterparts?|sota|others|the rest|state[- ]of[- ]the[- ]art"
    r"(?! (?:performance|results?|scores?|accurac))"
    r"|(?:existing|previous|previously|prior|earlier|conventional|traditional|other|competing|ordinary|standard|usual"
    r"|common|classical|older|best|current|today['’]s|known|established|leading|strongest|alternative|unchanged"
    r"|comparable|vanilla|naive|plain|recent)(?:(?:,? and|,)? [\w'’/-]{1,40}){0,4}? "
    + _THING
    + r"|[\w-]{1,40} alone|[\w-]{1,40}-only"
)
_CONTEST_OWN = (
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
_AROUND = re.compile(r"^(?:do|does|did|doing|(?:work|perform)(?:s|ed|ing)?) | than$", re.I)  # may be left out
_FAR = 90  # characters between a winning or losing verb and its subject or object
_AFTER = 45
_RIGHT_BEHIND = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A word of winning (`up`) or losing; `own_ahead`: whether the authors' own work is ahead, None if unknown."""

    shown: str
    start: int
    end: int
    up: bool
    own_ahead: bool | None


def contests(text: str, *, own: str = "") -> tuple[Contest, ...]:
    """Return every word of winning or losing in an English text. `own`: a pattern of further names of the authors'
    work.
    """
    return tuple(each for start, end in sentence_spans(text) for each in _contests_of_sentence(text, start, end, own))


def _contests_of_sentence(text: str, start: int, end: int, own: str) -> Iterator[Contest]:
    sides = _sides(text, start, end, own)
    bounds = [start, *(found.start() for found in _BEGINS_CLAUSE.finditer(text, start, end)), end]
    objects: set[int] = set()  # positions of objects: an object is not the subject of the next verb
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
    """Return whether the authors' own work is ahead, given whether `doer` and `done_to` are theirs; None if unknown or
    contradictory.
    """
    if doer is None and done_to is None:
        return None
    if doer is None or doer != done_to:
        return up == (doer if doer is not None else not done_to)
    return None


def _sides(text: str, start: int, end: int, own: str) -> dict[int, bool]:
    """Return the positions of all mentioned parties and whether each is the authors' own work; ascending."""
    return {found.start(): found.lastgroup == "own" for found in _mentions(own).finditer(text, start, end)}


@cache
def _mentions(own: str) -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:(?P<rival>{_CONTEST_RIVAL})|(?P<own>{_CONTEST_OWN}{'|' + own if own else ''}))(?!\w)", re.I
    )


@cache
def _terms() -> re.Pattern[str]:
    data = tomllib.loads(Path(__file__).with_name("opposites.toml").read_text(encoding="utf-8"))["contest"]
    sides = "|".join(
        f"(?P<{side}>{'|'.join(data[side].split(', '))})"
        for side in ("down", "up", "down_with_object", "up_with_object")
    )
    return re.compile(rf"\b(?:{sides.replace('GOOD', data['better']).replace('MUCH', data['much'])})\b", re.I)


_REACH = 9  # words to each side that a directed word can be about
_NEAR = 3  # words after a negation that it reverses
_LEAST = 0.5  # least evidence that two words are about the same; one shared neighbour gives 0.5
_LEAST_OF_A_LOST_NOT = 1.2  # a missing negation is often only a paraphrase
_CLEARLY = 1.6  # how much more there must be for the opposite than for the same
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,]\d+)*|[;:(),]")
_BREAKS = frozenset(";:()")
_ENDS = frozenset(
    (",", "that", "which", "to", "for", "in", "on", "by", "of", "from", "is", "are", "when", "while", "as")
)
_SUBJECTS = frozenset(("none", "nobody", "nothing", "neither"))
_VERDICTS = frozenset(("quality", "speed", "stability", "worth", "strength"))  # up is good
_OWN = re.compile(
    r"\b(?:[Ww]e|[Oo]ur|[Tt]h(?:e|is|ese) (?:new )?(?:authors?|researchers?|team|paper|work|study|article)|[Hh]ere,)\b"
)
_LINKS = frozenset(("and", "or", "than", "by", "over", ",", *_BREAKS))
_RIVAL = "\0rival"  # what a method is compared with, in whatever words


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A word of the rewrite, and the words of the original that say the opposite of the same thing."""

    said: str
    original: str


@dataclass(frozen=True, slots=True)
class _Directed:
    """A directed word. `about`: stems around it with their distance in words."""

    axis: str
    up: bool
    shown: str
    about: Mapping[str, int]
    sure: bool = True  # False: there is a negation nearby whose scope is unknown
    own: bool | None = True  # about the authors' own work; None in a title


def turned(title: str, abstract: str, rewrite: str) -> tuple[Turned, ...]:
    """Return where `rewrite` says the opposite of a paper's title and abstract, all in English; each word once."""
    there = [*_directed(abstract, _OWN), *(replace(each, own=None) for each in _directed(title, _OWN))]
    by_axis: dict[str, list[_Directed]] = defaultdict(list)
    for each in there:
        by_axis[each.axis].append(each)
    praise = _praise(there, abstract)
    lost, settled = _lost(title, abstract, rewrite)
    found = {each.said: each for each in lost}
    for said in _directed(rewrite, _named(title), settled=settled):
        if not said.sure:
            continue
        same = max((_evidence(said, each) for each in by_axis[said.axis] if each.up == said.up), default=0.0)
        against = (each for each in by_axis[said.axis] if each.up != said.up and each.own == said.own and each.sure)
        opposite, of = max(((_evidence(said, each), each.shown) for each in against), default=(0.0, ""))
        least = _LEAST_OF_A_LOST_NOT if said.up and said.axis.startswith("not ") else _LEAST
        if opposite < max(least, _CLEARLY * same):
            of = praise if said.own and not said.up and said.axis in _VERDICTS and not same else ""
        if of:
            found.setdefault(said.shown, Turned(said=said.shown, original=of))
    return tuple(found.values())


def _lost(title: str, abstract: str, rewrite: str) -> tuple[list[Turned], list[Contest]]:
    """Return the places where the rewrite lets the other side win, and all places that need no further check."""
    name = _name(title)
    told = contests(plain(abstract), own=name)
    sure = [each for each in told if each.own_ahead is not None]
    known = [each for each in contests(plain(rewrite), own=name) if each.own_ahead is not None]
    # An unidentified loser, or winner, may be the authors' own work.
    if not sure or any((each.up if each.own_ahead is None else each.own_ahead) != sure[0].own_ahead for each in told):
        return [], []
    against = (each for each in known if each.own_ahead != sure[0].own_ahead)
    return [Turned(said=each.shown, original=sure[0].shown) for each in against], known


def _praise(there: Sequence[_Directed], abstract: str) -> str:
    """Return the first positive word about the paper's own work if no negative word is said of it; else nothing."""
    own = [each for each in there if each.own and each.axis in _VERDICTS]
    start = _begins(abstract, _OWN)
    words = {found.group().lower() for found in _WORD.finditer(abstract, start)}
    if any(not each.up for each in own) or words & _lexicon().troubles:
        return ""
    return next((each.shown for each in own if each.axis == "quality"), "")


def _evidence(said: _Directed, there: _Directed) -> float:
    """Return the evidence that two words are about the same: shared neighbours, weighted by their nearness to both."""
    return sum(1 / (at + there.about[word]) for word, at in said.about.items() if word in there.about)


def _directed(text: str, own: re.Pattern[str], *, settled: Sequence[Contest] = ()) -> Iterator[_Directed]:
    text = plain(text)
    begins = _begins(text, own)
    for start, end in sentence_spans(text):
        found = list(_WORD.finditer(text, start, end))
        words = [word.group().lower().replace("’", "'") for word in found]
        judged = {at for at, word in enumerate(found) if any(one.start <= word.start() < one.end for one in settled)}
        for each in _of_sentence(words, judged):
            yield replace(each, own=end > begins)


def _begins(text: str, own: re.Pattern[str]) -> int:
    """Return where a text starts to speak of the authors' own work, after related work; 0 if unknown."""
    found = own.search(text)
    return found.start() if found else 0


def _named(title: str) -> re.Pattern[str]:
    """Return a pattern of what a rewrite calls the authors and their work; a title often begins with a name and a
    colon.
    """
    name = _name(title)
    return re.compile(rf"{_OWN.pattern}{'|' + name if name else ''}")


def _name(title: str) -> str:
    """Return a pattern of the name that a title begins with; empty if it has none."""
    name = title.partition(":")[0].strip()
    return re.escape(name) if 0 < len(name.split()) <= 2 and ":" in title else ""


def _of_sentence(words: Sequence[str], judged: Collection[int] = ()) -> Iterator[_Directed]:
    """Yield the directed words of a sentence. `judged`: places of words that are already understood."""
    lexicon = _lexicon()
    directed: dict[int, tuple[str, bool, int]] = {}  # place -> axis, up, place of its last word
    for place in range(len(words)):
        if any(place <= last for _, _, last in list(directed.values())[-1:]):
            continue
        for length in (3, 2, 1):
            term = " ".join(words[place : place + length])
            if term in lexicon.terms and place + length <= len(words):
                directed[place] = (*lexicon.terms[term], place + length - 1)
                break
    negated = [place for place, word in enumerate(words) if word in lexicon.negations or word.endswith("n't")]
    taken = {each for place, (_, _, last) in directed.items() for each in range(place, last + 1)}
    stems = {place: _about(word, lexicon) for place, word in enumerate(words) if place not in taken}
    for place, (axis, up, last) in directed.items():
        if place in judged:
            continue
        follows = last + 1 in directed and directed[last + 1][0] != axis
        if axis == "amount" and follows and words[place] in ("more", "less"):
            continue  # "less stable" is said of "stable"
        flips = sum(0 < place - at <= _reach(words[at]) and not _between(words, at, place) for at in negated)
        flips += place - 1 in directed and words[place - 1] == "less"
        flips += axis == "company" and words[last + 1 : last + 2] == ["no"]
        flips += axis == "quality" and _rival_before(words, stems, place)
        about = _behind(words, stems, last) if axis == "company" else _window(words, stems, place, last)
        shown = words[max(0, place - 1)] + " " if flips and place else ""
        far = any(_reach(words[at]) < place - at <= _REACH and not _between(words, at, place) for at in negated)
        yield _Directed(axis, up != bool(flips % 2), shown + " ".join(words[place : last + 1]), about, sure=not far)
    denied = {_next(stems, at): at for at in negated if words[at] in lexicon.denials or words[at].endswith("n't")}
    doubtful = bool(negated) or not lexicon.troubles.isdisjoint(words)
    for place, word in stems.items():  # every other word, by whether it is denied
        if word and word != _RIVAL:
            shown = " ".join(words[denied.get(place, place) : place + 1])
            about = _window(words, stems, place, place)
            yield _Directed(f"not {word}", place not in denied, shown, about, sure=place in denied or not doubtful)


def _window(words: Sequence[str], stems: Mapping[int, str], first: int, last: int) -> dict[str, int]:
    """Return the stems around words `first` to `last` with their smallest distance, up to the next bracket or
    semicolon.
    """
    about: dict[str, int] = {}
    for step, edge in ((1, last), (-1, first)):
        distance = 0
        for place in range(edge + step, edge + step * (_REACH + 1), step):
            if not 0 <= place < len(words) or words[place] in _BREAKS:
                break
            if stems.get(place):
                distance += 1
                about[stems[place]] = min(distance, about.get(stems[place], distance))
    return about


def _behind(words: Sequence[str], stems: Mapping[int, str], last: int) -> dict[str, int]:
    """Return the first words after "with"; words further away may belong to anything."""
    places = [at for at in range(last + 1, last + 2 + _NEAR) if stems.get(at) and not _ends(words, last + 1, at)]
    return dict.fromkeys((stems[place] for place in places), 1)


def _reach(negation: str) -> int:
    """Return how far the negation of a subject reaches, its verb included: "none of the larger ones helps"."""
    return 2 * _NEAR if negation in _SUBJECTS else _NEAR


def _ends(words: Sequence[str], first: int, last: int) -> bool:
    """Return whether a noun phrase ends between two places."""
    return any(words[at] in _BREAKS or words[at] in _ENDS for at in range(first, last))


def _next(stems: Mapping[int, str], last: int) -> int | None:
    return next((at for at in range(last + 1, last + 1 + _NEAR) if stems.get(at)), None)


def _rival_before(words: Sequence[str], stems: Mapping[int, str], place: int) -> bool:
    """Return whether the subject is what the method is compared with: "earlier methods often fall behind"."""
    for at in range(place - 1, max(-1, place - 6), -1):
        if stems.get(at) == _RIVAL:
            return True
        if stems.get(at) or words[at] in _LINKS:
            return False
    return False


def _between(words: Sequence[str], first: int, last: int) -> bool:
    return any(words[at] in _BREAKS for at in range(first, last))


def _about(word: str, lexicon: "_Lexicon") -> str:
    if word in lexicon.rivals:
        return _RIVAL
    return "" if word in FUNCTION_WORDS or word in lexicon.empty or word in _BREAKS or word == "," else stem(word)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lexicon:
    terms: Mapping[str, tuple[str, bool]]  # words -> axis, up
    negations: frozenset[str]
    denials: frozenset[str]
    rivals: frozenset[str]
    troubles: frozenset[str]
    empty: frozenset[str]


@cache
def _lexicon() -> _Lexicon:
    data = tomllib.loads(Path(__file__).with_name("opposites.toml").read_text(encoding="utf-8"))
    terms = {
        term: (axis, side == "up")
        for axis, sides in data["axes"].items()
        for side, line in sides.items()
        for term in line.split(", ")
    }
    return _Lexicon(
        terms=terms,
        negations=frozenset(data["negations"].split(", ")),
        denials=frozenset(data["denials"].split(", ")),
        rivals=frozenset(data["rivals"].split(", ")),
        troubles=frozenset(data["troubles"].split(", ")),
        empty=frozenset(data["empty"].split(", ")),
    )
