"""Commands that make and change profiles: `profile new`, `list`, `show`, `edit`, `remove` and more."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.errors import InvalidInput, InvalidProfile, LLMError, LLMNotConfigured
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    Yes,
    command_group,
    confirm,
    environment,
    open_warehouse,
    print_json,
    print_table,
    program_as_called,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.removal import remove_everything
from paper_assets.library.entries import Entry
from paper_assets.pipeline.profiles import load_valid_profile
from paper_assets.profile import language_notes, load_profile, understood
from paper_assets.setup import profile_editing
from paper_assets.setup.categories import categories_by_name, category_name, excluded_categories, read_categories
from paper_assets.setup.draft import (
    LikedWork,
    ProfileDraft,
    check_name,
    ignored_note,
    proposed_name,
    read_references,
    split_lines,
    unreadable_note,
    with_exclusions_read,
    with_reading,
)
from paper_assets.small_files import read_text
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.text.languages import LANGUAGES
from paper_assets.text.numbers import count_of
from paper_assets.text.statements import LONGEST_STATEMENT, Reading, read_statement

if TYPE_CHECKING:
    from paper_assets.pipeline.workspace import Workspace

profile = command_group("profile", "Make, show, change and remove profiles: what you want to read.")

_MOST_SHOWN, _MOST_LETTERS = 10, 100  # of the interests in a list of profiles

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]
Interest = Annotated[
    list[str] | None, typer.Option("--interest", help="What you work on, in plain words; repeat it for each interest.")
]
Paper = Annotated[
    list[str] | None,
    typer.Option("--paper", help="A paper you like: arXiv id, DOI or link, in any form; repeat it for each."),
]
Library = Annotated[
    list[Path] | None, typer.Option("--library", help="BibTeX, RIS, CSL-JSON, or Zotero's zotero.sqlite; repeatable.")
]
CategoryOption = Annotated[
    list[str] | None,
    typer.Option("--category", help="arXiv category to follow, such as cs.CL; without it, fitting ones are chosen."),
]
KeywordOption = Annotated[
    list[str] | None, typer.Option("--keyword", help="Word or phrase that good papers contain; repeatable.")
]
Avoid = Annotated[list[str] | None, typer.Option("--avoid", help="A topic that you do not want; repeatable.")]
ExcludeKeyword = Annotated[
    list[str] | None, typer.Option("--exclude-keyword", help="Keyword that removes papers; repeatable.")
]
ExcludeCategory = Annotated[
    list[str] | None, typer.Option("--exclude-category", help="arXiv category that removes papers.")
]
Statement = Annotated[
    Path | None, typer.Option("--statement", metavar="FILE", help="A text in your own words; - reads standard input.")
]
ByModel = Annotated[
    bool, typer.Option("--model", help="Have the language model read the text too; one call. It translates.")
]
Author = Annotated[list[str] | None, typer.Option("--author", help="Author whose papers you prefer; repeatable.")]


@profile.command()
def new(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the profile.")] = None,
    interest: Interest = None,
    paper: Paper = None,
    library: Library = None,
    category: CategoryOption = None,
    keyword: KeywordOption = None,
    author: Author = None,
    avoid: Avoid = None,
    exclude_keyword: ExcludeKeyword = None,
    exclude_category: ExcludeCategory = None,
    statement: Statement = None,
    model: ByModel = False,
    as_json: AsJson = False,
) -> None:
    """Make a profile from your words, papers or library. Without options it asks for your words at a terminal."""
    entries, text = _entries(library), _text_of(statement) if statement else ""
    taken = profile_editing.profile_names(_place())
    if not (interest or paper or library or keyword or statement):
        if not (sys.stdin.isatty() and sys.stdout.isatty()) or as_json:
            raise InvalidInput(
                "describe the profile: paper-assets profile new NAME --interest TEXT (or --statement FILE, --keyword, "
                "--paper, --library); a question is asked at a terminal only"
            )
        say("What do you want to read, and what not? In your own words; an empty line ends it.")
        text = "\n".join(iter(lambda: sys.stdin.readline().strip(), ""))
        topic = next(iter(read_statement(text).primary), "")
        asked = name or typer.prompt("Name of the profile", default=proposed_name(topic, taken=taken) or "my-papers")
        name = proposed_name(asked, taken=taken) or asked
    if not name:
        raise InvalidInput("name the profile: paper-assets profile new NAME --interest TEXT")
    draft = _draft(name, text, context.params, model=model)
    if not draft.categories:
        check_name(draft.name, taken=taken)
        draft = replace(draft, categories=tuple(_proposed(draft, entries)))
    created = profile_editing.create_profile(_place(), draft, now=_now(), library=entries)
    for note in created.notes:
        warn(f"note: {note}")
    if as_json:
        return print_json({"name": created.name, "folder": created.folder, "categories": list(draft.categories)})
    say(f"Profile {created.name} is in {created.folder}.")
    if created.imported:
        say(
            f"{count_of(created.imported.read, 'work')} read from the library, {len(created.imported.new)} newly liked."
        )
    if draft.categories:
        say(f"It follows {', '.join(map(category_name, draft.categories))}.")
    start = f"{program_as_called()} start"
    say(f"Next: `{start} --days 7` fetches and ranks papers; `{start}` opens the desk.")


@profile.command(name="list")
def list_profiles(
    removed: Annotated[bool, typer.Option("--removed", help="List the removed profiles that can be restored.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the profiles with their interests, their newest list and what is wrong with them."""
    place, now = _place(), _now()
    if removed:
        gone = profile_editing.removed_profiles(place, now=now)
        if as_json:
            return print_json(
                [
                    {"name": removed_profile.name, "removed": removed_profile.removed, "until": removed_profile.until}
                    for removed_profile in gone
                ]
            )
        rows = [
            (removed_profile.name, f"{removed_profile.removed:%Y-%m-%d}", f"{removed_profile.until:%Y-%m-%d}")
            for removed_profile in gone
        ]
        return print_table("removed profiles", ["profile", "removed", "can be restored until"], rows)
    with place.warehouse.read_together() if place.warehouse.path.exists() else nullcontext(place.warehouse) as opened:
        place = replace(place, warehouse=opened)
        summaries = [_summary(place, name) for name in profile_editing.profile_names(place)]
    if as_json:
        return print_json(summaries)
    if not summaries:
        return say(f"There is no profile in {place.profiles_dir} yet. Make one: `paper-assets profile new`")
    rows = [
        (summary["name"], summary["error"] or _briefly(summary["interests"]), summary["newest_list"] or "none yet")
        for summary in summaries
    ]
    print_table(f"{place.profiles_dir}", ["profile", "interests", "newest list"], rows)


