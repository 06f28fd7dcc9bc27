"""Merge several result lists stage by stage, reporting what each stage dropped and why (SPEC M1, M2, M3, M4).

The result does not depend on the order of the lists or within a list: only scores count, and ties are broken by the
documents themselves.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from operator import itemgetter
from typing import Any, Literal, NamedTuple

ScoreType = Literal["distance", "similarity"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A search result: text, metadata and score.

    `metadata` has the fields of a stored document (`stores.documents.FIELDS`). `score`: higher is better for a
    similarity, lower for a distance. `source_id`: the paper or file that it was cut from.
    """

    doc_id: str
    content: str
    metadata: Mapping[str, Any]
    score: float
    score_type: ScoreType
    source_id: str


PRIVATE = "private to another profile"
OTHER_LANGUAGE = "not in the requested language"
OUTDATED = "not the latest version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the caller may read: a profile's name (None: public only), the language (None: any), and known latest
    versions.

    A document that is not marked public is private; one without a language matches no requested language.
    """

    owner: str | None = None
    language: str | None = None
    latest: Mapping[str, int] = field(default_factory=dict)


def access(owner: str | None) -> dict[str, Any]:
    """Return the access rule as a filter, so that refused documents take no places in the search."""
    public = {"access_level": {"$eq": "public"}}
    return public if owner is None else {"$or": [public, {"owner": {"$eq": owner}}]}


def _refusal(document: Mapping[str, Any], policy: Policy) -> str | None:
    if document.get("access_level") != "public":
        owner = document.get("owner")
        if owner is None or owner != policy.owner:
            return PRIVATE
    if policy.language is not None and document.get("language") != policy.language:
        return OTHER_LANGUAGE
    return None


def _version_of(document: Mapping[str, Any]) -> tuple[str, int]:
    """Return a document's paper and version; 0 where it has none."""
    version = document.get("version")
    return document.get("paper_id", ""), version if isinstance(version, int) else 0


def reciprocal_rank_fusion(rankings: Sequence[Sequence[str]], *, constant: int = 60) -> dict[str, float]:
    """Return the score of each id: the sum of 1 / (constant + rank) over the rankings that hold it, ranks from 1.

    An id that a ranking repeats counts once, at its better rank. The order of the rankings does not matter, to the last
    bit. Ids are in the order of their score, ties by id. Cormack, Clarke & Buettcher (2009).
    """
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for place, doc_id in enumerate(dict.fromkeys(ranking), 1):
            shares.setdefault(doc_id, []).append(1.0 / (constant + place))
    fused = ((doc_id, fsum(parts)) for doc_id, parts in shares.items())
    return dict(sorted(fused, key=lambda scored: (-scored[1], scored[0])))


Rerank = Callable[[Sequence[Candidate]], Sequence[float]]

NO_NUMBER = "its score is not a number"
REPEATED = "found better elsewhere"

_BYTES_PER_TOKEN = 3  # an English token has four to five; other scripts come near three
_LEAST_TOKENS = 100  # tokens left of each text at least, if it has them: a graded chunk
_CUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Options of the stages; None means no limit.

    `comparable`: scores of different lists can be compared; otherwise ranks count.
    """

    policy: Policy
    comparable: bool = False
    fusion_constant: int = 60
    max_per_source: int | None = None
    rerank: Rerank | None = None
    limit: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Documents that a stage removed for one reason."""

    stage: str
    reason: str
    doc_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The remaining documents, best first, scored by similarity, fused rank or reranker, and what each stage dropped.

    `cut`: the number of characters left out of a document's text, by its id.
    """

    candidates: tuple[Candidate, ...]
    drops: tuple[Drop, ...]
    cut: Mapping[str, int] = field(default_factory=dict)


class Entry(NamedTuple):
    """A candidate in the pipeline: doc_id, present score, rank if ranks count, and the list it came from."""

    doc_id: str
    score: float
    place: int
    of: int
    candidate: Candidate


Dropped = list[tuple[str, str]]  # why, and which document
Stage = Callable[[list[Entry], Rules], tuple[list[Entry], Dropped]]


def policy_filter(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Keep what the caller may read, before any other stage.

    Another owner's document reveals nothing about versions.
    """
    documents = [entry.candidate.metadata for entry in entries]
    reasons = [_refusal(document, rules.policy) for document in documents]
    newest = dict(rules.policy.latest)
    for document, reason in zip(documents, reasons, strict=True):
        paper, version = _version_of(document)
        if reason != PRIVATE:
            newest[paper] = max(version, newest.get(paper, version))
    for at, document in enumerate(documents):
        paper, version = _version_of(document)
        if reasons[at] is None and 0 < version < newest[paper]:
            reasons[at] = OUTDATED
    return _split(entries, reasons)


