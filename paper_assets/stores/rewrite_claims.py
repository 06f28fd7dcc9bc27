"""Who is writing the next attempt of a rewrite: a claim with a lease, so that two processes never pay for the same
(B11).

A claim is void once its lease has ended, or once its process is gone where that can be known: on the same machine.
"""

import os
import socket
from datetime import datetime
from uuid import uuid4

from paper_assets.stores.processes import is_alive
from paper_assets.stores.times import stored_time
from paper_assets.stores.warehouse import Warehouse


def new_holder() -> str:
    """A name for whoever writes now: host, process, and a token that tells writers of one process apart."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def claim_item(warehouse: Warehouse, item: str, *, holder: str, now: datetime, until: datetime) -> bool:
    """Claim an item for `holder`, or renew its claim; False while somebody else's holds."""
    with warehouse.writing() as connection:
        found = connection.execute("select holder, until from rewrite_claims where item = ?", [item]).fetchone()
        if found and found[0] != holder and found[1] > stored_time(now) and not _is_gone(found[0]):
            return False
        connection.execute(
            "insert or replace into rewrite_claims values ($item, $holder, $until)",
            {"item": item, "holder": holder, "until": stored_time(until)},
        )
    return True


def release_item(warehouse: Warehouse, item: str, *, holder: str) -> None:
    """Give a claim back; somebody else's stays."""
    with warehouse.writing() as connection:
        connection.execute("delete from rewrite_claims where item = ? and holder = ?", [item, holder])


def _is_gone(holder: str) -> bool:
    host, pid, _ = holder.rsplit(":", 2) if holder.count(":") >= 2 else ("", "", "")
    return host == socket.gethostname() and pid.isdigit() and not is_alive(int(pid))
