"""The command about evidence: retrieve documents for a plan, side by side or all together (SPEC R2, R3)."""

import logging
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.ask import print_answer
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    embedder_or_none,
    environment,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.values import parse_day
from paper_assets.models.cross_encoder import load_cross_encoder
from paper_assets.models.embedder import load_embedder
from paper_assets.pipeline.desk_answers import DailyAnswers
from paper_assets.pipeline.profiles import load_valid_profile
from paper_assets.pipeline.retrievals import import_own_pdfs
from paper_assets.profile import PROFILE_NAME, read_json
from paper_assets.retrieval.answers import balanced_answer, stance_in_words, standard_answer, written_plan
from paper_assets.retrieval.cited_answer import answer_from_record
from paper_assets.retrieval.findings import Caller, log_handler
from paper_assets.retrieval.grading import load_grader
from paper_assets.retrieval.plan import Plan, categories_of, parse_plan, parse_plans
from paper_assets.retrieval.search import open_corpus
from paper_assets.retrieval.stance_judges import open_judge
from paper_assets.settings import RetrievalConfig


def retrieve(
    plan: Annotated[Path, typer.Argument(help="JSON file with a plan, or a list of plans like questions.json.")],
    profile: Annotated[
        str | None, typer.Option(help="Ask as this profile: its categories, and its own private documents.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Ignore documents after this day; default: no limit.")
    ] = None,
    standard: Annotated[
        bool, typer.Option("--standard", help="Find the best k documents, whatever their side.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each search, with filter and counts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents that answer a question, the same number for each side. Where there are fewer, it says why."""
    settings, warehouse = read_settings(), open_warehouse()
    if profile is not None and not PROFILE_NAME.fullmatch(profile):
        raise InvalidInput(f"--profile must be the name of a folder in {settings.profiles_dir}, got {profile[:60]!r}")
    caller = Caller(owner=profile, as_of=parse_day(as_of, "--as-of") if as_of else None)
    asking = load_valid_profile(settings.profiles_dir / profile) if profile is not None else None
    record, sides = read_json(plan), categories_of(asking, settings)
    plans = _plans_of(record, source=str(plan), default_sides=sides, config=settings.retrieval)
    embedder = embedder_or_none(settings.embedding_model, consequence="only words are compared")
    if asking:
        for fault in import_own_pdfs(warehouse, asking, plans, embedder=embedder):
            warn(f"left out: {fault}")

    @cache
    def grader() -> Any:
        return load_grader(
            lambda: load_cross_encoder(settings.cross_encoder), lambda: load_embedder(settings.embedding_model)
        )

    corpus = open_corpus(settings, warehouse, embedder)
    judge = open_judge(settings, environment(), warehouse)
    daily = DailyAnswers(settings=settings, environ=environment(), warehouse=warehouse)
    with log_handler(logging.StreamHandler(sys.stderr) if verbose else logging.NullHandler()):
        answers = [
            written_plan(parsed_plan, daily.answer(parsed_plan, as_of=caller.as_of, embedder=embedder), caller=caller)
            if parsed_plan.answer
            else standard_answer(corpus, parsed_plan, caller=caller, load_grader=grader)
            if standard
            else balanced_answer(corpus, parsed_plan, caller=caller, load_grader=grader, load_judge=lambda: judge)
            for parsed_plan in plans
        ]
    if as_json:
        print_json(answers if isinstance(record, list) else answers[0])
    else:
        for answer in answers:
            _show(answer)
    faults = [side["error"] for answer in answers for side in answer["sides"]]
    if faults and all(faults):
        raise PaperAssetsError(f"{plan}: nothing could be searched: {faults[0]}")


def _plans_of(record: Any, *, source: str, default_sides: Sequence[str], config: RetrievalConfig) -> tuple[Plan, ...]:
    """Parse the one plan of a file, or its list of plans. Raises InvalidInput."""
    if not isinstance(record, list):
        return (parse_plan(record, source=source, default_sides=default_sides, config=config),)
    if not record:
        raise InvalidInput(f"{source} contains no plan; write an object with rewritten_question, or a list of them")
    return parse_plans(record, source=source, default_sides=default_sides, config=config)


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
