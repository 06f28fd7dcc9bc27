"""Answer questions from the stored papers: `paper-assets ask`, and `paper-assets answers` for saved answers."""

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import count
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    embedder_or_none,
    environment,
    open_warehouse,
    print_json,
    progress_bar,
    read_settings,
    say,
    warn,
)
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
from paper_assets.retrieval.cited_answer import (
    NEAREST,
    NOT_CHECKED,
    UNANSWERED,
    Answer,
    answer_from_record,
    answer_record,
    cited_papers,
    compare_answers,
    dropped_in_words,
    numbered,
    paid_in_words,
)
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


answers = typer.Typer(
    name="answers",
    help="Show, ask again, export or remove the answers that you kept; forget those of language models.",
    no_args_is_help=True,
    rich_markup_mode=None,
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
    changes = compare_answers(answer_from_record(earlier.answer), answer)
    if as_json:
        print_json({**answer_record(answer), "new": dict(changes.new), "no_longer": dict(changes.no_longer)})
    else:
        _show(answer, warehouse, markdown=False, as_json=False)
        say("")
        for heading, papers in (("New since then", changes.new), ("No longer cited", changes.no_longer)):
            for paper_id, title in papers.items():
                say(f"{heading}: {title} ({paper_id})")
        if not changes.new and not changes.no_longer:
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
def forget(
    model: Annotated[str | None, typer.Option(help="Only what this language model answered.")] = None,
) -> None:
    """Forget what language models answered: verdicts on papers, judged passages, analyses. Kept answers stay."""
    say(f"Forgot {count_of(forget_answers(open_warehouse(), model=model), 'answer')} of language models.")


def _answer(warehouse: Warehouse, question: str, options: QuestionOptions) -> Answer:
    """Gather passages, show what an answer may cost at most, and answer the question."""
    settings = read_settings()
    if options.profile is not None:
        check_profile(warehouse, options.profile, settings.profiles_dir)
    embedder = embedder_or_none(settings.embedding_model, consequence="only words are compared")
    context = AnsweringContext(
        settings=settings,
        environ=environment(),
        warehouse=warehouse,
        embedder=embedder,
        fetching=FETCHING_SECONDS,
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
