"""`archive`: the best practices that later rewrites learn from (SPEC 4)."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from paper_assets.errors import AmbiguousId, InvalidInput, LLMError, ModelUnavailable, PaperNotFound
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    command_group,
    embedder_or_none,
    environment,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
    warn,
    warn_of_each,
)
from paper_assets.models.llm_config import llm_config
from paper_assets.paper_id import unversioned
from paper_assets.rewriting.best_practices import Archive, archive_of
from paper_assets.rewriting.best_practices import remove as remove_from
from paper_assets.rewriting.comparison import ComparedRewrite, Difference
from paper_assets.rewriting.comparison import compare as compared
from paper_assets.rewriting.migration import migrate as migrate_collection
from paper_assets.rewriting.policy import LEVELS, Level
from paper_assets.rewriting.writing import Writer, new_item, open_writer
from paper_assets.settings import Settings, archive_name
from paper_assets.small_files import is_folder
from paper_assets.stores.best_practices import BestPractice, best_practice, best_practices, unique_beginnings
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rewrites import NewItem
from paper_assets.text.numbers import count_of

archive = command_group(
    "archive",
    "Manage best practices: rewrites that later rewrites learn from. "
    "List, show, remove or copy them, or measure what they bring.",
)
_SHOWN = 70  # characters of a rewrite in a table

Identifier = Annotated[str, typer.Argument(metavar="ID", help="Or the beginning of one.")]


@archive.command(name="list")
def list_practices(
    level: Annotated[str | None, typer.Option(help="public, student or expert.")] = None,
    min_score: Annotated[int | None, typer.Option(help="Only with at least this score.")] = None,
    keyword: Annotated[str | None, typer.Option(help="Only with a keyword that contains this.")] = None,
    as_json: AsJson = False,
) -> None:
    """List best practices, newest first."""
    if level is not None:
        _known_level(level)
    name = read_settings().archive
    practices = best_practices(open_warehouse(), name, level=level, min_score=min_score, keyword=keyword)
    if as_json:
        return print_json([_as_record(practice) for practice in practices])
    # Of all in the collection, so that what is shown is accepted; whole ids would be cut in a narrow terminal.
    ids = unique_beginnings([practice.id for practice in best_practices(open_warehouse(), name)])
    print_table(
        f"{name}: {count_of(len(practices), 'best practice')}",
        ["id", "paper", "level", "score", "keywords", "rewrite"],
        [
            (
                ids[practice.id],
                practice.paper_id,
                practice.target_level,
                practice.score,
                ", ".join(practice.keywords),
                _short(practice.text),
            )
            for practice in practices
        ],
    )


@archive.command()
def show(identifier: Identifier, as_json: AsJson = False) -> None:
    """Show one best practice beside its original."""
    practice = best_practice(open_warehouse(), read_settings().archive, identifier)
    if as_json:
        return print_json(_as_record(practice))
    say(
        f"{practice.id}\n"
        f"paper {practice.paper_id} ({practice.category or 'category unknown'}), for {practice.target_level}"
    )
    say(f"score {practice.score}, written {practice.made_at:%Y-%m-%d %H:%M} UTC by {practice.model_version}")
    say(f"keywords: {', '.join(practice.keywords) or 'none'}\n\n{practice.text}\n\noriginal:\n{practice.original_text}")


@archive.command()
def remove(identifier: Identifier) -> None:
    """Remove one best practice, from the table and from Chroma. Asks nothing."""
    name = read_settings().archive
    try:
        identifier = best_practice(open_warehouse(), name, identifier).id
    except AmbiguousId:
        raise
    except InvalidInput:  # one that is gone from the table may still be in Chroma
        pass
    left = remove_from(_archive(name), identifier)
    if left:
        warn(f"warning: removed, but {left}")
    say(f"removed {identifier}")


@archive.command()
def migrate(
    source: Annotated[str, typer.Option("--from", metavar="COLLECTION", help="Collection to carry over.")],
    target: Annotated[str, typer.Option("--to", metavar="COLLECTION", help="Its new version, like NAME_v2.")],
    chroma: Annotated[
        Path | None, typer.Option(help="Chroma folder of another program that contains the collection.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a collection to another version. If stopped, run it again: only what is missing is added."""
    if chroma is not None and not is_folder(chroma):
        raise InvalidInput(f"--chroma {chroma} is not a folder")
    to = _archive(archive_name(target, "--to"))
    if to.embedder is None:
        raise ModelUnavailable("the embedding model cannot be loaded, so nothing can be copied; see the warning")
    with progress_bar("carrying over") as count:
        done = migrate_collection(to, source, folder=chroma, progress=count)
    warn_of_each(done.faults, what="left out")
    if as_json:
        return print_json({"copied": done.copied, "embedded": done.embedded, "left_out": list(done.faults)})
    say(f"copied {done.copied}, embedded {done.embedded}, left out {len(done.faults)}")
    if target != read_settings().archive:
        say(f"to use it: PAPER_ASSETS_ARCHIVE={target}")


