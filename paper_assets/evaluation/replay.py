"""Days as a subscriber sees them: what consecutive lists without repeats showed, and what they never did (SPEC G17)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from paper_assets.evaluation.judged_lists import ON_TOPIC, JudgedProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDay:
    """One day of one profile: the papers shown, best first, and whether fewer than K were worth showing."""

    day: date
    shown: tuple[str, ...]
    candidates: frozenset[str]  # papers that passed the filters that day
    quiet: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFigures:
    """What a subscriber got over the days. Papers are counted once; `unjudged` ones do not count in `share`.

    `never_shown` are relevant papers of the pool that were candidates on at least one day and shown on none;
    `removed` relevant ones that were not candidates on any day (a hard keyword, no code, another window).
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
        """Relevant ones among the judged papers shown; NaN if none was."""
        return self.on_topic / self.judged if self.judged else float("nan")


def replay_figures(judged: JudgedProfile, days: Sequence[ReplayedDay]) -> ReplayFigures:
    """Count over the days of one profile."""
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
    """Header and rows for people, the last row over all profiles."""
    counts = [
        [
            one.days,
            one.quiet_days,
            one.shown,
            one.on_topic,
            one.judged,
            one.unjudged,
            one.relevant,
            len(one.never_shown),
        ]
        for one in figures
    ]
    names = [one.profile for one in figures]
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
    """Every paper of every list, for reading by eye; a grade of None is unjudged."""
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