@profile.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a profile: interests, papers, keywords, categories by name, ratings and its newest list."""
    place = _place()
    content = load_valid_profile(profile_editing.existing_profile(place, name)).content
    summary = _summary(place, name)
    if as_json:
        return print_json({**summary, "content": content.model_dump(mode="json")})
    interests, keywords = content.interests, content.keywords
    rows: list[tuple[str, Sequence[str]]] = [
        ("main interests", interests.primary),
        ("secondary", interests.secondary),
        ("exploratory", interests.exploratory),
        ("not", interests.avoid),
        ("less interested", interests.less),
        ("read as", understood(content)[1]),
        ("liked papers", [work.title or work.paper_id or "" for work in interests.papers]),
        ("preferred keywords", keywords.must_include),
        ("avoided keywords", keywords.exclude.soft),
        ("excluded keywords", keywords.exclude.hard),
        ("preferred authors", content.preferred_authors),
        ("preferred institutions", content.preferred_institutions),
        ("categories", [category_name(code) for code in content.feed.categories or ("all that are stored",)]),
        ("excluded categories", [_excluded_name(code) for code in content.feed.exclude_categories]),
        ("your own words", [content.statement] if content.statement else []),
        ("papers per day", [str(content.ranking.top_k)]),
        ("ratings", [count_of(summary["ratings"], "paper")]),
        ("newest list", [str(summary["newest_list"] or "none yet")]),
        ("folder", [str(summary["folder"])]),
    ]
    print_table(name, ["what", "value"], [(label, "\n".join(values)) for label, values in rows if values])


@profile.command()
def read(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A text in your own words; - reads standard input.")
    ] = Path("-"),
    model: ByModel = False,
    as_json: AsJson = False,
) -> None:
    """Show how a text about what you want to read is understood; nothing is saved."""
    reading = _reading(_text_of(file), model=model)
    interests = {
        "primary": reading.primary,
        "secondary": reading.secondary,
        "exploratory": reading.exploratory,
        "avoid": reading.avoid,
        "less": reading.less,
    }
    if as_json:
        return print_json(
            {
                "interests": interests,
                "preferred_authors": reading.authors,
                "categories": reading.categories,
                "exclude_categories": reading.exclude_categories,
                "language": reading.language or "en",
                "notes": reading.notes,
            }
        )
    less = [f"{topic} (less interested)" if topic in reading.less else topic for topic in reading.avoid]
    rows: list[tuple[str, Sequence[str]]] = [
        ("main interests", reading.primary),
        ("secondary", reading.secondary),
        ("exploratory", reading.exploratory),
        ("not", less),
        ("people", reading.authors),
        ("categories", [category_name(code) for code in reading.categories]),
        ("excluded categories", [category_name(code) for code in reading.exclude_categories]),
        ("language", [LANGUAGES[reading.language]] if reading.language else []),
        ("notes", reading.notes),
    ]
    print_table("your text", ["what", "value"], [(label, "\n".join(values)) for label, values in rows if values])


@profile.command()
def edit(
    context: typer.Context,
    name: Name,
    interest: Interest = None,
    paper: Paper = None,
    library: Library = None,
    category: CategoryOption = None,
    keyword: KeywordOption = None,
    author: Author = None,
    avoid: Avoid = None,
    exclude_keyword: ExcludeKeyword = None,
    exclude_category: ExcludeCategory = None,
    statement: Statement = None,
    model: ByModel = False,
) -> None:
    """Add interests, papers, exclusions and categories. For other changes edit its profile.json."""
    place = _place()
    if not any(value for option, value in context.params.items() if option not in ("name", "model")):
        file = profile_editing.existing_profile(place, name) / "profile.json"
        raise InvalidInput(f"say what to add, for example --interest TEXT; for other changes edit {file}")
    draft = _draft(name, _text_of(statement) if statement else "", context.params, model=model)
    changed = profile_editing.add_to_profile(place, name, draft, now=_now(), library=_entries(library))
    for note in changed.notes:
        warn(f"note: {note}")
    if changed.imported:
        say(f"{count_of(changed.imported.read, 'work')} read, {len(changed.imported.new)} newly liked.")
    say(f"Profile {name} is saved. Next: `paper-assets run --profile {name}`")


@profile.command()
def remove(
    name: Name,
    everything: Annotated[
        bool, typer.Option("--everything", help="For good, at once: with ratings, lists, pages and its history.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove a profile. `profile restore` brings it back for 30 days; then its ratings and lists are deleted too."""
    place = _place()
    if everything:
        confirm(f"delete {name} with its ratings and lists for good", yes=yes)
        left = remove_everything(read_settings(), environment(), name)
        say(f"Everything of {name} is deleted.")
        for sentence in left:
            say(f"Note: {sentence}.")
        return
    profile_editing.existing_profile(place, name)
    if sys.stdin.isatty():
        confirm(f"remove the profile {name}", yes=yes)
    gone = profile_editing.remove_profile(place, name, now=_now())
    say(f"Profile {name} is removed. `paper-assets profile restore {name}` brings it back until {gone.until:%Y-%m-%d}.")


