"""Test that the first writer of a step of a rewrite wins, that rewrites are read back unchanged, and that a rewrite
has one claim at a time.
"""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from paper_assets.errors import NotComputed
from paper_assets.processes import this_process
from paper_assets.stores.rewrite_progress import (
    asked_by,
    claim_item,
    claimed_items,
    decided_items,
    finish,
    keep_attempt,
    keep_decision,
    new_holder,
    open_items,
    release_item,
    reopen,
    replace_set,
)
from paper_assets.stores.rewrites import (
    Attempt,
    NewItem,
    items_for,
    items_of,
    rewrite_item,
    rewrites_by_command,
    rewrites_of,
    unfinished_items,
)
from paper_assets.stores.warehouse import Warehouse
from tests.invented_rewrites import invented_attempt

NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
LATER = datetime(2026, 3, 6, 7, 30, tzinfo=UTC)
MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


def new(item: str) -> NewItem:
    return NewItem(
        item=item,
        paper_id=f"paper of {item}",
        version=2,
        title="Title",
        category=None,
        target_level="public",
        original_text="Original, $x$ 그리고",
        prompt="p",
    )


def ask(warehouse: Warehouse, day: date, profile: str, items: list[str]) -> bool:
    return replace_set(warehouse, day, profile, [new(item) for item in items], now=NOW)


def attempt(number: int, score: int = 60) -> Attempt:
    return invented_attempt(
        number,
        score,
        "Text 그리고\nmore",
        keywords=("a", "b"),
        critique="Critique",
        unsupported=("42",),
        input_tokens=3,
        output_tokens=4,
        made_at=NOW,
    )


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=30)
    open_items(warehouse, [new("a"), new("b"), new("c")], now=NOW)
    return warehouse


def test_a_kept_attempt_and_a_closed_item_leave_no_claim_for_a_kill_to_leave_behind(warehouse: Warehouse) -> None:
    """A writer killed before releasing its claim leaves nothing to write, and so nothing to claim."""
    ends = (
        lambda: keep_attempt(warehouse, "a", attempt(1)),
        lambda: finish(warehouse, "a", outcome="cancelled", kept=None),
    )
    for end in ends:
        assert claim_item(warehouse, "a", holder="elsewhere:1:killed", now=NOW, until=LATER)
        assert end()
        assert warehouse.rows("select * from rewrite_claims") == []


def test_an_item_comes_back_with_all_that_happened_to_it(warehouse: Warehouse) -> None:
    assert keep_attempt(warehouse, "a", attempt(1, 88))
    assert keep_decision(warehouse, "a", 1, "retry", now=NOW)
    assert keep_attempt(warehouse, "a", attempt(2))
    found = rewrite_item(warehouse, "a")
    assert (found.title, found.category, found.original_text, found.opened_at) == (
        "Title",
        None,
        "Original, $x$ 그리고",
        NOW,
    )
    assert found.attempts == (attempt(1, 88), attempt(2))
    assert (found.decisions, found.outcome, found.kept_attempt) == ({1: "retry"}, None, None)
    with pytest.raises(NotComputed, match="'z'"):
        rewrite_item(warehouse, "z")


def test_an_item_opened_again_stays_as_it_is(warehouse: Warehouse) -> None:
    keep_attempt(warehouse, "a", attempt(1))
    open_items(warehouse, [replace(new("a"), title="Other"), new("d")], now=LATER)
    found = rewrite_item(warehouse, "a")
    assert (found.title, found.opened_at, len(found.attempts)) == ("Title", NOW, 1)
    assert rewrite_item(warehouse, "d").opened_at == LATER


def test_an_attempt_is_kept_only_as_the_next_one_of_an_open_item(warehouse: Warehouse) -> None:
    assert not keep_attempt(warehouse, "a", attempt(2))
    assert keep_attempt(warehouse, "a", attempt(1))
    assert not keep_attempt(warehouse, "a", attempt(1, 99))
    assert not keep_attempt(warehouse, "unknown", attempt(1))
    finish(warehouse, "a", outcome="passed", kept=1)
    assert not keep_attempt(warehouse, "a", attempt(2))
    keep_attempt(warehouse, "b", attempt(1, 88))
    keep_decision(warehouse, "b", 1, "accept", now=NOW)
    assert not keep_attempt(warehouse, "b", attempt(2)), "nothing is written after an accepted attempt"
    assert [len(rewrite_item(warehouse, item).attempts) for item in "abc"] == [1, 1, 0]


def test_only_the_first_decision_on_the_last_attempt_counts(warehouse: Warehouse) -> None:
    assert not keep_decision(warehouse, "a", 1, "accept", now=NOW, written=1)
    keep_attempt(warehouse, "a", attempt(1, 88))
    assert keep_decision(warehouse, "a", 1, "retry", now=NOW, written=1)
    assert not keep_decision(warehouse, "a", 1, "accept", now=NOW, written=1)
    keep_attempt(warehouse, "a", attempt(2, 88))
    assert not keep_decision(warehouse, "a", 1, "accept", now=NOW, written=1)
    assert keep_decision(warehouse, "a", 2, "accept", now=NOW, written=2)
    assert rewrite_item(warehouse, "a").decisions == {1: "retry", 2: "accept"}


