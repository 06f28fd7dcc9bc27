"""What a person is shown of a day's answers, and what is checked of them (R3, M3)."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Any

from paper_assets.pipeline.partition import Partition
from paper_assets.pipeline.report import Columns, Markdown, Report, StackedBars, Table, Value
from paper_assets.pipeline.step import Checked, Made
from paper_assets.pipeline.workspace import Workspace
from paper_assets.retrieval.answers import linked_title, stance_in_words
from paper_assets.stores.retrievals import retrievals_of

_PRIVATE = "a private document of the profile"

StoredAnswer = Mapping[str, Any]


def retrieval_report(day: date, profile: str, answers: Sequence[StoredAnswer], *, unread: Sequence[str] = ()) -> Report:
    """For each question the documents of each side with scores and links, the filter used, and how balanced it is."""
    version = sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:32]
    sides = [(at, side) for at, answer in enumerate(answers, 1) for side in answer["sides"]]
    values: dict[str, Value] = {
        "dagster/row_count": sum(len(side["documents"]) for _, side in sides),
        "dagster/column_schema": Columns(
            [
                ("question", "string", "what was asked"),
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
    if sides:
        values["balance"] = StackedBars(
            [f"{at}. {side['side']}" for at, side in sides],
            {
                "found": [len(side["documents"]) for _, side in sides],
                "missing": [side["wanted"] - len(side["documents"]) for _, side in sides],
            },
            title=f"Documents for each side, {profile}, {day}",
        )
    for at, answer in enumerate(answers, 1):
        values[f"question_{at}"] = Markdown(_documents(answer))
        if answer["generation_required"]:
            values[f"passages_{at}"] = _passages(answer)
    values["filters"] = Markdown(_filters(sides))
    values["notes"] = Markdown(_notes(answers, unread))
    return Report(version if answers else "no questions", values)


def _documents(answer: StoredAnswer) -> str:
    """A Markdown table of the documents of each side, each title a link."""
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


def _titled(metadata: Mapping[str, Any]) -> str:
    """The title as a link; a private document is not named, for everybody of the house sees this page (M3)."""
    return linked_title(metadata) if metadata["access_level"] == "public" else _PRIVATE


def _quoted(document: Mapping[str, Any]) -> str:
    """The sentence that its stance rests on, if it was judged and is public."""
    if not document["sentence"] or document["metadata"]["access_level"] != "public":
        return ""
    return linked_title({"title": document["sentence"]})


def _filters(sides: Sequence[tuple[int, StoredAnswer]]) -> str:
    """The filter of each side on a line of its own, as JSON, in which no backtick ends the block."""
    lines = (json.dumps({f"{at}. {side['side']}": side["filter"]}, ensure_ascii=False) for at, side in sides)
    return "\n".join(["```", *(line.replace("`", "\\u0060") for line in lines), "```"])


def _passages(answer: StoredAnswer) -> Table:
    """The best chunk of each side, with its share and the title it comes from."""
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
    """What a reader should know: conditions left out, who judged or graded, PDFs that cannot be read."""
    graded = [side.get("graded") or {} for answer in answers for side in answer["sides"]]
    notes = [f"{at}. {note}" for at, answer in enumerate(answers, 1) for note in answer["notes"]]
    judged = ((at, answer["stance"]) for at, answer in enumerate(answers, 1) if answer["stance"])
    notes += [f"{at}. {stance_in_words(each)}" for at, each in judged]
    notes += dict.fromkeys(note for each in graded for note in each.get("notes", ()))
    return "\n".join(f"- {linked_title({'title': note})}" for note in (*notes, *unread)) or "none"


def sides_are_balanced(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Sides within one document of each other, or the shortfall named."""
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


def documents_lie_inside_the_asked_dates(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """No document of before the first or after the last day that was asked for, or after the partition's day."""
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
