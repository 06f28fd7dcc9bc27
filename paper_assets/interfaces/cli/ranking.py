"""Commands about rankings: rank papers from a file, show a stored list and its changes, explain a rank, rate papers."""

from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed, PaperAssetsError, named_error
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    ListDay,
    PaperId,
    ProfileName,
    Yes,
    checked_warehouse,
    command_group,
    confirm,
    day_option,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
    stored_list,
    warn,
)
from paper_assets.interfaces.python import own_desk
from paper_assets.interfaces.ranking_answers import explanation, list_changes, list_day, shown_ranking
from paper_assets.learning.ratings import IN_WORDS, Rated, check_profile, erase_ratings
from paper_assets.learning.ratings import rate as keep_rating
from paper_assets.paper_id import unversioned
from paper_assets.pipeline.ranking_call import RankingFiles, rank_and_filter_papers
from paper_assets.profile import RankingOptions, load_profile, profile_folders
from paper_assets.small_files import read_json
from paper_assets.stores.digest_files import digest_path
from paper_assets.stores.feedback import last_ratings
from paper_assets.text.tex import readable

_MAX_BYTES = 300_000_000  # of the papers to rank; 100,000 papers with abstracts have half


def _option(name: str) -> Any:
    """Return the option of a ranking; the validation of profiles checks its value."""
    field = RankingOptions.model_fields[name]
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return typer.Option(help=f"{field.description} One of {', '.join(choices)}." if choices else field.description)


def rank(
    context: typer.Context,
    papers: Annotated[
        Path, typer.Argument(help="JSON list of papers, or an object with the key papers; - reads stdin.")
    ],
    profile_path: Annotated[str | None, typer.Option(help="A profile's folder or its profile.json.")] = None,
    history_path: Annotated[str | None, typer.Option(help="JSON list of ids already read.")] = None,
    local_pdf_dir: Annotated[str | None, typer.Option(help="Folder with PDFs already downloaded.")] = None,
    top_k: Annotated[int | None, _option("top_k")] = None,
    purpose: Annotated[str | None, _option("purpose")] = None,
    ranking_mode: Annotated[str | None, _option("ranking_mode")] = None,
    include_contrastive: Annotated[bool | None, _option("include_contrastive")] = None,
    contrastive_type: Annotated[str | None, _option("contrastive_type")] = None,
    enable_llm_verification: Annotated[bool | None, _option("enable_llm_verification")] = None,
    interest_mode: Annotated[str | None, _option("interest_mode")] = None,
    threshold: Annotated[float | None, _option("threshold")] = None,
    as_of: Annotated[date | None, day_option("--as-of", "Day from which age counts; default: today.")] = None,
    save: Annotated[bool, typer.Option(help="Save the result under output/rankings.")] = True,
) -> None:
    """Rank papers from a JSON file and print the result as JSON. The exit code is 1 if the ranking failed."""
    result = rank_and_filter_papers(
        _papers(papers),
        desk=own_desk(),
        as_of=as_of,
        files=RankingFiles(
            profile_path=profile_path,
            history_path=history_path,
            local_pdf_dir=local_pdf_dir,
            folders=(Path.cwd(),),
            required=True,
        ),
        options={name: value for name, value in context.params.items() if name in RankingOptions.model_fields},
        save=save,
    )
    print_json(result)
    if not result["success"]:
        raise InvalidInput(result["error"])


