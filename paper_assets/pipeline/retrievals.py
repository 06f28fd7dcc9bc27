"""`balanced_retrievals`: the answers to each profile's questions of a day (R3), their report and checks."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from typing import Any

from paper_assets.interpreting.fulltexts import import_pdfs
from paper_assets.models.embedder import Embedder
from paper_assets.pipeline.desk_answers import daily_answer
from paper_assets.pipeline.profiles import remembered_profile
from paper_assets.pipeline.question_inputs import CODE_VERSION, data_types, inputs_of
from paper_assets.pipeline.staleness import RETRIEVALS
from paper_assets.pipeline.step import (
    Check,
    Checked,
    Columns,
    Made,
    Markdown,
    Partition,
    Product,
    Report,
    Step,
    Table,
    Value,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.retrieval.answers import (
    balanced_answer,
    has_failed,
    linked_title,
    stance_in_words,
    standard_answer,
    written_plan,
)
from paper_assets.retrieval.cited_answer import UNANSWERED, answer_from_record, numbered
from paper_assets.retrieval.findings import Caller, log_handler
from paper_assets.retrieval.plan import Plan, categories_of, parse_plan, questions_of
from paper_assets.retrieval.search import open_corpus
from paper_assets.sources.table import page_of
from paper_assets.stores.documents import replace_retrievals, retrieval_inputs, retrievals_of
from paper_assets.stores.vectors import update
from paper_assets.stores.warehouse import Warehouse

_PRIVATE = "a private document of the profile"
StoredAnswer = Mapping[str, Any]


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report for each question the documents of each side with scores and links, the filter used, and the balance."""
    answers = retrievals_of(workspace.warehouse, partition.of_day, partition.of_profile)
    unread = made.details.get(partition.of_profile, ())
    version = sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:32]
    sides = [(at, side) for at, answer in enumerate(answers, 1) for side in answer["sides"]]
    values: dict[str, Value] = {
        "dagster/row_count": sum(len(side["documents"]) for _, side in sides),
        "dagster/column_schema": Columns(
            [
                ("question", "string", "the question"),
                ("side", "string", "the group it stands for"),
                ("doc_id", "string", "document: a paper, a passage, a rewrite"),
                ("page_content", "string", "its text"),
                ("metadata", "json", "its fields"),
                ("score", "double", "similarity, BM25 or fused places, the higher the better"),
            ]
        ),
        "questions": len(answers),
        "sides": Table(
            ["question", "side", "found", "wanted", "meet the filter", "shortfall or fault", "to know"],
            [
                (
                    f"{at}. {answers[at - 1]['question']}",
                    side["side"],
                    len(side["documents"]),
                    side["wanted"],
                    side["matching"],
                    side["error"] or side["shortfall"] or "",
                    "; ".join(side["warnings"]),
                )
                for at, side in sides
            ],
        ),
    }
    for at, answer in enumerate(answers, 1):
        if answer.get("answer"):
            values[f"question_{at}"] = Markdown(_written(answer["answer"]))
            continue
        values[f"question_{at}"] = Markdown(_documents(answer))
        if answer["generation_required"]:
            values[f"passages_{at}"] = _passages(answer)
    values["filters"] = Markdown(_filters(sides))
    values["notes"] = Markdown(_notes(answers, unread))
    return Report(version if answers else "no questions", values)


def _documents(answer: StoredAnswer) -> str:
    """Write a Markdown table of the documents of each side, each title a link."""
    lines = ["| side | score | document | sentence |\n| --- | --- | --- | --- |"]
    for side in answer["sides"]:
        name = linked_title({"title": side["side"]})
        lines += [
            f"| {name} | {each['score']:.3f} | {_titled(each['metadata'])} | {_quoted(each)} |"
            for each in side["documents"]
        ]
        if not side["documents"]:
            lines.append(f"| {name} | – | – | – |")
    return "\n".join(lines)


def _written(record: Mapping[str, Any]) -> str:
    """Write an answer in Markdown: its sentences with numbers, then the numbered quotations; all of public papers."""
    shown = numbered(answer_from_record(record))
    lines = []
    for side, sentences in shown.sides:
        lines += [f"**{side}**\n"] if side else []
        lines += [
            f"- {linked_title({'title': each.text})} {', '.join(f'[{note.number}]' for note in each.notes)}"
            for each in sentences
        ]
        lines.append("")
    lines += [
        f"{note.number}. {linked_title({'title': f'“{note.quote}”'})} "
        + linked_title({"title": note.title, "url": page_of(note.paper_id)})
        for note in shown.footnotes
    ]
    return "\n".join(lines) or UNANSWERED


