"""The command about evidence: retrieve documents for a plan, side by side or all together (SPEC R2, R3)."""

import logging
import sys
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.ask import print_answer
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    day_option,
    print_json,
    print_table,
    say,
    warn,
)
from paper_assets.interfaces.python import answer_plan, own_desk
from paper_assets.profile import PROFILE_NAME, read_json
from paper_assets.retrieval.answers import stance_in_words
from paper_assets.retrieval.cited_answer import answer_from_record
from paper_assets.retrieval.findings import log_handler


def retrieve(
    plan: Annotated[Path, typer.Argument(help="JSON file with a plan, or a list of plans like questions.json.")],
    profile: Annotated[
        str | None, typer.Option(help="Ask as this profile: its categories, and its own private documents.")
    ] = None,
    as_of: Annotated[date | None, day_option("--as-of", "Ignore documents after this day; default: no limit.")] = None,
    standard: Annotated[
        bool, typer.Option("--standard", help="Find the best k documents, whatever their side.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each search, with filter and counts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents that answer a question, the same number for each side. Where there are fewer, it says why."""
    desk, record = own_desk(), read_json(plan)
    if profile is not None and not PROFILE_NAME.fullmatch(profile):
        raise InvalidInput(
            f"--profile must be the name of a folder in {desk.settings.profiles_dir}, got {profile[:60]!r}"
        )
    if record == []:
        raise InvalidInput(f"{plan} contains no plan; write an object with rewritten_question, or a list of them")
    plans = {f"{plan}: entry {at}": each for at, each in enumerate(record, 1)} if isinstance(record, list) else {}
    with log_handler(logging.StreamHandler(sys.stderr) if verbose else logging.NullHandler()):
        answers = [
            answer_plan(each, balanced=not standard, profile=profile, as_of=as_of, desk=desk, source=source)
            for source, each in (plans or {str(plan): record}).items()
        ]
    if as_json:
        print_json(answers if isinstance(record, list) else answers[0])
    else:
        for answer in answers:
            _show(answer)
    faults = [side["error"] for answer in answers for side in answer["sides"]]
    if faults and all(faults):
        raise PaperAssetsError(f"{plan}: nothing could be searched: {faults[0]}")


def _show(answer: dict[str, Any]) -> None:
    """Print one table for a question, then what a reader should know."""
    if answer.get("answer"):
        print_answer(answer_from_record(answer["answer"]))
        for note in (*answer["notes"], *answer["answer"]["notes"]):
            warn(f"note: {note}")
        return
    rows: list[tuple[object, ...]] = []
    for side in answer["sides"]:
        name = side["side"] or "all"
        for position, document in enumerate(side["documents"], 1):
            metadata = document["metadata"]
            quoted = f"“{document['sentence']}”" if document["sentence"] else None
            lines = filter(None, (metadata["title"], quoted, metadata["url"]))
            rows.append((name, position, f"{document['score']:.3f}", "\n".join(lines)))
        if why := side["error"] or side["shortfall"]:
            rows.append((name, "–", "", f"{len(side['documents'])} of {side['wanted']}: {why}"))
        rows.extend((name, "!", "", warning) for warning in side["warnings"])
    print_table(answer["question"], ["side", "#", "score", "document"], rows)
    for side in answer["sides"]:
        for chunk in (side.get("graded") or {}).get("chunks", ())[:1]:
            say(f"{side['side'] or 'best'}: “{' '.join(chunk['text'].split())}” ({chunk['title']})")
    if answer["stance"] and answer["stance"]["judge"]:
        say(stance_in_words(answer["stance"]))
    graded = [side.get("graded") or {} for side in answer["sides"]]
    for note in dict.fromkeys([*answer["notes"], *(note for chunk in graded for note in chunk.get("notes", ()))]):
        warn(f"note: {note}")