def today(
    profile: Annotated[str | None, typer.Argument(metavar="PROFILE", help="Name of the profile; default: all.")] = None,
    day: ListDay = None,
    why: Annotated[bool, typer.Option("--why", help="Show why each paper is in the list.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the stored list of a profile, or of all profiles. Nothing is fetched or computed: `run` does that."""
    # They import what `rank` does not need.
    from paper_assets.interfaces.cli.run import rewrites_of_day, show_ranking

    settings, warehouse = read_settings(), open_warehouse()
    if profile:
        check_profile(warehouse, profile, settings.profiles_dir)
    names = [profile] if profile else [folder.name for folder in profile_folders(settings.profiles_dir)]
    if not names:
        raise NotComputed("there is no profile yet; make one with `paper-assets profile new`, or `paper-assets start`")
    lists, missing = list[dict[str, Any]](), list[PaperAssetsError]()
    for name in names:
        try:
            of_day = list_day(warehouse, name, day, settings=settings)
            lists.append(
                {
                    **shown_ranking(warehouse, name, of_day, settings=settings),
                    "rewrites": rewrites_of_day(warehouse, name, of_day, config=settings.rewriting),
                    "digest": str(digest_path(settings.digests_dir, name, of_day, "html")),
                }
            )
        except Exception as error:  # the lists of other profiles are shown
            missing.append(_why_no_list(error, settings.profiles_dir / name))
    if as_json:
        print_json(lists)
    else:
        for ranking in lists:
            show_ranking(ranking, with_why=why)
    if not lists:
        raise missing[0]
    for without_list in missing:
        warn(f"warning: {without_list}")


def _why_no_list(error: Exception, folder: Path) -> PaperAssetsError:
    """Return the error of the profile itself where that is why it has no list: running it would not help."""
    if isinstance(error, NotComputed):
        try:
            load_profile(folder)
        except InvalidProfile as fault:
            return fault
    return named_error(error, folder.name)


def explain(
    profile: ProfileName,
    paper_id: PaperId,
    day: ListDay = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Add the numbers from which the place can be recomputed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain the rank of a paper for a profile, or why it is not in the list."""
    warehouse, day = stored_list(profile, day)
    explained = explanation(warehouse, profile, paper_id, day=day, numbers=numbers or as_json)
    if as_json:
        return print_json(explained)
    title = (explained["candidate"] or {}).get("title", "")
    lines = "\n".join(f"  {line}" for line in explained["why"])
    say(f"{unversioned(paper_id)} {title}\nfor {profile} on {explained['day']}:\n{lines}")


def changed(
    profile: ProfileName,
    day: ListDay = None,
    before: Annotated[date | None, day_option("--before", "Day to compare with; default: the one before.")] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Compare with the ranking before the profile's last edit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show which papers entered, left or moved in a profile's list, and why. Since the day before, or the last edit."""
    from paper_assets.ranking.changes import sentences  # imports what finds causes, which `rank` does not need

    warehouse, day = stored_list(profile, day)
    listed = list_changes(warehouse, profile, day=day, before=before, edit=edit)
    if as_json:
        return print_json({"profile": profile, "day": f"{listed.day}", **asdict(listed.changes)})
    say(f"{profile}, {listed.day}:")
    for line in sentences(listed.changes, listed.titles):
        say(f"  {line}")


def _papers(file: Path) -> Any:
    record = read_json(file, most_bytes=_MAX_BYTES)
    return record["papers"] if isinstance(record, dict) and "papers" in record else record


ratings = command_group("ratings", "List or erase the ratings of a profile.")


def rate(
    profile: ProfileName,
    paper_id: PaperId,
    rating: Annotated[str, typer.Argument(metavar="worth|later|no|undo", help="undo withdraws the rating.")],
    as_json: AsJson = False,
) -> None:
    """Rate a paper, so that the profile's rankings learn from it."""
    now, settings, warehouse = datetime.now(UTC), read_settings(), open_warehouse()
    folder = settings.profiles_dir
    rated = keep_rating(warehouse, profile, paper_id, rating, given_in="command line", now=now, profiles_dir=folder)
    if as_json:
        return print_json({**asdict(rated), "changed": rated.changed})
    say(_in_words(rated))


@ratings.command(name="list")
def list_ratings(profile: ProfileName, as_json: AsJson = False) -> None:
    """List the latest rating of each rated paper, newest first."""
    warehouse = checked_warehouse(profile)
    latest = last_ratings(warehouse, profile)[::-1]
    if as_json:
        return print_json(
            {"ratings": [{k: value for k, value in asdict(rating).items() if k != "abstract"} for rating in latest]}
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


@ratings.command()
def erase(profile: ProfileName, yes: Yes = False) -> None:
    """Erase all ratings of a profile, and what was learned from them, for good."""
    warehouse, settings = open_warehouse(), read_settings()
    check_profile(warehouse, profile, settings.profiles_dir)
    confirm(f"erase every rating of {profile} for good", yes=yes)
    erased = erase_ratings(warehouse, profile, profiles_dir=settings.profiles_dir)
    from paper_assets.pipeline.digests import rewrite_digests  # what `rank` need not load

    rewrite_digests(warehouse, profile, settings=settings)
    say(f"{profile}: {erased} ratings erased, and what was learned from them")


def _in_words(rated: Rated) -> str:
    paper = f"{rated.paper_id} {readable(rated.title or '')}".strip()
    now = f"is {IN_WORDS[rated.rating]}" if rated.rating else "has no rating"
    before = f" (before: {IN_WORDS[rated.before]})" if rated.before and rated.changed else ""
    return f"{paper} {now} for {rated.profile}{before}{'' if rated.changed else ', as before'}"
