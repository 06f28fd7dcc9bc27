"""`balanced_retrievals`: the answers to each profile's questions, side by side (SPEC R3).

Belongs here: the asset, its report and its checks. Not here: searching and grading (paper_assets/retrieval).
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Any

import dagster as dg

from paper_assets.defs.automation import on_new_papers_or_profile
from paper_assets.defs.embeddings import embedder_or_none
from paper_assets.defs.partitions import any_day, by_day, profile_day, profile_days
from paper_assets.defs.profiles import usable_profile
from paper_assets.defs.reports import PartitionReport, columns, markdown_table, materializations, plainly, stacked_bars
from paper_assets.defs.resources import LoadEmbedder, LoadGrader
from paper_assets.retrieval import daily
from paper_assets.retrieval.answers import linked_title
from paper_assets.retrieval.evidence import heard_by
from paper_assets.settings import Settings
from paper_assets.stores.document_index import sync_documents
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.retrievals import retrievals_of
from paper_assets.stores.vectors import VectorIndex
from paper_assets.stores.warehouse import Warehouse

_ASSET = "balanced_retrievals"
_PRIVATE = "a private document of the profile"
_BALANCED = "sides_are_balanced_or_the_shortfall_is_named"
_DATED = "documents_lie_inside_the_asked_dates"

Answer = Mapping[str, Any]


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description="The answers to the profile's questions: as many documents for each side, graded or as links.",
    partitions_def=profile_days,
    deps=[dg.AssetDep("paper_embeddings", partition_mapping=any_day), dg.AssetDep("research_profile")],
    dagster_type=dg.Nothing,
    group_name="retrieval",
    kinds={"duckdb", "chroma"},
    code_version=daily.CODE_VERSION,
    automation_condition=on_new_papers_or_profile,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=100),
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[dg.AssetCheckSpec(_BALANCED, asset=_ASSET), dg.AssetCheckSpec(_DATED, asset=_ASSET)],
)
def balanced_retrievals(
    context: dg.AssetExecutionContext,
    settings: dg.ResourceParam[Settings],
    warehouse: dg.ResourceParam[Warehouse],
    embedder: dg.ResourceParam[LoadEmbedder],
    grader: dg.ResourceParam[LoadGrader],
    vector_index: dg.ResourceParam[VectorIndex],
) -> Iterator[Any]:
    """For each day and profile: ask its questions of what was there on the day, keep the answers, tell the UI."""
    walk = by_day(context.partition_keys)
    with plainly(context), heard_by(_RunLog(context.log)):
        model = embedder_or_none(embedder, context.log)
        profiles = {name: usable_profile(settings, warehouse, name, context.log) for name in {name for _, name in walk}}
        unread = {}
        full_texts = False
        for name, profile in profiles.items():
            keep_profile(warehouse, profile)
            plans = daily.questions_of(profile, settings)
            unread[name] = daily.bring_in_own_pdfs(warehouse, profile, plans, embedder=model)
            for fault in unread[name]:
                context.log.warning(fault)
            full_texts |= any("fulltext" in plan.data_types for plan in plans)
        if full_texts and model is not None:
            context.log.info(f"index: {sync_documents(warehouse, vector_index, 'fulltext', model=model.name)}")
        for day, name in walk:
            new = daily.keep_retrievals(
                warehouse,
                profiles[name],
                day,
                embedder=model,
                load_grader=grader,
                grader=settings.cross_encoder,
                settings=settings,
            )
            context.log.info(f"{day} {name}: {'retrieved' if new else 'unchanged'}")
        stored = {(day, name): retrievals_of(warehouse, day, name) for day, name in walk}
        told = [retrieval_report(day, name, answers, unread=unread[name]) for (day, name), answers in stored.items()]
        checks = [_balance_check(stored), _dates_check(stored)]
        yield from materializations(context, _ASSET, told, checks)


class _RunLog(logging.Handler):
    """Hands the lines of the core on to the log of the run."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.log(record.levelno, record.getMessage())


