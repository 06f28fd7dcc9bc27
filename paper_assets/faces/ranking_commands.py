"""Commands about rankings: rank papers from a file, explain a place, tell what changed, measure the modes."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidInput
from paper_assets.faces.arguments import AsJson, open_warehouse, parse_day, read_settings, remembering_embedder
from paper_assets.faces.terminal import print_json, print_table, say


def rank(
    papers: Annotated[
        Path, typer.Argument(help="JSON list of papers (G2), or an object with the key papers; - for stdin.")
    ],
    profile_path: Annotated[str | None, typer.Option(help="A profile's folder or its profile.json.")] = None,
    top_k: Annotated[int | None, typer.Option()] = None,
    purpose: Annotated[str | None, typer.Option()] = None,
    ranking_mode: Annotated[str | None, typer.Option()] = None,
    include_contrastive: Annotated[bool | None, typer.Option()] = None,
    contrastive_type: Annotated[str | None, typer.Option()] = None,
    history_path: Annotated[str | None, typer.Option(help="JSON list of ids already read.")] = None,
    local_pdf_dir: Annotated[str | None, typer.Option(help="Folder with PDFs already downloaded.")] = None,
    enable_llm_verification: Annotated[bool | None, typer.Option()] = None,
    interest_mode: Annotated[str | None, typer.Option(help="seed, lanes, library or hybrid (G4).")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Day from which age counts; default: today.")
    ] = None,
    save: Annotated[bool, typer.Option(help="Keep the result under output/rankings.")] = True,
) -> None:
    """Rank papers given as JSON; prints the result (G15) as JSON. Exit code 1 if it did not succeed."""
    from paper_assets.faces.ranking_answers import ranked_now

    settings = read_settings()
    now = datetime.now(UTC)

    warehouse = open_warehouse()
    result = ranked_now(
        _read_json(papers),
        settings=settings,
        warehouse=warehouse,
        environ=os.environ,
        embed=remembering_embedder(settings, warehouse),
        as_of=parse_day(as_of, "--as-of") if as_of else now.date(),
        now=now,
        working_dir=Path.cwd(),
        profile_path=profile_path,
        history_path=history_path,
        local_pdf_dir=local_pdf_dir,
        top_k=top_k,
        purpose=purpose,
        ranking_mode=ranking_mode,
        include_contrastive=include_contrastive,
        contrastive_type=contrastive_type,
        enable_llm_verification=enable_llm_verification,
        interest_mode=interest_mode,
        save=save,
    )
    print_json(result)
    if not result["success"]:
        raise InvalidInput(result["error"])


def explain(
    profile: str,
    paper_id: str,
    day: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Day of the ranking; default: the newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a paper stands where it stands for a profile, or why it was removed."""
    from paper_assets.faces.ranking_answers import explained_rank

    told = explained_rank(open_warehouse(), profile, paper_id, day=parse_day(day, "--day") if day else None)
    if as_json:
        return print_json(told)
    title = (told["candidate"] or {}).get("title", "")
    lines = "\n".join(f"  {line}" for line in told["why"])
    say(f"{paper_id} {title}\nfor {profile} on {told['day']}:\n{lines}")


def changed(
    profile: str,
    day: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day of the list; default: the newest.")] = None,
    before: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Earlier day; default: the one before it.")
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Compare with the same day's ranking before the last edit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say who entered, left or moved in a profile's list since the day before or since the last edit, and why."""
    from dataclasses import asdict

    from paper_assets.faces.ranking_answers import told_changes
    from paper_assets.ranking.changes import sentences

    told = told_changes(
        open_warehouse(),
        profile,
        day=parse_day(day, "--day") if day else None,
        before=parse_day(before, "--before") if before else None,
        edit=edit,
    )
    if as_json:
        return print_json({"profile": profile, "day": f"{told.day}", **asdict(told.changes)})
    say(f"{profile}, {told.day}:")
    for line in sentences(told.changes, told.titles):
        say(f"  {line}")


def evaluate(
    labelled: Annotated[
        Path | None, typer.Argument(help="Folder with docs, queries or profiles, and qrels; default: the shipped set.")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="An interest mode or baseline; may be repeated; default: all.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="Compare --mode with this one, query by query.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well the interest modes rank a labelled set, beside BM25, TF-IDF, random and newest first."""
    from dataclasses import asdict

    from paper_assets.evaluation.compare import compare, means
    from paper_assets.evaluation.labelled_set import load_labelled_set
    from paper_assets.evaluation.rankers import outcomes, shipped_set
    from paper_assets.settings import Judging

    if against and len(mode or []) != 1:
        raise InvalidInput("--against compares with exactly one --mode; give both")
    settings, judging, warehouse = read_settings(), Judging(), open_warehouse()

    known = load_labelled_set(labelled or shipped_set())
    names = [*(mode or []), *([against] if against else [])]
    judged = outcomes(
        known, names, embed=remembering_embedder(settings, warehouse), scoring=settings.scoring, judging=judging
    )
    told = {name: [asdict(mean) for mean in means(outcome, judging=judging)] for name, outcome in judged.items()}
    pairs = [asdict(pair) for pair in compare(judged[against], judged[names[0]], judging=judging)] if against else []
    if as_json:
        return print_json({"set": known.name, "unknown": known.unknown, "rankers": told, "comparison": pairs})
    if known.unknown:
        say(f"left out: {known.unknown} judgements of documents that the set does not hold")
    metrics = [mean["metric"] for mean in next(iter(told.values()))]
    print_table(
        f"{known.name}: {len(known.documents)} documents, {len(known.judged_queries)} judged queries",
        ["ranker", *metrics],
        [(name, *(_interval(mean) for mean in found)) for name, found in told.items()],
    )
    if pairs:
        print_table(
            f"{names[0]} minus {against}, paired",
            ["metric", "difference", "p", "better", "worse", "equal"],
            [
                (
                    pair["metric"],
                    _difference(pair),
                    f"{pair['p_value']:.3f}" if _applies(pair) else "–",
                    pair["better"],
                    pair["worse"],
                    pair["equal"],
                )
                for pair in pairs
            ],
        )


def _interval(mean: dict[str, Any]) -> str:
    """A metric with its interval; a dash where it applies to no query of the set."""
    return f"{mean['mean']:.3f} [{mean['low']:.3f}, {mean['high']:.3f}]" if mean["queries"] else "–"


def _difference(pair: dict[str, Any]) -> str:
    """A difference with its interval; a dash where the metric applies to no query of the set."""
    return f"{pair['difference']:+.3f} [{pair['low']:+.3f}, {pair['high']:+.3f}]" if _applies(pair) else "–"


def _applies(pair: dict[str, Any]) -> bool:
    return bool(pair["better"] + pair["worse"] + pair["equal"])


def _read_json(file: Path) -> Any:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
        record = json.loads(text)
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{file} is not JSON: {fault}") from None
    return record["papers"] if isinstance(record, dict) and "papers" in record else record
