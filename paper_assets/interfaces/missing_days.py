"""Group the days that lack papers into spans, each with the command that fetches them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from paper_assets.stores.harvests import DayTrouble


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDays:
    """Consecutive days with the same problem; `command` fetches them again."""

    first: date
    last: date
    days: int
    source: str
    kind: str
    reason: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}; {self.command}"


def missing_days(troubles: Sequence[DayTrouble]) -> list[MissingDays]:
    """Group problems (ascending) into spans of days that one command fixes, ascending."""
    spans: list[list[DayTrouble]] = []
    open_spans: dict[str, list[DayTrouble]] = {}
    for trouble in troubles:
        span = open_spans.get(trouble.source)
        if span and _continues(span[-1], trouble):
            span.append(trouble)
        else:
            span = open_spans[trouble.source] = [trouble]
            spans.append(span)
    return [
        MissingDays(
            first=span[0].day,
            last=span[-1].day,
            days=len(span),
            source=span[0].source,
            kind=span[0].kind,
            reason=span[-1].reason,
            command=_command(span),
        )
        for span in spans
    ]


def _continues(before: DayTrouble, trouble: DayTrouble) -> bool:
    """Say whether a day has the same problem as the one before; a weekend may separate two empty days."""
    gap = trouble.day - before.day
    near = gap == timedelta(days=1) or (before.kind == "empty" and before.day.weekday() == 4 and gap.days == 3)
    return near and (before.kind, before.reason) == (trouble.kind, trouble.reason)


def _command(span: Sequence[DayTrouble]) -> str:
    to = f" --to {span[-1].day}" if len(span) > 1 else ""
    accept = " --accept-fewer" if span[0].kind == "doubted" else ""
    return f"`paper-assets fetch --day {span[0].day}{to}{accept}`"
