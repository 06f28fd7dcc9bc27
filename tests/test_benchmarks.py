"""The table of benchmarks: how it shows a figure, and its exit code."""

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from benchmarks import punctuality, table
from benchmarks._figures import Figure
from benchmarks.home_hash import without_texts


def figure(seconds: float, target: float | None) -> Figure:
    return Figure(stage="a stage", baseline="a plain loop", seconds=seconds, baseline_seconds=2.0, target=target)


def run_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], part: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["table", part])
    return table.main(), capsys.readouterr().out


def reached(short: bool) -> list[Figure]:
    return [figure(0.1, 15.0), figure(2.4, 1 / 1.3), figure(9.0, None)]


def missed(short: bool) -> list[Figure]:
    return [figure(1.0, 15.0), figure(2.8, 1 / 1.3)]


def broken(short: bool) -> list[Figure]:
    raise ValueError("no such model")


def test_a_line_names_stage_baseline_ratio_and_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(table.PARTS, "reached", reached)
    code, out = run_table(monkeypatch, capsys, "reached")
    assert code == 0
    faster, longer, untargeted = out.splitlines()[1:]
    assert "a plain loop" in faster and "20.0 x as fast" in faster and ">= 15" in faster and faster.endswith("met")
    assert "1.20 x as long" in longer and "<= 1.3" in longer
    assert untargeted.endswith("–")


@pytest.mark.parametrize("part", [missed, broken])
def test_a_missed_target_and_a_broken_part_end_it_with_1(
    part: table.Part, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(table.PARTS, part.__name__, part)
    code, out = run_table(monkeypatch, capsys, part.__name__)
    assert code == 1
    assert out.count("MISSED") == 2 or "broken is broken: ValueError: no such model" in out


def test_a_home_from_before_a_renaming_is_compared_by_the_names_of_today() -> None:
    before, after = {"line": 0.35, "nudge": None, "k": 5}, {"threshold": 0.35, "preference_weight": None, "k": 5}
    assert without_texts(before) == without_texts(after) != without_texts({**after, "threshold": 0.4})


def test_in_the_weeks_around_thanksgiving_no_paper_is_late_lost_or_listed_twice(tmp_path: Path) -> None:
    """A small version of the benchmark: six papers a day, a day without arXiv, two days without the machine."""
    period = punctuality.Period(
        first=date(2026, 11, 16),
        last=date(2026, 12, 1),
        outages=((datetime(2026, 11, 18, tzinfo=UTC), datetime(2026, 11, 19, tzinfo=UTC)),),
        asleep=((datetime(2026, 11, 23, 20, tzinfo=UTC), datetime(2026, 11, 25, 20, tzinfo=UTC)),),
    )
    found = punctuality.simulate(period, punctuality.submitted(period, [], 6), punctuality.by_announcements(), tmp_path)
    assert len(found.hours) > 60
    assert (found.later, found.lost, found.twice) == (0, 0, 0)
    assert sorted(found.requests)[len(found.requests) // 2] <= 4