@profile.command()
def restore(
    name: Name, as_name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Another name for it.")] = None
) -> None:
    """Restore a profile that was removed in the last 30 days."""
    folder = profile_editing.restore_profile(_place(), name, now=_now(), as_name=as_name)
    say(f"Profile {folder.name} is back in {folder}.")


def _place() -> profile_editing.Place:
    settings = read_settings()
    return profile_editing.Place(profiles_dir=settings.profiles_dir, home=settings.home, warehouse=open_warehouse())


def _now() -> datetime:
    return datetime.now(UTC)


def _draft(name: str, text: str, options: Mapping[str, Any], *, model: bool) -> ProfileDraft:
    """Return a draft of the command's options and a statement; say how exclusions inside interests were understood."""
    given = {option: values or () for option, values in options.items()}
    draft, notes = with_exclusions_read(
        ProfileDraft(
            name=name,
            interests=split_lines(given["interest"]),
            papers=_works(given["paper"], option="--paper: "),
            categories=tuple(code for entry in given["category"] for code in read_categories(entry)),
            keywords=split_lines(given["keyword"]),
            authors=split_lines(given["author"]),
        )
    )
    excluded = [code for entry in given["exclude_category"] for code in excluded_categories(entry)]
    draft = replace(
        draft,
        avoid=tuple(dict.fromkeys((*draft.avoid, *split_lines(given["avoid"])))),
        exclude_keywords=split_lines(given["exclude_keyword"]),
        exclude_categories=tuple(dict.fromkeys((*draft.exclude_categories, *excluded))),
    )
    if text:
        reading = _reading(text, model=model)
        draft = with_reading(draft, reading, statement=text.strip()[:LONGEST_STATEMENT])
        notes = (*notes, *reading.notes)
    for note in (*notes, *language_notes((*draft.in_words, *draft.avoid), text)):
        warn(f"note: {note}")
    return draft