def retrieval_report(
    day: date, profile: str, answers: Sequence[Answer], *, unread: Sequence[str] = ()
) -> PartitionReport:
    """For each question the documents of each side with scores and links, the filter used, and how balanced it is."""
    version = sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:32]
    sides = [(at, side) for at, answer in enumerate(answers, 1) for side in answer["sides"]]
    metadata: dict[str, Any] = {
        "dagster/row_count": sum(len(side["documents"]) for _, side in sides),
        "dagster/column_schema": columns(
            ("question", "string", "what was asked"),
            ("side", "string", "the group it stands for"),
            ("doc_id", "string", "document: a paper, a passage, a rewrite"),
            ("page_content", "string", "its text"),
            ("metadata", "json", "its fields (R1)"),
            ("score", "double", "similarity, BM25 or fused places, the higher the better"),
        ),
        "questions": len(answers),
        "sides": markdown_table(
            ["question", "side", "found", "wanted", "meet the filter", "shortfall or fault"],
            [
                (
                    f"{at}. {answers[at - 1]['question']}",
                    side["side"],
                    len(side["documents"]),
                    side["wanted"],
                    side["matching"],
                    side["error"] or side["shortfall"] or "",
                )
                for at, side in sides
            ],
        ),
    }
    if sides:
        metadata["balance"] = stacked_bars(
            [f"{at}. {side['side']}" for at, side in sides],
            {
                "found": [len(side["documents"]) for _, side in sides],
                "missing": [side["wanted"] - len(side["documents"]) for _, side in sides],
            },
            title=f"Documents for each side, {profile}, {day}",
        )
    for at, answer in enumerate(answers, 1):
        metadata[f"question_{at}"] = dg.MetadataValue.md(_documents(answer))
        if answer["generation_required"]:
            metadata[f"passages_{at}"] = _passages(answer)
    metadata["filters"] = dg.MetadataValue.md(_filters(sides))
    metadata["notes"] = dg.MetadataValue.md(_notes(answers, unread))
    return PartitionReport(profile_day(day, profile), version if answers else "no questions", metadata)


def _documents(answer: Answer) -> str:
    """A Markdown table of the documents of each side, each title a link."""
    lines = ["| side | score | document |\n| --- | --- | --- |"]
    for side in answer["sides"]:
        name = linked_title({"title": side["side"]})
        lines += [f"| {name} | {each['score']:.3f} | {_titled(each['metadata'])} |" for each in side["documents"]]
        if not side["documents"]:
            lines.append(f"| {name} | – | – |")
    return "\n".join(lines)


def _titled(metadata: Mapping[str, Any]) -> str:
    """The title as a link; a private document is not named, for everybody of the house sees this page (M3)."""
    return linked_title(metadata) if metadata["access_level"] == "public" else _PRIVATE


def _filters(sides: Sequence[tuple[int, Answer]]) -> str:
    """The filter of each side on a line of its own, as JSON, in which no backtick ends the block."""
    lines = (json.dumps({f"{at}. {side['side']}": side["filter"]}, ensure_ascii=False) for at, side in sides)
    return "\n".join(["```", *(line.replace("`", "\\u0060") for line in lines), "```"])


def _passages(answer: Answer) -> dg.MarkdownMetadataValue:
    """The best chunk of each side, with its share and the title it comes from."""
    public = {
        document["doc_id"]
        for side in answer["sides"]
        for document in side["documents"]
        if document["metadata"]["access_level"] == "public"
    }
    best = [(side["side"], *side["graded"]["chunks"][:1]) for side in answer["sides"] if side["graded"]]
    rows = [(name, chunk, chunk["doc_id"] in public) for name, *chunks in best for chunk in chunks]
    return markdown_table(
        ["side", "share", "passage", "of"],
        [
            (name, chunk["score"], chunk["text"] if shown else _PRIVATE, chunk["title"] if shown else "")
            for name, chunk, shown in rows
        ],
    )


def _notes(answers: Sequence[Answer], unread: Sequence[str]) -> str:
    """What a reader should know: conditions left out, who graded instead, PDFs that cannot be read."""
    graded = [side.get("graded") or {} for answer in answers for side in answer["sides"]]
    notes = [f"{at}. {note}" for at, answer in enumerate(answers, 1) for note in answer["notes"]]
    notes += dict.fromkeys(note for each in graded for note in each.get("notes", ()))
    return "\n".join(f"- {linked_title({'title': note})}" for note in (*notes, *unread)) or "none"


def _balance_check(stored: Mapping[tuple[date, str], Sequence[Answer]]) -> dg.AssetCheckResult:
    silent, failed = [], []
    for (day, profile), answers in stored.items():
        for answer in answers:
            most = max((len(side["documents"]) for side in answer["sides"]), default=0)
            for side in answer["sides"]:
                where = f"{day} {profile}: {answer['question'][:60]}: {side['side']}"
                if side["error"]:
                    failed.append(f"{where}: {side['error']}")
                elif len(side["documents"]) < most - 1 and not side["shortfall"]:
                    silent.append(where)
    return _check(
        _BALANCED, not (silent or failed), partitions=len(stored), unexplained=silent[:20], failed=failed[:20]
    )


def _dates_check(stored: Mapping[tuple[date, str], Sequence[Answer]]) -> dg.AssetCheckResult:
    outside = []
    for (day, profile), answers in stored.items():
        for answer in answers:
            first = int((answer["startdate"] or "0").replace("-", ""))
            last = int(min(answer["enddate"] or f"{day}", f"{day}").replace("-", ""))
            outside += [
                f"{day} {profile}: {document['doc_id']}"
                for side in answer["sides"]
                for document in side["documents"]
                if not first <= (document["metadata"]["date_int"] or 0) <= last
            ]
    return _check(_DATED, not outside, partitions=len(stored), outside=outside[:20])


def _check(name: str, passed: bool, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=_ASSET, check_name=name, passed=passed, severity=dg.AssetCheckSeverity.WARN, metadata=metadata
    )