def _titled(metadata: Mapping[str, Any]) -> str:
    """Write the title as a link; do not name a private document, since all users of Dagster see this report (M3)."""
    return linked_title(metadata) if metadata["access_level"] == "public" else _PRIVATE


def _quoted(document: Mapping[str, Any]) -> str:
    """Return the sentence on which the stance was judged, if it was and the document is public."""
    if not document["sentence"] or document["metadata"]["access_level"] != "public":
        return ""
    return linked_title({"title": document["sentence"]})


def _filters(sides: Sequence[tuple[int, StoredAnswer]]) -> str:
    """Write the filter of each side on a separate line as JSON; backticks are escaped so that none ends the block."""
    lines = (json.dumps({f"{at}. {side['side']}": side["filter"]}, ensure_ascii=False) for at, side in sides)
    return "\n".join(["```", *(line.replace("`", "\\u0060") for line in lines), "```"])


def _passages(answer: StoredAnswer) -> Table:
    """Write the best chunk of each side, with its share and the title of its document."""
    public = {
        document["doc_id"]
        for side in answer["sides"]
        for document in side["documents"]
        if document["metadata"]["access_level"] == "public"
    }
    best = [(side["side"], *side["graded"]["chunks"][:1]) for side in answer["sides"] if side["graded"]]
    rows = [(name, chunk, chunk["doc_id"] in public) for name, *chunks in best for chunk in chunks]
    return Table(
        ["side", "share", "passage", "of"],
        [
            (name, chunk["score"], chunk["text"] if shown else _PRIVATE, chunk["title"] if shown else "")
            for name, chunk, shown in rows
        ],
    )


def _notes(answers: Sequence[StoredAnswer], unread: Sequence[str]) -> str:
    """List what a reader should know: ignored conditions, who judged or graded, PDFs that cannot be read."""
    graded = [side.get("graded") or {} for answer in answers for side in answer["sides"]]
    notes = [f"{at}. {note}" for at, answer in enumerate(answers, 1) for note in answer["notes"]]
    judged = ((at, answer["stance"]) for at, answer in enumerate(answers, 1) if answer["stance"])
    notes += [f"{at}. {stance_in_words(each)}" for at, each in judged]
    notes += dict.fromkeys(note for each in graded for note in each.get("notes", ()))
    return "\n".join(f"- {linked_title({'title': note})}" for note in (*notes, *unread)) or "none"


def sides_are_balanced_or_the_shortfall_is_named(
    workspace: Workspace, partitions: Sequence[Partition], made: Made
) -> Checked:
    """Each side of a question has as many documents, or says why it has fewer."""
    silent, failed = [], []
    for each in partitions:
        for answer in retrievals_of(workspace.warehouse, each.of_day, each.of_profile):
            most = max((len(side["documents"]) for side in answer["sides"]), default=0)
            for side in answer["sides"]:
                where = f"{each}: {answer['question'][:60]}: {side['side']}"
                if side["error"]:
                    failed.append(f"{where}: {side['error']}")
                elif len(side["documents"]) < most - 1 and not side["shortfall"]:
                    silent.append(where)
    return Checked(
        passed=not (silent or failed),
        counted={"partitions": len(partitions), "unexplained": silent[:20], "failed": failed[:20]},
    )


def documents_are_within_the_requested_dates(
    workspace: Workspace, partitions: Sequence[Partition], made: Made
) -> Checked:
    """Every document of an answer is within the requested dates."""
    outside = []
    for each in partitions:
        for answer in retrievals_of(workspace.warehouse, each.of_day, each.of_profile):
            first = int((answer["startdate"] or "0").replace("-", ""))
            last = int(min(answer["enddate"] or f"{each.day}", f"{each.day}").replace("-", ""))
            outside += [
                f"{each}: {document['doc_id']}"
                for side in answer["sides"]
                for document in side["documents"]
                if not first <= (document["metadata"]["date_int"] or 0) <= last
            ]
    return Checked(passed=not outside, counted={"partitions": len(partitions), "outside": outside[:20]})


NAME = RETRIEVALS.name
_UNFINISHED = " unfinished"  # ends the fingerprint of answers with a side that failed, so that they are made again


