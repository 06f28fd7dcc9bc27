"""Answer questions from the stored papers: in sentences (`ask`, `answers`) or by documents (`retrieve`, R2, R3)."""

import logging
import sys
from dataclasses import asdict
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    command_group,
    day_option,
    embedder_or_none,
    environment,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.python import answer_plan, own_desk
from paper_assets.learning.ratings import check_profile
from paper_assets.pipeline.desk_answers import (
    FETCHING_SECONDS,
    MOST_FETCHED,
    AnsweringContext,
    QuestionOptions,
    answer_as_markdown,
    answer_question,
    prepare_question,
)
from paper_assets.profile import PROFILE_NAME, read_json
from paper_assets.retrieval.answers import stance_in_words
from paper_assets.retrieval.cited_answer import (
    NEAREST,
    NOT_CHECKED,
    UNANSWERED,
    Answer,
    answer_from_record,
    answer_record,
    cited_papers,
    dropped_in_words,
    numbered,
    paid_in_words,
)
from paper_assets.retrieval.findings import log_handler
from paper_assets.stores.kept_answers import KeptAnswer, keep_answer, kept_answers, remove_answer
from paper_assets.stores.llm_answers import forget_answers
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of

Again = Annotated[bool, typer.Option("--again", help="Use no answer that the language model gave before.")]


def ask(
    question: Annotated[list[str], typer.Argument(help="The question, in plain words.")],
    profile: Annotated[str | None, typer.Option(help="Ask as this profile: its private full texts count too.")] = None,
    sides: Annotated[bool, typer.Option("--for-and-against", help="Answer for and against separately.")] = False,
    fetch: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_FETCHED,
            help="Full texts to fetch of the best papers that have none stored, in at most five minutes.",
        ),
    ] = 0,
    calls: Annotated[int | None, typer.Option(min=1, help="Limit of calls to the language model.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Limit of tokens for the language model.")] = None,
    extractive: Annotated[bool, typer.Option("--extractive", help="Quote only; ask no language model.")] = False,
    again: Again = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown with BibTeX.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the answer; `paper-assets answers` lists it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from stored abstracts and full texts, with a verified quotation for every sentence."""
    options = QuestionOptions(
        profile=profile,
        sides=sides,
        fetch=fetch,
        most_calls=calls,
        most_tokens=tokens,
        extractive=extractive,
        again=again,
    )
    warehouse = open_warehouse()
    answer = _answer(warehouse, " ".join(question), options)
    _show(answer, warehouse, markdown=markdown, as_json=as_json)
    if keep:
        warn(f"Kept as answer {_keep(warehouse, answer, options)}")


answers = command_group(
    "answers", "Show, ask again, export or remove the answers that you kept; forget those of language models."
)
Number = Annotated[int, typer.Argument(help="Number of the answer, as `paper-assets answers list` shows it.")]


@answers.command("list")
def list_answers(as_json: AsJson = False) -> None:
    """List the kept answers, oldest first."""
    kept = kept_answers(open_warehouse())
    if as_json:
        print_json(
            [
                {"number": answer.number, "question": answer.question, "asked_at": f"{answer.asked_at}"}
                for answer in kept
            ]
        )
        return
    for answer in kept:
        papers = count_of(len(cited_papers(answer_from_record(answer.answer))), "paper")
        say(f"{answer.number}. {answer.question} ({answer.asked_at:%Y-%m-%d}, {papers})")
    if not kept:
        say("No answers are kept yet. Add --keep to `paper-assets ask`.")


@answers.command("show")
def show_answer(
    number: Number,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown with BibTeX.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a kept answer."""
    warehouse = open_warehouse()
    _show(answer_from_record(_kept(warehouse, number).answer), warehouse, markdown=markdown, as_json=as_json)


@answers.command("again")
def ask_again(number: Number, again: Again = False, as_json: AsJson = False) -> None:
    """Ask a kept question again, and show which papers are new in the answer. The new answer is kept too."""
    warehouse = open_warehouse()
    earlier = _kept(warehouse, number)
    kept = {name: value for name, value in earlier.options.items() if name not in ("again", "anew")}
    options = QuestionOptions(**kept, again=again)
    answer = _answer(warehouse, earlier.question, options)
    before, now = cited_papers(answer_from_record(earlier.answer)), cited_papers(answer)
    new = {paper_id: title for paper_id, title in now.items() if paper_id not in before}
    no_longer = {paper_id: title for paper_id, title in before.items() if paper_id not in now}
    if as_json:
        print_json({**answer_record(answer), "new": new, "no_longer": no_longer})
    else:
        _show(answer, warehouse, markdown=False, as_json=False)
        say("")
        for heading, papers in (("New since then", new), ("No longer cited", no_longer)):
            for paper_id, title in papers.items():
                say(f"{heading}: {title} ({paper_id})")
        if not new and not no_longer:
            say(f"The same papers as on {earlier.asked_at:%Y-%m-%d}.")
    warn(f"Kept as answer {_keep(warehouse, answer, options)}")