def _reading(text: str, *, model: bool) -> Reading:
    """Read a statement by the rules, then by the language model with `--model`, or where one is set up and the
    statement is in another language (W4). Raises LLMConfigError, LLMError with `--model`.
    """
    reading = read_statement(text, categories=categories_by_name())
    if not (model or reading.language):
        return reading
    from paper_assets.models.llm_config import llm_config
    from paper_assets.setup.model_reading import most_for_reading, read_by_model, reading_model  # loads its client

    text = text[:LONGEST_STATEMENT]
    try:
        config = llm_config(environment())
        warn(f"Asking {most_for_reading(config, text)}, repairs included")
        return read_by_model(text, reading, ask=reading_model(config, open_warehouse()), config=config)
    except LLMError as error:
        if model:
            raise
        notes = () if isinstance(error, LLMNotConfigured) else (f"the language model did not translate: {error}",)
        return replace(reading, notes=(*reading.notes, *notes))


def _text_of(file: Path) -> str:
    return sys.stdin.read() if str(file) == "-" else read_text(file)


def _excluded_name(code: str) -> str:
    scope, _, bare = code.rpartition(":")
    return category_name(bare) + (" (as the primary category)" if scope else "")


def _works(references: Sequence[str], *, option: str = "") -> tuple[LikedWork, ...]:
    """Read references to papers. Raises InvalidInput for an unreadable one."""
    read = read_references("\n".join(references))
    if read.unreadable:
        raise InvalidInput(f"{option}{unreadable_note(read.unreadable[0])}")
    if note := ignored_note(read.ignored):
        warn(f"note: {note}")
    return tuple(LikedWork(paper_id=paper_id) for paper_id in read.ids)


def _entries(library: list[Path] | None) -> list[Entry]:
    from paper_assets.library.zotero import read_libraries

    return read_libraries(library or ())


def _workspace() -> "Workspace":
    from paper_assets.pipeline.workspace import open_workspace

    return open_workspace(read_settings(), environment(), clock=_now)


def _proposed(draft: ProfileDraft, entries: Sequence[Entry]) -> list[str]:
    from paper_assets.setup.matches import proposed_categories, unknown_interests, unknown_note

    if note := unknown_note(unknown_interests(_workspace(), draft.in_words)):
        warn(f"note: {note}")
    works = [LikedWork(title=entry.title, abstract=entry.abstract) for entry in entries if entry.title]
    asked = draft.in_words or draft.keywords
    excluded = {code.rpartition(":")[2] for code in draft.exclude_categories}
    categories = proposed_categories(_workspace(), asked, [*draft.papers, *works])
    return [category.code for category, sure in categories.items() if sure and category.code not in excluded]


def _summary(place: profile_editing.Place, name: str) -> dict[str, Any]:
    folder = place.profiles_dir / name
    error, interests = None, []
    try:
        held = load_profile(folder).content.interests
        interests = [*held.primary, *held.secondary, *held.exploratory, *(f"not {topic}" for topic in held.avoid)]
        if held.papers:
            interests.append(count_of(len(held.papers), "liked paper"))
    except InvalidProfile as fault:
        error = str(fault)
    stored = place.warehouse.path.exists()
    return {
        "name": name,
        "interests": interests,
        "error": error,
        "newest_list": latest_ranking_day(place.warehouse, name) if stored else None,
        "ratings": len(last_ratings(place.warehouse, name)) if stored else 0,
        "folder": folder,
    }


def _briefly(interests: Sequence[str]) -> str:
    """Return the first interests, each shortened, and how many more there are."""
    texts = [text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…" for text in interests]
    more = len(texts) - _MOST_SHOWN
    return "; ".join([*texts[:_MOST_SHOWN], f"{more} more"] if more > 1 else texts)