class _ToLog(logging.Handler):
    """Forward the log lines of the search to the log of the run."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.log(record.levelno, record.getMessage())


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Answer the questions of each day and profile from what was stored on the day, and store the answers."""
    warehouse = workspace.warehouse
    model, judge = workspace.embedder(), workspace.load_judge()
    workspace = replace(workspace, load_judge=lambda: judge)  # one budget for all partitions
    profiles: dict[str, Profile] = {}
    unread: dict[str, tuple[str, ...]] = {}

    def make(partition: Partition) -> bool:
        name = partition.of_profile
        if name not in profiles:
            profiles[name] = remembered_profile(workspace, name)
            plans = questions_of(profiles[name], workspace.settings)
            unread[name] = import_own_pdfs(warehouse, profiles[name], plans, embedder=model)
            for fault in unread[name]:
                workspace.log.warning(fault)
            if model is not None and "fulltext" in data_types(plans):
                synced = update(workspace.vector_index, warehouse, ["fulltext"], model=model.name)
                workspace.log.info(f"index: {synced}")
        return keep_retrievals(workspace, profiles[name], partition.of_day)

    with log_handler(_ToLog(workspace.log)):
        new, failures = make_each(partitions, make)
    return Made(new=new, failures=failures, details=unread)


def keep_retrievals(workspace: Workspace, profile: Profile, as_of: date) -> bool:
    """Answer the profile's questions from what was stored on the day, and store the answers; False if nothing changed.

    Raises InvalidProfile, StoreBusy.
    """
    warehouse, settings, embedder = workspace.warehouse, workspace.settings, workspace.embedder()
    inputs = inputs_of(
        warehouse,
        profile,
        as_of,
        model=embedder.name if embedder else None,
        judge=workspace.load_judge().name,
        writer=workspace.load_answering_context().model,
        settings=settings,
    )
    if retrieval_inputs(warehouse, as_of, profile.name) == inputs:
        return False
    caller = Caller(owner=profile.name, as_of=as_of)
    answers = [answer_to(workspace, plan, caller=caller, embedder=embedder) for plan in questions_of(profile, settings)]
    if any(has_failed(answer) for answer in answers):
        inputs += _UNFINISHED
    replace_retrievals(warehouse, as_of, profile.name, answers, inputs=inputs)
    return True


def answer_to(
    workspace: Workspace, plan: Plan, *, caller: Caller, embedder: Embedder | None, balanced: bool = True
) -> dict[str, Any]:
    """Answer a plan: in sentences if it asks for that, else with documents, for each side if `balanced`.

    Raises InvalidInput, StoreBusy.
    """
    if plan.answer:
        context = replace(workspace.load_answering_context(), embedder=embedder)
        return written_plan(plan, daily_answer(context, plan, as_of=caller.as_of), caller=caller)
    corpus, load_grader = open_corpus(workspace.settings, workspace.warehouse, embedder), workspace.load_grader
    if balanced:
        return balanced_answer(corpus, plan, caller=caller, load_grader=load_grader, load_judge=workspace.load_judge)
    return standard_answer(corpus, plan, caller=caller, load_grader=load_grader)


def import_own_pdfs(
    warehouse: Warehouse, profile: Profile, plans: Sequence[Plan], *, embedder: Embedder | None
) -> tuple[str, ...]:
    """Read the profile's local PDFs if a plan needs full texts; return the faults of those that cannot be read."""
    folder = profile.path / "pdf" if profile.path else None
    if folder is None or "fulltext" not in data_types(plans):
        return ()
    return tuple(import_pdfs(warehouse, embedder, profile.name, folder).values())


STEP = Step(
    tracked=RETRIEVALS,
    products=(
        Product(
            name=NAME,
            description="The answers to the profile's questions: as many documents for each side, graded or as links.",
            kinds=frozenset({"duckdb", "chroma"}),
            report=_report,
            deps=("paper_embeddings", "research_profile"),
            any_day=frozenset({"paper_embeddings"}),
            checks=(
                Check(sides_are_balanced_or_the_shortfall_is_named),
                Check(documents_are_within_the_requested_dates),
            ),
        ),
    ),
    group="reading",
    code_version=CODE_VERSION,
    make=_make,
)


def ask(workspace: Workspace, profile: Profile, record: dict[str, Any], *, as_of: date) -> dict[str, Any]:
    """Answer a plan (R1) from what was stored on the day, and store nothing.

    Raises InvalidInput naming the wrong key, StoreBusy.
    """
    settings = workspace.settings
    sides = categories_of(profile, settings)
    plan = parse_plan(record, source="the question", default_sides=sides, config=settings.retrieval)
    caller = Caller(owner=profile.name, as_of=as_of)
    return answer_to(workspace, plan, caller=caller, embedder=workspace.embedder())
