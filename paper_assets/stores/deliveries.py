"""Store which digest was sent where: an outbox in which each digest is sent at most once (Z3).

A row is written before anything is sent. A process killed between sending and recording leaves the row as `sending`:
whether the message arrived is unknown, so the row is reported in that state and never sent again automatically.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from paper_assets.stores.warehouse import Warehouse, read_time, stored_time

State = Literal["sending", "sent", "failed"]
_LONGEST_REASON = 300  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Represent the state of a digest on one channel. `sending`: in progress or unknown; `reason` explains it."""

    profile: str
    day: date
    channel: str
    state: State
    reason: str | None
    tried_at: datetime


def claim(warehouse: Warehouse, profile: str, day: date, channel: str, *, now: datetime, again: bool = False) -> bool:
    """Claim a delivery so that no other process sends it; False if it was sent, is in progress, or its outcome is
    unknown.

    `again`: an operator requested sending it whatever the state.
    """
    with warehouse.writing() as connection:
        rows = connection.execute(
            "select state from digest_deliveries where profile = ? and day = ? and channel = ?", [profile, day, channel]
        ).fetchall()
        if rows and rows[0][0] != "failed" and not again:
            return False
        connection.execute(
            "insert or replace into digest_deliveries values (?, ?, ?, 'sending', null, ?)",
            [profile, day, channel, stored_time(now)],
        )
    return True


def note(
    warehouse: Warehouse, profile: str, day: date, channel: str, state: State, reason: str | None, *, now: datetime
) -> None:
    """Record the outcome of a claimed delivery."""
    with warehouse.writing() as connection:
        connection.execute(
            """
            update digest_deliveries
            set state = $state, reason = $reason, tried_at = $tried_at
            where profile = $profile and day = $day and channel = $channel
            """,
            {
                "state": state,
                "reason": reason and reason[:_LONGEST_REASON],
                "tried_at": stored_time(now),
                "profile": profile,
                "day": day,
                "channel": channel,
            },
        )


def deliveries(warehouse: Warehouse, profiles: Sequence[str], *, since: date) -> list[Delivery]:
    """Return the delivery attempts for these profiles' days from `since` on, by profile, day and channel."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select profile, day, channel, state, reason, tried_at
            from digest_deliveries
            where profile in (select unnest($profiles::varchar[])) and day >= $since
            order by profile, day, channel
            """,
            {"profiles": list(profiles), "since": since},
        ).fetchall()
    return [
        Delivery(profile=row[0], day=row[1], channel=row[2], state=row[3], reason=row[4], tried_at=read_time(row[5]))
        for row in rows
    ]