def test_an_item_is_finished_once_and_only_a_cancelled_one_opens_again(warehouse: Warehouse) -> None:
    keep_attempt(warehouse, "a", attempt(1, 95))
    assert finish(warehouse, "a", outcome="passed", kept=1, note="archived")
    assert not finish(warehouse, "a", outcome="cancelled", kept=None)
    found = rewrite_item(warehouse, "a")
    assert (found.outcome, found.note, found.kept_attempt) == ("passed", "archived", attempt(1, 95))
    assert not reopen(warehouse, "a")
    assert finish(warehouse, "b", outcome="cancelled", kept=None)
    assert [item.item for item in unfinished_items(warehouse)] == ["c"]
    assert reopen(warehouse, "b")
    assert [item.item for item in unfinished_items(warehouse)] == ["b", "c"]


def test_a_rewrite_last_moved_when_it_was_opened_written_or_decided_on(warehouse: Warehouse) -> None:
    open_items(warehouse, [new("d")], now=LATER)
    assert rewrite_item(warehouse, "d").moved_at == LATER
    keep_attempt(warehouse, "a", attempt(1, 88))
    assert rewrite_item(warehouse, "a").moved_at == NOW
    keep_decision(warehouse, "a", 1, "retry", now=LATER)
    assert rewrite_item(warehouse, "a").moved_at == LATER


def test_a_decided_rewrite_is_found_until_it_is_finished_or_old(warehouse: Warehouse) -> None:
    ask(warehouse, MONDAY, "ann", ["b"])
    for item, when in (("b", LATER), ("a", NOW)):
        keep_attempt(warehouse, item, attempt(1, 88))
        keep_decision(warehouse, item, 1, "retry", now=when)
    keep_attempt(warehouse, "c", attempt(1, 88))
    assert decided_items(warehouse, since=NOW) == ["b", "a"]
    assert decided_items(warehouse, since=LATER) == ["b"]
    finish(warehouse, "b", outcome="cancelled", kept=None)
    assert decided_items(warehouse, since=NOW) == ["a"]


def test_all_rewrites_of_a_paper_for_a_level_are_found_the_newest_first(warehouse: Warehouse) -> None:
    newer = replace(new("d"), paper_id="paper of a", version=3)
    open_items(warehouse, [newer, replace(newer, item="e", target_level="expert")], now=LATER)
    finish(warehouse, "a", outcome="cancelled", kept=None)
    assert [item.item for item in items_for(warehouse, "paper of a", "public")] == ["d", "a"]
    assert items_for(warehouse, "paper of z", "public") == []


def test_a_rewrite_that_no_profile_requested_is_found_once_it_has_an_attempt(warehouse: Warehouse) -> None:
    open_items(warehouse, [replace(new("d"), paper_id="paper of a"), new("e")], now=LATER)
    assert rewrites_by_command(warehouse) == []
    for item in "abde":
        keep_attempt(warehouse, item, attempt(1))
    assert [each.item for each in rewrites_by_command(warehouse)] == ["d", "e", "b"], "the newest for each paper"
    ask(warehouse, MONDAY, "ann", ["a", "b"])
    assert [each.item for each in rewrites_by_command(warehouse)] == ["e"]


def test_a_claim_shows_that_a_rewrite_is_being_written_until_it_ends(warehouse: Warehouse) -> None:
    claim_item(warehouse, "a", holder="elsewhere:1:token", now=NOW, until=LATER)
    assert claimed_items(warehouse, now=NOW) == {"a"}
    assert claimed_items(warehouse, now=LATER) == set()


def test_a_profile_has_its_rewrites_in_the_order_asked_for_newest_day_first(warehouse: Warehouse) -> None:
    assert items_of(warehouse, [(MONDAY, "ann")]) == {}
    assert ask(warehouse, MONDAY, "ann", ["c", "a"])
    assert not ask(warehouse, MONDAY, "ann", ["c", "a"])
    assert ask(warehouse, TUESDAY, "ann", ["b", "a"])
    assert ask(warehouse, TUESDAY, "bob", [])
    assert [item.item for item in rewrites_of(warehouse, profile="ann", day=MONDAY)] == ["c", "a"]
    assert [item.item for item in rewrites_of(warehouse, profile="ann")] == ["b", "a", "c"]
    assert rewrites_of(warehouse, profile="bob") == []
    assert ask(warehouse, MONDAY, "ann", ["a"])
    assert items_of(warehouse, [(MONDAY, "ann"), (MONDAY, "bob")]) == {(MONDAY, "ann"): ["a"]}
    assert asked_by(warehouse, ["a", "c"]) == {(MONDAY, "ann"): ["a"], (TUESDAY, "ann"): ["a"]}


# Claims: one at a time, which ends with its lease or its process (B11)


LEASE = timedelta(minutes=5)


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
    elsewhere = f"abc {replace(this_process(), host='elsewhere.example')}"
    assert claims(warehouse, elsewhere)
    assert not claims(warehouse, new_holder(), after=LEASE - timedelta(seconds=1))
    assert claims(warehouse, new_holder(), after=LEASE)


def test_the_claim_of_a_dead_process_of_this_machine_is_void_at_once(warehouse: Warehouse) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert claims(warehouse, f"abc {replace(this_process(), pid=gone.pid)}")
    assert claims(warehouse, f"abc {this_process()}")
    assert not claims(warehouse, new_holder()), "this process lives"
