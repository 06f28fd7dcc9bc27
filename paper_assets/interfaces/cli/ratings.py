"""Commands on ratings and reading signals: rate, list, erase (SPEC L1, L6)."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    PaperId,
    ProfileName,
    checked_warehouse,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
)
from paper_assets.learning.ratings import (
    IN_WORDS,
    SIGNALS_IN_WORDS,
    Rated,
    check_profile,
    erase_ratings,
    ratings_of,
    signals_of,
    withdraw_rating,
)
from paper_assets.learning.ratings import rate as keep_rating
from paper_assets.pipeline.digests import rewrite_digests
from paper_assets.text.tex import readable

UNDO = "undo"

ratings = typer.Typer(
    name="ratings",
    help="List or erase the ratings of a profile.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def rate(
    profile: ProfileName,
    paper_id: PaperId,
    rating: Annotated[str, typer.Argument(metavar="worth|later|no|undo", help="undo withdraws the rating.")],
    as_json: AsJson = False,
) -> None:
    """Rate a paper, so that the profile's rankings learn from it."""
    now, settings, warehouse = datetime.now(UTC), read_settings(), open_warehouse()
    folder = settings.profiles_dir
    if rating == UNDO:
        rated = withdraw_rating(warehouse, profile, paper_id, given_in="command line", now=now, profiles_dir=folder)
    else:
        rated = keep_rating(warehouse, profile, paper_id, rating, given_in="command line", now=now, profiles_dir=folder)
    if as_json:
        return print_json({**asdict(rated), "changed": rated.changed})
    say(_in_words(rated))


@ratings.command(name="list")
def list_ratings(profile: ProfileName, as_json: AsJson = False) -> None:
    """List the latest rating of each rated paper, newest first, then papers opened, cited or put on the shelf."""
    warehouse = checked_warehouse(profile)
    latest, signals = ratings_of(warehouse, profile)[::-1], signals_of(warehouse, profile)[::-1]
    if as_json:
        return print_json(
            {
                "ratings": [
                    {name: value for name, value in asdict(rating).items() if name != "abstract"} for rating in latest
                ],
                "signals": [asdict(signal) for signal in signals],
            }
        )
    print_table(
        f"{profile}: {len(latest)} rated papers",
        ["paper", "rating", "when (UTC)", "where", "title"],
        [
            (
                rating.paper_id,
                IN_WORDS[rating.rating],
                f"{rating.rated_at:%Y-%m-%d %H:%M}",
                rating.given_in,
                readable(rating.title or "–"),
            )
            for rating in latest
        ],
    )
    if signals:
        print_table(
            f"{profile}: {len(signals)} reading signals",
            ["paper", "what you did", "times", "last (UTC)", "title"],
            [
                (
                    signal.paper_id,
                    SIGNALS_IN_WORDS[signal.kind],
                    f"{signal.times}",
                    f"{signal.last_at:%Y-%m-%d %H:%M}",
                    readable(signal.title or "–"),
                )
                for signal in signals
            ],
        )


@ratings.command()
def erase(
    profile: ProfileName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase all ratings and reading signals of a profile, and what was learned from them, for good."""
    warehouse, settings = open_warehouse(), read_settings()
    check_profile(warehouse, profile, settings.profiles_dir)
    if not yes and not typer.confirm(
        f"Erase every rating and reading signal of {profile}? This cannot be undone", err=True
    ):
        raise InvalidInput("nothing was erased")
    erased = erase_ratings(warehouse, profile, profiles_dir=settings.profiles_dir)
    rewrite_digests(warehouse, profile, settings=settings)
    if as_json:
        return print_json({"profile": profile, "erased": erased})
    say(f"{profile}: {erased} ratings and reading signals erased, and what was learned from them")


def _in_words(rated: Rated) -> str:
    paper = f"{rated.paper_id} {readable(rated.title or '')}".strip()
    now = f"is {IN_WORDS[rated.rating]}" if rated.rating else "has no rating"
    before = f" (before: {IN_WORDS[rated.before]})" if rated.before and rated.changed else ""
    return f"{paper} {now} for {rated.profile}{before}{'' if rated.changed else ', as before'}"
