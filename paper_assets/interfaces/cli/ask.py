"""The command that answers a question from the stored papers: `paper-assets ask`."""

import os
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, ModelUnavailable
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    open_warehouse,
    print_json,
    progress_bar,
    read_settings,
    say,
    warn,
)
from paper_assets.models.embedder import load_embedder
from paper_assets.pipeline.desk_answers import (
    MOST_FETCHED,
    QuestionOptions,
    answer_as_markdown,
    answer_question,
    prepare_question,
)
from paper_assets.profile import PROFILE_NAME
from paper_assets.retrieval.question_answering import UNANSWERED, Answer, answer_record


def ask(
    question: Annotated[list[str], typer.Argument(help="The question, in plain words.")],
    profile: Annotated[str | None, typer.Option(help="Ask as this profile: its private full texts count too.")] = None,
    sides: Annotated[bool, typer.Option("--for-and-against", help="Answer for and against apart.")] = False,
    fetch: Annotated[
        int, typer.Option(min=0, max=MOST_FETCHED, help="Full texts to fetch of the best papers that have none stored.")
    ] = 0,
    calls: Annotated[int | None, typer.Option(min=1, help="Most calls to the language model.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens that the language model may use.")] = None,
    extractive: Annotated[bool, typer.Option("--extractive", help="Quote only; ask no language model.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown with BibTeX.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from stored abstracts and full texts, with a verified quotation for every sentence."""
    settings, warehouse = read_settings(), open_warehouse()
    if profile is not None and not PROFILE_NAME.fullmatch(profile):
        raise InvalidInput(f"--profile must be the name of a folder in {settings.profiles_dir}, got {profile[:60]!r}")
    options = QuestionOptions(
        profile=profile, sides=sides, fetch=fetch, most_calls=calls, most_tokens=tokens, extractive=extractive
    )
    try:
        embedder = load_embedder(settings.embedding_model)
    except ModelUnavailable as fault:
        warn(f"warning: {fault}; only words are compared")
        embedder = None
    with progress_bar("papers") as bar:
        prepared = prepare_question(
            settings, os.environ, warehouse, " ".join(question), options, embedder=embedder, progress=bar
        )
    if prepared.config and prepared.passages:
        most = prepared.estimate
        model = prepared.config.model
        warn(f"Asking {model}: at most {most.calls} calls, about {most.input_tokens:,} tokens of prompts")
    answer = answer_question(prepared, settings, os.environ, warehouse, options, embedder=embedder)
    if as_json:
        print_json(answer_record(answer))
    elif markdown:
        print(answer_as_markdown(answer, warehouse), end="")
    else:
        _print_answer(answer)
    for note in answer.notes:
        warn(f"note: {note}")


def _print_answer(answer: Answer) -> None:
    """The sentences with numbers of their papers, then each paper with the quoted words."""
    if not answer.answered:
        say(f"{UNANSWERED} {answer.examined} passages were examined.")
        return
    papers = list(dict.fromkeys(each.paper_id for sentence in answer.sentences for each in sentence.citations))
    for sentence in answer.sentences:
        numbers = dict.fromkeys(papers.index(each.paper_id) + 1 for each in sentence.citations)
        side = f"{sentence.stance}: " if sentence.stance else ""
        say(f"{side}{sentence.text} {''.join(f'[{number}]' for number in numbers)}")
    say("")
    for number, paper_id in enumerate(papers, 1):
        cited = [each for sentence in answer.sentences for each in sentence.citations if each.paper_id == paper_id]
        say(f"[{number}] {cited[0].title} ({paper_id})")
        for quote in dict.fromkeys(each.quote for each in cited):
            say(f"    “{quote}”")
    if answer.dropped:
        say("")
        what = "sentence" if answer.dropped == 1 else "sentences"
        say(f"{answer.dropped} {what} of the model left out: no quotation that its source contains.")