@archive.command()
def compare(
    paper_ids: Annotated[list[str], typer.Argument(metavar="PAPER_ID...", help="Stored papers to rewrite both ways.")],
    level: Annotated[str, typer.Option(help="public, student or expert.")] = "public",
    as_json: AsJson = False,
) -> None:
    """Rewrite papers with and without examples and compare score, attempts, tokens and time. Stores nothing."""
    settings = read_settings()
    _known_level(level)
    from_archive = _archive(settings.archive)
    items = _items(from_archive, paper_ids, level)
    writers = {shows: _writer(settings, from_archive if shows else None) for shows in (True, False)}
    with progress_bar("rewriting both ways") as count:
        comparison = compared(
            items,
            with_examples=writers[True],
            without_examples=writers[False],
            stopwatch=time.monotonic,
            progress=count,
        )
    if comparison.with_examples and comparison.without_examples:
        _print_compared(
            comparison.with_examples, comparison.without_examples, comparison.differences, level=level, as_json=as_json
        )
    if comparison.failed:
        raise LLMError(f"the comparison ended early at {comparison.failed}")


def _print_compared(
    with_examples: ComparedRewrite,
    without_examples: ComparedRewrite,
    differences: Sequence[Difference],
    *,
    level: str,
    as_json: bool,
) -> None:
    sides = {"with examples": asdict(with_examples), "without examples": asdict(without_examples)}
    if as_json:
        paired = {
            difference.of: {"mean": difference.mean, "interval": _interval(difference)} for difference in differences
        }
        return print_json({**{name.replace(" ", "_"): side for name, side in sides.items()}, "differences": paired})
    print_table(
        f"{count_of(with_examples.papers, 'paper')} for {level}",
        ["", "mean score", "mean attempts", "examples shown", "tokens in", "tokens out", "seconds"],
        [
            (
                name,
                f"{side['score']:.1f}",
                f"{side['attempts']:.2f}",
                side["examples"],
                side["input_tokens"],
                side["output_tokens"],
                f"{side['seconds']:.1f}",
            )
            for name, side in sides.items()
        ],
    )

    print_table(
        "with minus without examples, paper by paper",
        ["", "mean difference", "95 % interval"],
        [
            (
                difference.of,
                f"{difference.mean:+.2f}",
                f"{difference.low:+.2f} to {difference.high:+.2f}" if _interval(difference) else "of one paper: none",
            )
            for difference in differences
        ],
    )


def _interval(difference: Difference) -> list[float] | None:
    return None if isnan(difference.low) else [difference.low, difference.high]


def _known_level(level: str) -> None:
    if level not in LEVELS:
        raise InvalidInput(f"--level must be one of {', '.join(LEVELS)}, got {level!r}")


def _archive(collection: str) -> Archive:
    """Return a collection of the archive; without a model where none can be loaded."""
    settings = read_settings()
    embedder = embedder_or_none(settings.embedding_model)
    index = VectorIndex(settings.vectors_place, deadline=settings.store_deadline)
    return replace(archive_of(settings, open_warehouse(), index, embedder), collection=collection)


def _items(archive: Archive, paper_ids: list[str], level: str) -> list[NewItem]:
    """Return the papers as tasks, without those in the archive: their examples would contain the solution."""
    examples = {practice.paper_id for practice in best_practices(archive.warehouse, archive.collection)}
    items = []
    for paper_id in dict.fromkeys(map(unversioned, paper_ids)):
        paper = find_paper(archive.warehouse, paper_id)
        if paper is None:
            raise PaperNotFound(f"paper {paper_id} is not stored; fetch its day or import it first")
        if paper.paper_id in examples:
            warn(f"left out: {paper_id} is in the archive itself")
        elif not paper.abstract.strip():
            raise InvalidInput(f"paper {paper_id} has no abstract to rewrite")
        else:
            items.append(new_item(paper, cast(Level, level)))
    if not items:
        raise InvalidInput("no paper is left to compare; name papers that are not in the archive")
    return items


def _writer(settings: Settings, archive: Archive | None) -> Writer:
    """Return a writer that uses no cached answers, because time and tokens are measured. Raises LLMConfigError."""
    llm_config(environment())
    return open_writer(
        environment(), archive=archive, cache=None, clock=lambda: datetime.now(UTC), config=settings.rewriting
    )


def _as_record(practice: BestPractice) -> dict[str, Any]:
    return {**asdict(practice), "made_at": practice.made_at.isoformat()}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
