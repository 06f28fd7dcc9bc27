"""Test that a rewrite has one claim at a time, which ends with its lease or its process (B11)."""

import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paper_assets.stores.rewrite_progress import claim_item, new_holder, release_item
from paper_assets.stores.warehouse import Warehouse

NOW = datetime(2026, 3, 5, tzinfo=UTC)
LEASE = timedelta(minutes=5)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=30)


def claims(warehouse: Warehouse, holder: str, *, after: timedelta = timedelta()) -> bool:
    return claim_item(warehouse, "item", holder=holder, now=NOW + after, until=NOW + after + LEASE)


def test_one_holds_the_others_wait_and_a_claim_can_be_renewed_and_given_back(warehouse: Warehouse) -> None:
    one, other = new_holder(), new_holder()
    assert one != other
    assert claims(warehouse, one) and claims(warehouse, one) and not claims(warehouse, other)
    release_item(warehouse, "item", holder=other)
    assert not claims(warehouse, other), "a claim is released only by its holder"
    release_item(warehouse, "item", holder=one)
    assert claims(warehouse, other)


def test_a_lease_ends(warehouse: Warehouse) -> None:
    elsewhere = "another-machine:1:abc"
    assert claims(warehouse, elsewhere)
    assert not claims(warehouse, new_holder(), after=LEASE - timedelta(seconds=1))
    assert claims(warehouse, new_holder(), after=LEASE)


def test_the_claim_of_a_dead_process_of_this_machine_is_void_at_once(warehouse: Warehouse) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert claims(warehouse, f"{socket.gethostname()}:{gone.pid}:abc")
    assert claims(warehouse, f"{socket.gethostname()}:{os.getpid()}:abc")
    assert not claims(warehouse, new_holder()), "this process lives"
