"""Read judged lists (profiles with the grades of a pool of papers), and count what consecutive lists showed (SPEC G17).

A folder contains `profiles.json` (the content of `profile.json` by profile name) and `grades.json` (grades by paper id,
by profile name). A grade is 3 (exactly on an interest), 2 (clearly relevant), 1 (marginal) or 0 (off topic). A paper
that is not in the pool is unjudged, which is different from grade 0. The papers are in a bulk file or in the warehouse.

A replay makes the lists of consecutive days as a subscriber gets them, without repeats. `replay_figures` counts which
papers they showed, and which relevant papers they did not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.paper import Paper
from paper_assets.paper_id import unversioned
from paper_assets.profile import PROFILE_NAME, Profile, profile_content, read_json
from paper_assets.small_files import is_folder
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse

GRADES = (0, 1, 2, 3)
ON_TOPIC = 2  # from this grade on a paper counts as relevant
UNJUDGED = -1
_LONG = 5  # words from which an interest is long
_SEVERAL, _MANY = 4, 8  # numbers of interests from which a profile has several or many


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProfile:
    """A profile and the grades of its pool, by paper id without version."""

    profile: Profile
    grades: Mapping[str, int]
    as_of: date | None = None  # the day of its list; None: the day of the whole set
    part: str = ""  # the name of its set among several; empty if there is one set

    @property
    def kind(self) -> str:
        """The kind of reader, derived from the content of the profile."""
        content = self.profile.content
        interests = content.interests
        words = [*interests.primary, *interests.secondary, *interests.exploratory]
        if not words:
            return "liked papers only"
        if content.keywords.must_include or content.preferred_authors:
            return "keywords and authors"
        if len(words) == 1:
            return "one long interest" if len(words[0].split()) >= _LONG else "one short interest"
        if len(words) >= _MANY:
            return "many interests"
        if interests.primary and (interests.secondary or interests.exploratory):
            return "levels"
        return "two or three interests" if len(words) < _SEVERAL else "four interests or more"

    @property
    def name(self) -> str:
        """Return the name of the profile."""
        return self.profile.name

    def grades_of(self, paper_ids: list[str]) -> NDArray[np.int64]:
        """Return (n,) the grades of the papers, UNJUDGED for those not in the pool."""
        return np.array([self.grades.get(paper_id, UNJUDGED) for paper_id in paper_ids], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLists:
    """Judged profiles by name, and the name of their folder."""

    name: str
    profiles: tuple[JudgedProfile, ...]

    @property
    def paper_ids(self) -> list[str]:
        """The ids of all judged papers, sorted."""
        return sorted({paper_id for judged in self.profiles for paper_id in judged.grades})


def load_judged_lists(folder: Path) -> JudgedLists:
    """Read `profiles.json` and `grades.json`. Raises InvalidInput naming the file, the profile and the paper."""
    if not is_folder(folder):
        raise InvalidInput(f"{folder} is not a folder with profiles.json and grades.json")
    profiles_file, grades_file = folder / "profiles.json", folder / "grades.json"
    profiles, grades = _object(profiles_file, "of profiles by name"), _object(grades_file, "of grades by profile")
    if not profiles:
        raise InvalidInput(f"{profiles_file}: names no profile")
    for name in grades:
        if name not in profiles:
            raise InvalidInput(f"{grades_file}: {name!r} is not a profile of {profiles_file.name}")
    return JudgedLists(
        name=folder.name,
        profiles=tuple(
            JudgedProfile(
                profile=_profile(name, record, profiles_file),
                grades=_grades(name, grades.get(name), grades_file),
            )
            for name, record in profiles.items()
        ),
    )


def _object(file: Path, what: str) -> Mapping[str, object]:
    try:
        record = read_json(file)
    except InvalidProfile as error:
        raise InvalidInput(str(error)) from None
    if not isinstance(record, dict):
        raise InvalidInput(f"{file}: expected an object {what}, got {type(record).__name__}")
    return record


def _profile(name: str, record: object, file: Path) -> Profile:
    if not PROFILE_NAME.fullmatch(name):
        raise InvalidInput(f"{file}: {name[:60]!r} is not a valid name of a profile; use a-z, 0-9, _ and - only")
    try:
        return Profile(name=name, content=profile_content(record, source=f"{file}: {name}"))
    except InvalidProfile as error:
        raise InvalidInput(str(error)) from None


def _grades(name: str, record: object, file: Path) -> dict[str, int]:
    if not isinstance(record, dict) or not record:
        raise InvalidInput(f"{file}: {name}: expected an object of grades by paper id")
    grades: dict[str, int] = {}
    for paper_id, grade in record.items():
        if isinstance(grade, bool) or not isinstance(grade, int) or grade not in GRADES:
            raise InvalidInput(f"{file}: {name}: {paper_id[:60]}: a grade is 0, 1, 2 or 3, got {str(grade)[:40]!r}")
        if grades.setdefault(unversioned(paper_id), grade) != grade:
            raise InvalidInput(f"{file}: {name}: {paper_id[:60]} is graded twice, and not alike")
    return grades


@contextmanager
def scratch_warehouse(papers: Iterable[Paper], *, deadline: float) -> Iterator[Warehouse]:
    """Create a warehouse with these papers in a temporary folder; it is removed afterwards."""
    with TemporaryDirectory(prefix="paper_assets-") as folder:
        warehouse = Warehouse(Path(folder) / "warehouse.duckdb", deadline=deadline)
        merge_papers(warehouse, papers)
        yield warehouse


@contextmanager
def papers_or_home(papers: Path | None, home: Warehouse, *, deadline: float) -> Iterator[Warehouse]:
    """Yield a scratch warehouse with the papers of a bulk file; without a file, the user's warehouse `home`."""
    if papers is None:
        yield home
    else:
        with scratch_warehouse(read_papers(papers), deadline=deadline) as warehouse:
            yield warehouse


