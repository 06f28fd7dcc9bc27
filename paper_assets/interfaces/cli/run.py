"""`run`: bring the lists up to date. What was up to date and is untouched is told from a stamp, without the graph.

The import of Dagster alone takes longer than all of that. Everything else is in graph.py.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from paper_assets.defs.history_files import is_at_rest
from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.stamp import stamp_key
from paper_assets.interfaces.cli.terminal import AsJson, dagster_home, print_json, print_table, read_settings, say, warn
from paper_assets.interfaces.values import parse_day
from paper_assets.stores.stamps import stamped_answer


def run(
    profile: Annotated[str | None, typer.Option(help="One profile; without it, all.")] = None,
    as_of: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day to rank; default: the newest.")] = None,
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="First of several days to rank.")] = None,
    as_json: AsJson = False,
) -> None:
    """Embed what is new and rank; what stands already is not computed again. Then embed all other papers, newest first.

    The last can be stopped at any time: the next run goes on, and until then `retrieve` compares the others by words.
    """
    last = parse_day(as_of, "--as-of") if as_of else None
    first = parse_day(since, "--since") if since else last

    def show(shown: Sequence[Mapping[str, Any]]) -> None:
        if as_json:
            return print_json(shown)
        for ranking in shown:
            show_ranking(ranking, with_why=False)

    asked = stamp_key(profile, first, last)
    stands = stamped_answer(read_settings().warehouse_path, "run", asked) if is_at_rest(dagster_home()) else None
    if stands is not None:
        return show(stands)
    from paper_assets.interfaces.cli.graph_run import bring_up_to_date  # imports Dagster

    end(bring_up_to_date(profile, first, last, show=show, asked=asked))


def end(failures: Sequence[PaperAssetsError]) -> None:
    """Say what has failed, each in a line; the first one ends the command. What did not depend on it is done."""
    for line in list(dict.fromkeys(map(str, failures)))[1:]:
        warn(f"error: {line}")
    if failures:
        raise failures[0]


def show_ranking(shown: Mapping[str, Any], *, with_why: bool) -> None:
    """A profile's list as a table, with what there is to say of it."""
    state = f"{shown['days_ranked']} days ranked" if shown["days_ranked"] else "nothing has changed"
    for warning in shown["warnings"]:
        warn(f"warning: {warning}")
    worth = " worth reading on a quiet day" if shown["quiet"] else ""
    print_table(
        f"{shown['profile']}, {shown['day']}: {len(shown['papers'])} of {shown['scored']} candidates{worth} ({state})",
        ["#", "score", "relevance" if shown["line"] is None else "on topic", "paper", "tags"],
        [
            (
                paper["rank"],
                f"{paper['score']:.3f}",
                f"{paper['relevance']:.2f}",
                f"{paper['paper_id']}  {paper['title']}",
                ", ".join(paper["tags"]),
            )
            for paper in shown["papers"]
        ],
    )
    if with_why:
        for paper in shown["papers"]:
            say(f"{paper['rank']}. {paper['sum']}")
    if shown["rewrites"]:
        say(f"rewrites: {', '.join(f'{count} {standing}' for standing, count in shown['rewrites'].items())}")
    say(f"file: {shown['file']}\ndigest: {shown['digest']}\n")
