"""Plain, slow reference of the merge, as SPEC M1 to M4 define it: every candidate is compared with every other.

The reference for `retrieval/merge.py`, in its tests and in `benchmarks/merge.py`.
"""

import json
import math
from collections.abc import Sequence

from paper_assets.retrieval.merge import Candidate, Policy

Kept = tuple[str, float, str]  # doc_id, score, content
Dropped = set[tuple[str, str]]  # stage and doc_id


def allowed(candidate: Candidate, policy: Policy) -> bool:
    """Access and language; versions need the others."""
    metadata = candidate.metadata
    mine = policy.owner is not None and metadata.get("owner") == policy.owner
    speaks = policy.language is None or metadata.get("language") == policy.language
    return (metadata.get("access_level") == "public" or mine) and speaks


def visible(candidate: Candidate, policy: Policy) -> bool:
    """Access alone: what may be known of at all."""
    return allowed(candidate, Policy(owner=policy.owner))


def outdated(candidate: Candidate, others: Sequence[Candidate], policy: Policy) -> bool:
    version, paper = candidate.metadata.get("version"), candidate.metadata.get("paper_id", "")
    if version is None:
        return False
    known = [
        other.metadata["version"]
        for other in others
        if other.metadata.get("version") is not None and other.metadata.get("paper_id", "") == paper
    ]
    return version < max([*known, policy.latest.get(paper, 0)])


def said_by(candidate: Candidate) -> tuple[str, str, str]:
    return candidate.source_id, candidate.content, json.dumps(dict(candidate.metadata), sort_keys=True)


def plain_merge(
    lists: Sequence[Sequence[Candidate]],
    *,
    policy: Policy,
    comparable: bool = False,
    fusion_constant: int = 60,
    max_per_source: int | None = None,
    limit: int | None = None,
    max_tokens: int | None = None,
) -> tuple[list[Kept], Dropped]:
    """What is left, best first, and what was dropped by which stage."""
    dropped: Dropped = set()
    known = [candidate for each in lists for candidate in each if visible(candidate, policy)]
    scored: list[list[tuple[float, Candidate]]] = []
    for each in lists:
        scored.append([])
        for candidate in each:
            if not allowed(candidate, policy) or outdated(candidate, known, policy):
                dropped.add(("policy", candidate.doc_id))
            elif not math.isfinite(candidate.score):
                dropped.add(("normalise", candidate.doc_id))
            else:
                distance = candidate.score_type == "distance"
                score = 1 / (1 + max(0.0, candidate.score)) if distance else candidate.score
                scored[-1].append((score, candidate))
    scored = [each for each in scored if each]

    # (score, place, candidate): a place counts only where lists are fused.
    merged: list[tuple[float, int, Candidate]] = []
    if comparable or len(scored) < 2:
        merged = [(score, 0, candidate) for each in scored for score, candidate in each]
    else:
        ranked = [sorted(each, key=lambda pair: (-pair[0], pair[1].doc_id)) for each in scored]
        named = [list(dict.fromkeys(candidate.doc_id for _, candidate in each)) for each in ranked]
        for each in ranked:
            keys = [(score, candidate.doc_id) for score, candidate in each]
            for score, candidate in each:
                place = keys.index((score, candidate.doc_id))  # equal entries share the first place among them
                ranks = [names.index(candidate.doc_id) + 1 for names in named if candidate.doc_id in names]
                merged.append((math.fsum(1 / (fusion_constant + rank) for rank in ranks), place, candidate))

    kept: list[tuple[float, Candidate]] = []
    for at, (score, place, candidate) in enumerate(merged):
        rivals = [other for i, other in enumerate(merged) if i != at and other[2].doc_id == candidate.doc_id]
        mine = (-score, place, said_by(candidate))
        theirs = [(-rival[0], rival[1], said_by(rival[2])) for rival in rivals]
        if rivals:
            dropped.add(("dedupe", candidate.doc_id))
        if all(mine < their for their in theirs) or (
            all(mine <= their for their in theirs) and candidate.doc_id not in [one.doc_id for _, one in kept]
        ):
            kept.append((score, candidate))
    kept.sort(key=lambda pair: (-pair[0], pair[1].doc_id))

    left: list[tuple[float, Candidate]] = []
    for score, candidate in kept:
        of_source = [other for _, other in left if other.source_id == candidate.source_id]
        if max_per_source is not None and len(of_source) >= max_per_source:
            dropped.add(("diversify", candidate.doc_id))
        else:
            left.append((score, candidate))

    chosen: list[tuple[float, Candidate]] = []
    for score, candidate in left:
        least = sum(min(tokens_of(each.content), 100) for each in [*(one for _, one in chosen), candidate])
        full = limit is not None and len(chosen) >= limit
        if full or (max_tokens is not None and chosen and least > max_tokens):
            dropped.add(("compress", candidate.doc_id))
        else:
            chosen.append((score, candidate))
    room = max([0, *(tokens_of(candidate.content) for _, candidate in chosen)])
    while max_tokens is not None and sum(min(tokens_of(one.content), room) for _, one in chosen) > max_tokens:
        room -= 1
    final = [(candidate.doc_id, score, shortened(candidate.content, room)) for score, candidate in chosen]
    return final, dropped


def tokens_of(text: str) -> int:
    return math.ceil(len(text.encode()) / 3)


def shortened(text: str, room: int) -> str:
    if tokens_of(text) <= room:
        return text
    while len(text.encode()) + 3 > 3 * max(room, 1):
        text = text[:-1]
    while " " in text and not text.endswith(" "):
        text = text[:-1]
    return text.removesuffix(" ") + "…"
