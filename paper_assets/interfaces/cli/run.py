"""Bring rankings and digests up to date: `run`.

While nothing has changed since the last run, a stamp answers without the graph: importing Dagster alone takes longer.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.process import importing
from paper_assets.interfaces.cli.stamp import stamp_key, stamped_lists
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    print_json,
    print_table,
    say,
    warn,
)
from paper_assets.interfaces.values import parse_day
from paper_assets.text.numbers import count_of
from paper_assets.text.tex import readable

_MOST_LINES = 20  # papers beside the list


def run(
    profile: Annotated[str | None, typer.Option(help="A profile; default: all.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day to rank; default: the newest.")] = None,
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="First day, to rank several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bring rankings and digests up to date. Fetches the days that are due where papers were fetched before, embeds new
    papers and computes only what has changed.

    At the end all other stored papers are embedded, newest first. That can be stopped at any time: the next run
    continues, and until then `retrieve` compares those papers by words only.
    """
    last = parse_day(as_of, "--as-of") if as_of else None
    first = parse_day(since, "--since") if since else last

    def show(shown: Sequence[Mapping[str, Any]]) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=False)

    key = stamp_key(profile, first, last)
    current = stamped_lists(key)
    if current is not None:
        return show(current)
    with importing():
        from paper_assets.interfaces.cli.graph_run import bring_up_to_date  # imports Dagster

    end(bring_up_to_date(profile, first, last, show=show, key=key, ask=last is None))


def end(failures: Sequence[PaperAssetsError]) -> None:
    """Print each failure in a line and end the command with the first. What did not depend on them is done."""
    for line in list(dict.fromkeys(map(str, failures)))[1:]:
        warn(f"error: {line}")
    if failures:
        raise failures[0]


def show_ranking(shown: Mapping[str, Any], *, with_why: bool) -> None:
    """Print a profile's list as a table, with its warnings and files, and what a run did for it (`days_ranked`)."""
    ranked = shown.get("days_ranked")
    state = "" if ranked is None else f" ({count_of(ranked, 'day')} ranked)" if ranked else " (nothing has changed)"
    for warning in shown["warnings"]:
        warn(f"warning: {warning}")
    _print_papers(f"{shown['profile']}, {shown['day']}: {shown['headline']}{state}", shown["papers"], shown)
    for paper in shown["more_likely"][:_MOST_LINES]:
        say(f"also likely: {paper['paper_id']}  {readable(paper['title'])}")
    if left := len(shown["more_likely"][_MOST_LINES:]):
        say(f"and {left} more")
    for paper in shown["by_people"]:
        say(f"by people you follow: {paper['paper_id']}  {readable(paper['title'])}")
    if not shown["papers"]:
        say(shown.get("window", "").removesuffix("."))
    if with_why:
        for paper in shown["papers"]:
            say(f"{paper['rank']}. {paper['sum']}")
    if shown["rewrites"]:
        say(f"rewrites: {', '.join(f'{count} {standing}' for standing, count in shown['rewrites'].items())}")
    say(f"file: {shown['file']}\ndigest: {shown['digest']}\n")


def _print_papers(title: str, papers: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> None:
    print_table(
        title,
        ["#", "level" if shown["is_probability"] else "score", "paper", "notable"],
        [
            (
                paper["rank"],
                paper["level"] if shown["is_probability"] else f"{paper['score']:.3f}",
                f"{paper['paper_id']}  {readable(paper['title'])}",
                ", ".join(paper["notable"]),
            )
            for paper in papers
        ],
    )
