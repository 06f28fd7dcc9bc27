"""One side of a plan: fetched, put in order, cut to what is wanted, and told why there is no more (SPEC R2, R3)."""

from collections.abc import Mapping, Sequence

from paper_assets.errors import StoreBusy
from paper_assets.retrieval.conditions import Condition, conditions_of, joined
from paper_assets.retrieval.fetching import Fetched, fetch, in_one_line, shortlist_of
from paper_assets.retrieval.findings import Caller, Findings, log_findings
from paper_assets.retrieval.merge import Drop, Rerank, compressed
from paper_assets.retrieval.plan import Plan, Side
from paper_assets.retrieval.reader_warnings import warnings_of
from paper_assets.retrieval.search import Corpus, Found, count_matching
from paper_assets.stores.documents import DataType


def findings_of(
    corpus: Corpus,
    plan: Plan,
    side: Side | None,
    *,
    caller: Caller,
    wanted: int,
    max_tokens: int,
    rerank: Rerank | None = None,
) -> Findings:
    """The `wanted` best documents of a side (None: of the plan without sides), at most `max_tokens` of text.

    A search that fails is reported in `error` and raises nothing, so that the others go on; only a store that another
    process holds (StoreBusy) is no fault of the side, and raises.
    """
    query = (side and side.query) or plan.rewritten_question
    conditions = conditions_of(plan, side, as_of=caller.as_of, owner=caller.owner)
    name, where = side.name if side else None, joined(conditions)
    try:
        depth = shortlist_of(wanted, corpus.config)
        fetched = fetch(corpus, plan, query, conditions, caller=caller, wanted=wanted, depth=depth, rerank=rerank)
        findings = cut_to(
            Findings(side=name, query=query, filter=where, wanted=wanted),
            corpus,
            fetched,
            conditions,
            max_tokens=max_tokens,
        )
    except StoreBusy:
        raise
    except Exception as fault:  # whatever breaks one side must leave the others whole (R3)
        findings = Findings(side=name, query=query, filter=where, wanted=wanted, error=in_one_line(fault))
    log_findings(findings)
    return findings


def cut_to(
    asked: Findings, corpus: Corpus, fetched: Fetched, conditions: Sequence[Condition], *, max_tokens: int
) -> Findings:
    """The findings that were `asked` for, out of everything that was fetched, best first."""
    final = compressed(fetched.merged.candidates, limit=asked.wanted, max_tokens=max_tokens)
    drops = (*fetched.merged.drops, *final.drops)
    found, scores = fetched.found, fetched.search_scores
    short = len(final.candidates) < asked.wanted and found
    return Findings(
        side=asked.side,
        query=asked.query,
        filter=asked.filter,
        wanted=asked.wanted,
        documents=final.candidates,
        matching=sum(each.matching for each in found.values()),
        unembedded=sum(each.unembedded for each in found.values()),
        undated=sum(each.undated for each in found.values()),
        methods=tuple(sorted({each.method for each in found.values()})),
        search_scores={each.doc_id: scores[each.doc_id] for each in final.candidates},
        cut=final.cut,
        warnings=warnings_of(
            found.values(),
            final.candidates,
            scores=scores,
            cut=final.cut,
            model=corpus.embedder is not None,
            config=corpus.config,
        ),
        shortfall=_shortfall(corpus, conditions, found, drops, asked.wanted) if short else None,
        error="; ".join(fetched.faults) or None,
        drops=drops,
    )


def _shortfall(
    corpus: Corpus,
    conditions: Sequence[Condition],
    found: Mapping[DataType, Found],
    drops: Sequence[Drop],
    wanted: int,
) -> str:
    """Why there are fewer than wanted, in words: by what was dropped of the matching ones, else by counting."""
    matching = sum(each.matching for each in found.values())
    if not matching:
        return _why_none(corpus, conditions, tuple(found))
    parts = [f"{len(drop.doc_ids)} {drop.reason}" for drop in drops]
    silent = sum(each.matching - len(each.candidates) for each in found.values() if each.method == "lexical")
    if silent > 0:
        parts.append(f"{silent} share no word with the question")
    bare = sum(
        min(each.unembedded, each.matching - len(each.candidates))
        for each in found.values()
        if each.method != "lexical"
    )
    if bare > 0:
        parts.append(f"{bare} have no vector and share no word with the question")
    only = f"{'only ' if matching < wanted else ''}{matching} of type {' or '.join(found)} meet the conditions"
    return f"{only}: {', '.join(parts)}" if parts else only


def _why_none(corpus: Corpus, conditions: Sequence[Condition], data_types: Sequence[DataType]) -> str:
    """Which condition no document meets, or else that none meets all of them together."""

    def count(chosen: Sequence[Condition]) -> int:
        return sum(count_matching(corpus, data_type=each, where=joined(chosen)) for each in data_types)

    always = [condition for condition in conditions if not condition.asked]
    asked = [condition for condition in conditions if condition.asked]
    if not count(always):
        return f"none of type {' or '.join(data_types)}" + "".join(f" {each.words}" for each in always if each.words)
    alone = {condition.words: count([*always, condition]) for condition in asked}
    if unmet := [words for words, documents in alone.items() if not documents]:
        return "; ".join(f"none {words}" for words in unmet)
    return "none " + " and ".join(f"{words} ({documents} by itself)" for words, documents in alone.items())
