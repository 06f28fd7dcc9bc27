"""Store which digest was sent where: an outbox in which each digest is sent at most once (Z3).

A claim is stored as `failed` with the process as its reason: if that is killed before it sends anything, the next
command sends. The row becomes `sending` when the text is about to be transmitted. A process killed after that leaves it
so: whether the message arrived is unknown, so the row is reported in that state and never sent again automatically.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from paper_assets.processes import is_gone, parse_process, this_process
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time

State = Literal["claimed", "sending", "sent", "failed"]
_LONGEST_REASON = 300  # characters
_LONGEST_CLAIM = timedelta(hours=1)  # by a process of which nothing can be known, such as one of another machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Represent the state of a digest on one channel. `claimed`: another process is about to send it. `sending`: it is
    being transmitted, or unknown; `reason` explains it.
    """

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
            "select state, reason, tried_at from digest_deliveries where profile = ? and day = ? and channel = ?",
            [profile, day, channel],
        ).fetchall()
        for state, reason, tried_at in rows:
            busy = _is_claimed(reason) and now - read_time(tried_at) < _LONGEST_CLAIM
            if not again and (state != "failed" or busy):
                return False
        connection.execute(
            "insert or replace into digest_deliveries values (?, ?, ?, 'failed', ?, ?)",
            [profile, day, channel, f"{this_process()}", stored_time(now)],
        )
    return True


def _is_claimed(reason: str | None) -> bool:
    process = parse_process(reason)
    return process is not None and not is_gone(process)


def note(
    warehouse: Warehouse, profile: str, day: date, channel: str, state: State, reason: str | None, *, now: datetime
) -> None:
    """Record the outcome of a claimed delivery."""
    warehouse.run(
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
    rows = warehouse.records(
        """
        select profile, day, channel, state, reason, tried_at
        from digest_deliveries
        where profile in (select unnest($profiles::varchar[])) and day >= $since
        order by profile, day, channel
        """,
        {"profiles": list(profiles), "since": since},
    )
    return [Delivery(**{**row, **_outcome(row["state"], row["reason"])}) for row in rows]


def _outcome(state: State, reason: str | None) -> dict[str, Any]:
    """Say in words what a claim, stored as `failed` with its process, has become."""
    if state != "failed" or parse_process(reason) is None:
        return {}
    if _is_claimed(reason):
        return {"state": "claimed", "reason": "another process is sending it"}
    return {"reason": "cut off before anything was sent"}