@answers.command("remove")
def remove(number: Number) -> None:
    """Remove a kept answer."""
    warehouse = open_warehouse()
    if not remove_answer(warehouse, number):
        raise _missing(number)
    say(f"Removed answer {number}.")


@answers.command("forget")
def forget(model: Annotated[str | None, typer.Option(help="Only what this language model answered.")] = None) -> None:
    """Forget what language models answered: verdicts on papers, judged passages, analyses. Kept answers stay."""
    say(f"Forgot {count_of(forget_answers(open_warehouse(), model=model), 'answer')} of language models.")


def _answer(warehouse: Warehouse, question: str, options: QuestionOptions) -> Answer:
    """Gather passages, show what an answer may cost at most, and answer the question."""
    settings = read_settings()
    if options.profile is not None:
        check_profile(warehouse, options.profile, settings.profiles_dir)
    embedder = embedder_or_none(settings.embedding_model, consequence="only words are compared")
    context = AnsweringContext(
        settings=settings, environ=environment(), warehouse=warehouse, embedder=embedder, fetching=FETCHING_SECONDS
    )
    with progress_bar("papers") as bar:
        prepared = prepare_question(context, question, options, progress=bar)
    if prepared.config and prepared.passages:
        warn(f"Asking {prepared.config.model}: at most {prepared.bound}, repairs included")
    with progress_bar("steps") as bar:
        steps = count()
        answer = answer_question(context, prepared, options, progress=lambda step: bar(next(steps), None, step))
    if prepared.config and answer.kind == "written":
        warn(f"Paid: {paid_in_words(answer)}")
    for note in answer.notes:
        warn(f"note: {note}")
    return answer


def _kept(warehouse: Warehouse, number: int) -> KeptAnswer:
    answers = kept_answers(warehouse, number)
    if not answers:
        raise _missing(number)
    return answers[0]


def _missing(number: int) -> InvalidInput:
    return InvalidInput(f"there is no answer {number}; `paper-assets answers list` shows the kept ones")


def _keep(warehouse: Warehouse, answer: Answer, options: QuestionOptions) -> int:
    return keep_answer(
        warehouse, answer.question, options=asdict(options), answer=answer_record(answer), now=datetime.now(UTC)
    )


def _show(answer: Answer, warehouse: Warehouse, *, markdown: bool, as_json: bool) -> None:
    if as_json:
        print_json(answer_record(answer))
    elif markdown:
        print(answer_as_markdown(answer, warehouse), end="")
    else:
        print_answer(answer)


def print_answer(answer: Answer) -> None:
    """Print the sentences with numbers, then under each number the quotation, its paper and its section."""
    if not answer.answered:
        say(f"{UNANSWERED} {count_of(answer.examined, 'passage')} examined.")
    numbers = numbered(answer)
    for side, sentences in numbers.sides:
        if side:
            say(f"{side}:")
        for sentence in sentences:
            numbered_notes = "".join(f"[{note.number}]" for note in sentence.notes)
            if sentence.checked:
                say(f"{sentence.text} {numbered_notes}")
            else:
                say(f"“{sentence.notes[0].quote}” {numbered_notes}")
                say(f"    {NOT_CHECKED}: {sentence.text}")
    if numbers.nearest:
        say(NEAREST)
    for note in numbers.footnotes or numbers.nearest:
        if note.number == 1:
            say("")
        section = f", section {note.section}" if note.section else ""
        say(f"[{note.number}] “{note.quote}”")
        say(f"    {note.title} ({note.paper_id}{section})")
    if left_out := dropped_in_words(answer):
        say("")
        say(f"{left_out}.")


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
            _print_documents(answer)
    faults = [side["error"] for answer in answers for side in answer["sides"]]
    if faults and all(faults):
        raise PaperAssetsError(f"{plan}: nothing could be searched: {faults[0]}")


def _print_documents(answer: dict[str, Any]) -> None:
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