def joined(sets: Sequence[tuple[JudgedLists, date]]) -> JudgedLists:
    """Return several sets as one, every profile on the day of its set. Raises InvalidInput for a name in two sets."""
    several = len(sets) > 1
    profiles = [
        replace(judged, as_of=day, part=lists.name if several else "")
        for lists, day in sets
        for judged in lists.profiles
    ]
    twice = sorted(name for name, count in Counter(judged.name for judged in profiles).items() if count > 1)
    if twice:
        raise InvalidInput(f"{', '.join(twice)}: judged in two sets; rename it in one of them")
    return JudgedLists(name=" + ".join(lists.name for lists, _ in sets), profiles=tuple(profiles))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDay:
    """The list of one profile on one day, best first; `quiet`: no paper was even possible."""

    day: date
    shown: tuple[str, ...]
    candidates: frozenset[str]  # papers that passed the filters that day
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFigures:
    """What the lists of several days showed a subscriber. Each paper is counted once.

    `shown` = `judged` + `unjudged`, and `on_topic` is a part of `judged`. `never_shown` are the relevant papers of the
    pool that were candidates on at least one day and shown on none; `removed` are the relevant ones that were never
    candidates (a hard keyword, no code, another window).
    """

    profile: str
    days: int
    quiet_days: int
    shown: int
    judged: int
    on_topic: int
    unjudged: int
    relevant: int  # in the pool
    never_shown: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of relevant papers among the judged papers shown; NaN if none was judged."""
        return self.on_topic / self.judged if self.judged else float("nan")


def replay_figures(judged: JudgedProfile, days: Sequence[ReplayedDay]) -> ReplayFigures:
    """Count what the lists of one profile showed over the days."""
    shown = list(dict.fromkeys(paper_id for day in days for paper_id in day.shown))
    graded = [judged.grades[paper_id] for paper_id in shown if paper_id in judged.grades]
    relevant = sorted(paper_id for paper_id, grade in judged.grades.items() if grade >= ON_TOPIC)
    seen = frozenset[str]().union(*(day.candidates for day in days))
    return ReplayFigures(
        profile=judged.name,
        days=len(days),
        quiet_days=sum(day.quiet for day in days),
        shown=len(shown),
        judged=len(graded),
        on_topic=sum(grade >= ON_TOPIC for grade in graded),
        unjudged=len(shown) - len(graded),
        relevant=len(relevant),
        never_shown=tuple(paper_id for paper_id in relevant if paper_id in seen and paper_id not in shown),
        removed=tuple(paper_id for paper_id in relevant if paper_id not in seen),
    )


def replay_table(figures: Sequence[ReplayFigures]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the rows of the table for readers; with several profiles the last row has the sums."""
    counts = [
        [
            profile_figures.days,
            profile_figures.quiet_days,
            profile_figures.shown,
            profile_figures.on_topic,
            profile_figures.judged,
            profile_figures.unjudged,
            profile_figures.relevant,
            len(profile_figures.never_shown),
        ]
        for profile_figures in figures
    ]
    names = [profile_figures.profile for profile_figures in figures]
    if len(figures) > 1:
        names.append("together")
        counts.append([sum(column) for column in zip(*counts, strict=True)])
    header = ["days", "quiet", "shown", "on topic", "of judged", "unjudged", "relevant", "never shown"]
    shares = (f"{row[3] / row[4]:.3f}" if row[4] else "–" for row in counts)
    rows = [(name, *map(str, row), share) for name, row, share in zip(names, counts, shares, strict=True)]
    return ["profile", *header, "share on topic"], rows


def shown_papers(
    judged: JudgedProfile, days: Sequence[ReplayedDay], titles: Mapping[str, str]
) -> list[dict[str, object]]:
    """Return every paper of every list, to be read by a person; a grade of None means unjudged."""
    return [
        {
            "day": f"{day.day}",
            "place": place,
            "paper_id": paper_id,
            "title": titles.get(paper_id, ""),
            "grade": judged.grades.get(paper_id),
        }
        for day in days
        for place, paper_id in enumerate(day.shown, 1)
    ]