def normalise(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Convert every score to a similarity: a distance d becomes 1 / (1 + d)."""
    kept, dropped = _split(entries, [None if math.isfinite(entry.score) else NO_NUMBER for entry in entries])
    similar = [
        entry._replace(score=1 / (1 + max(entry.score, 0.0))) if entry.candidate.score_type == "distance" else entry
        for entry in kept
    ]
    return similar, dropped


def merge_lists(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Join the lists, best first: by score if scores are comparable, else by reciprocal rank fusion."""
    ordered = sorted(entries, key=_best_first)
    lists: dict[int, list[Entry]] = defaultdict(list)
    for entry in ordered:
        lists[entry.of].append(entry)
    if rules.comparable or len(lists) < 2:
        return ordered, []
    fused = reciprocal_rank_fusion(
        [[entry.doc_id for entry in each] for each in lists.values()], constant=rules.fusion_constant
    )
    places: dict[tuple[int, str, float], int] = {}  # equal entries share one, so that dedupe sees that they are equal
    placed = [
        entry._replace(score=fused[entry.doc_id], place=places.setdefault((entry.of, entry.doc_id, entry.score), place))
        for each in lists.values()
        for place, entry in enumerate(each)
    ]
    return sorted(placed, key=_best_first), []


def dedupe(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Keep each document once, with its best score; of equals, the one whose text sorts first."""
    kept: dict[str, Entry] = {}
    repeated: Dropped = []
    for entry in entries:
        best = kept.setdefault(entry.doc_id, entry)
        if best is not entry:
            repeated.append((REPEATED, entry.doc_id))
            if (entry.score, entry.place) == (best.score, best.place):
                kept[entry.doc_id] = min(best, entry, key=_text_of)
    return list(kept.values()), repeated


def diversify(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Keep at most `max_per_source` documents of a source, its best ones."""
    most = rules.max_per_source
    if most is None:
        return entries, []
    counts: Counter[str] = Counter()
    reasons: list[str | None] = []
    for entry in entries:
        source = entry.candidate.source_id
        counts[source] += 1
        reasons.append(f"more than {most} of one source" if counts[source] > most else None)
    return _split(entries, reasons)


def rerank(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Apply the reranker, if there is one."""
    if rules.rerank is None or not entries:
        return entries, []
    scores = rules.rerank([entry.candidate for entry in entries])
    judged = [entry._replace(score=float(score)) for entry, score in zip(entries, scores, strict=True)]
    kept, dropped = _split(judged, [None if math.isfinite(entry.score) else NO_NUMBER for entry in judged])
    return sorted(kept, key=_best_first), dropped


def compress(entries: list[Entry], rules: Rules) -> tuple[list[Entry], Dropped]:
    """Keep at most `limit` documents and `max_tokens` of text: the longest are cut first, none below a chunk's size.

    Only documents that still do not fit are dropped: a long text is not a reason to prefer a worse document.
    """
    reasons: list[str | None] = []
    kept = least = 0
    for entry in entries:
        reason = None
        needed = min(most_tokens(entry.candidate.content), _LEAST_TOKENS)
        if rules.limit is not None and kept >= rules.limit:
            reason = f"beyond the best {rules.limit}"
        elif rules.max_tokens is not None and kept and least + needed > rules.max_tokens:
            reason = f"does not fit into {rules.max_tokens} tokens"
        else:
            kept, least = kept + 1, least + needed
        reasons.append(reason)
    left, dropped = _split(entries, reasons)
    limit_of_each = _limit_of_each([most_tokens(entry.candidate.content) for entry in left], rules.max_tokens)
    return [entry._replace(candidate=_cut(entry.candidate, limit_of_each)) for entry in left], dropped


def _limit_of_each(needed: Sequence[int], most: int | None) -> int | None:
    """Return the highest number of tokens for each text that keeps the total within `most`; None: no limit needed."""
    if most is None:
        return None
    for at, tokens in enumerate(sorted(needed)):
        share = most // (len(needed) - at)
        if tokens > share:
            return share
        most -= tokens
    return None


def _cut(candidate: Candidate, limit: int | None) -> Candidate:
    """Return the candidate with at most `limit` tokens of its text, cut at a word and marked."""
    if limit is None or most_tokens(candidate.content) <= limit:
        return candidate
    most = max(limit, 1) * _BYTES_PER_TOKEN - len(_CUT.encode())
    begun = candidate.content.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    return replace(candidate, content=begun.rpartition(" ")[0] + _CUT if " " in begun else begun + _CUT)


STAGES: tuple[tuple[str, Stage], ...] = (
    ("policy", policy_filter),
    ("normalise", normalise),
    ("merge", merge_lists),
    ("dedupe", dedupe),
    ("diversify", diversify),
    ("rerank", rerank),
    ("compress", compress),
)


def merge(lists: Sequence[Sequence[Candidate]], rules: Rules) -> Merged:
    """Merge the lists through all stages in order."""
    entries = [
        Entry(candidate.doc_id, candidate.score, 0, of, candidate)
        for of, each in enumerate(lists)
        for candidate in each
    ]
    return _through(STAGES, entries, rules)


def compressed(candidates: Sequence[Candidate], *, limit: int, max_tokens: int) -> Merged:
    """Run only the last stage, on candidates that passed the others, best first."""
    entries = [Entry(each.doc_id, each.score, place, 0, each) for place, each in enumerate(candidates)]
    return _through(STAGES[-1:], entries, Rules(policy=Policy(), limit=limit, max_tokens=max_tokens))


def _through(stages: Sequence[tuple[str, Stage]], entries: list[Entry], rules: Rules) -> Merged:
    drops: list[Drop] = []
    uncut: dict[str, str] = {}
    for name, stage in stages:
        uncut = {entry.doc_id: entry.candidate.content for entry in entries}  # from the last stage, which cuts
        entries, dropped = stage(entries, rules)
        drops.extend(_by_reason(name, dropped))
    final = tuple(replace(entry.candidate, score=entry.score, score_type="similarity") for entry in entries)
    cut = {
        each.doc_id: len(uncut[each.doc_id]) - len(each.content) + len(_CUT)
        for each in final
        if each.content != uncut[each.doc_id]
    }
    return Merged(final, tuple(drops), cut)


def most_tokens(text: str) -> int:
    """Estimate from above the tokens of the text: its bytes / 3."""
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)


def _best_first(entry: Entry) -> tuple[float, str, int]:
    return -entry.score, entry.doc_id, entry.place


def _text_of(entry: Entry) -> tuple[str, ...]:
    candidate = entry.candidate
    return candidate.source_id, candidate.content, json.dumps(dict(candidate.metadata), sort_keys=True, default=str)


def _split(entries: list[Entry], reasons: Iterable[str | None]) -> tuple[list[Entry], Dropped]:
    """Separate entries without a reason from those with one."""
    judged = list(zip(entries, reasons, strict=True))
    return (
        [entry for entry, reason in judged if reason is None],
        [(reason, entry.doc_id) for entry, reason in judged if reason is not None],
    )


def _by_reason(stage: str, dropped: Dropped) -> list[Drop]:
    found: dict[str, list[str]] = defaultdict(list)
    for reason, doc_id in dropped:
        found[reason].append(doc_id)
    return [Drop(stage, reason, tuple(sorted(ids))) for reason, ids in sorted(found.items(), key=itemgetter(0))]
