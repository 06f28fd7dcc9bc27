"""The figures of final lists against sums by hand and plain twins."""

import math
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.final_lists import OWN, JudgedList
from benchmarks.evaluation.judged_lists import UNJUDGED, JudgedLists, JudgedProfile, joined, load_judged_lists
from benchmarks.evaluation.list_quality import (
    METRICS,
    QUALITY,
    Figures,
    ListChoice,
    against,
    by_kind,
    calibration,
    calibration_by_kind,
    calibration_report,
    figures_table,
    judge_lists,
    kinds_table,
    list_figures,
    reliability_table,
    together,
    traits_table,
)
from benchmarks.evaluation.metrics import EvaluationConfig
from paper_assets.errors import InvalidInput
from paper_assets.settings import ScoringConfig
from paper_assets.stores.warehouse import Warehouse
from tests.evaluation.judged import FROGS, GRADES, embed, warehouse_of, write_lists

JUDGING = EvaluationConfig(resamples=500)
AS_OF = date(2026, 3, 12)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> JudgedLists:
    return load_judged_lists(write_lists(tmp_path_factory.mktemp("lists")))


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Warehouse]:
    with warehouse_of() as filled:
        yield filled


def judge(
    warehouse: Warehouse, lists: JudgedLists, *names: str, purposes: Sequence[str] = (), top_k: int | None = None
) -> Figures:
    return judge_lists(
        warehouse,
        lists,
        ListChoice(names=names, purposes=purposes, top_k=top_k),
        as_of=AS_OF,
        embed=embed,
        scoring=ScoringConfig(),
    )


def test_a_paper_that_no_list_of_the_day_could_show_is_not_missed(warehouse: Warehouse, tmp_path: Path) -> None:
    days = {**FROGS, "feed": {"repeat": True, "window_days": 3}}  # without the day of paper 1
    grades = dict(GRADES["frogs"])
    found = []
    for name in ("with", "without"):
        folder = write_lists(tmp_path / name, profiles={"frogs": days}, grades={"frogs": grades})
        figures = judge(warehouse, load_judged_lists(folder), "hybrid")
        found.append(figures.outcomes["hybrid", OWN].of("ndcg@10").tolist())
        grades.pop("2603.00001", None)
    assert found[0] == found[1]


def listed(grades: Sequence[int], *, shown: int) -> JudgedList:
    count = len(grades)
    return JudgedList(
        paper_ids=tuple(f"p{number}" for number in range(count)),
        shown=np.arange(count) < shown,
        grades=np.array(grades, dtype=np.int64),
        relevance=np.linspace(1, 0, count),
    )


def judged(lists: JudgedLists, *pool: int) -> JudgedProfile:
    grades = {f"g{number}": grade for number, grade in enumerate(pool)}
    return JudgedProfile(profile=lists.profiles[0].profile, grades=grades)


def test_the_figures_are_those_that_the_definitions_give(lists: JudgedLists) -> None:
    found = listed([3, UNJUDGED, 0, 2, 1, 2], shown=3)
    values = dict(zip(METRICS, list_figures(found, judged(lists, 3, 3, 2, 2, 1, 0)).tolist(), strict=True))
    gains = 7 / math.log2(2)  # what is not shown brings nothing
    best = 7 / math.log2(2) + 7 / math.log2(3) + 3 / math.log2(4) + 3 / math.log2(5) + 1 / math.log2(6)
    assert values["precision@5"] == pytest.approx(1 / 5)
    assert values["precision@10"] == pytest.approx(1 / 10)
    assert values["ndcg@10"] == pytest.approx(gains / best)
    assert values["on_topic"] == pytest.approx(1 / 2)  # of three shown two are judged, one of them is relevant
    assert (values["shown"], values["right"], values["shown_unjudged"], values["empty"]) == (3, 1, 1, 0)
    assert values["top_grade_reached"] == 1


@given(
    st.lists(st.integers(-1, 3), max_size=30),
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.integers(0, 30),
)
def test_the_figures_agree_with_a_plain_twin(
    lists: JudgedLists, grades: list[int], pool: list[int], shown: int
) -> None:
    values = dict(zip(METRICS, list_figures(listed(grades, shown=shown), judged(lists, *pool)), strict=True))

    def dcg(places: list[int], k: int) -> float:
        return sum((2 ** max(grade, 0) - 1) / math.log2(place + 2) for place, grade in enumerate(places[:k]))

    head = [grade for grade in grades[:shown] if grade >= 0]
    seen = grades[:shown]
    assert values["precision@5"] == sum(grade >= 2 for grade in seen[:5]) / 5
    assert values["precision@10"] == sum(grade >= 2 for grade in seen[:10]) / 10
    for k in (5, 10):
        best = dcg(sorted(pool, reverse=True), k)
        assert values[f"ndcg@{k}"] == pytest.approx(dcg(seen, k) / best if best else math.nan, nan_ok=True)
    wanted = sum(grade >= 2 for grade in head) / len(head) if head else math.nan
    assert values["on_topic"] == pytest.approx(wanted, nan_ok=True)
    assert values["shown_unjudged"] == sum(grade < 0 for grade in grades[:shown])
    assert values["right"] == sum(grade >= 2 for grade in seen)
    assert values["empty"] == (not seen and any(grade >= 2 for grade in grades))
    highest = [place < shown for place, grade in enumerate(grades) if grade == 3]
    share = sum(highest) / len(highest) if highest else math.nan
    assert values["top_grade_reached"] == pytest.approx(share, nan_ok=True)


def test_a_quiet_day_that_shows_nothing_has_no_share_on_topic_rather_than_a_zero(lists: JudgedLists) -> None:
    values = dict(zip(METRICS, list_figures(listed([3, 0], shown=0), judged(lists, 3)), strict=True))
    assert math.isnan(values["on_topic"]) and values["shown"] == 0
    assert values["empty"] == 1 and values["precision@5"] == 0  # although a paper would have been right


def test_unjudged_papers_are_counted_apart_whatever_the_list(lists: JudgedLists, warehouse: Warehouse) -> None:
    figures = judge(warehouse, lists, "hybrid", "tfidf")
    for key in figures.keys:
        outcome = figures.outcomes[key]
        for profile, unjudged in zip(outcome.query_ids, outcome.of("shown_unjudged"), strict=True):
            each = figures.lists[key][profile]
            shown = [paper_id for paper_id, seen in zip(each.paper_ids, each.shown, strict=True) if seen]
            assert unjudged == sum(paper_id not in GRADES[profile] for paper_id in shown)


def test_lists_are_judged_for_the_profiles_own_purpose_or_for_any_other(
    lists: JudgedLists, warehouse: Warehouse
) -> None:
    figures = judge(warehouse, lists, "hybrid", purposes=["own", "implementation"])
    stones = [figures.lists["hybrid", purpose]["stones"].paper_ids for purpose in ("own", "implementation")]
    assert stones[0] == stones[1] and stones[0][0] == "2603.00003"  # it has code
    for purpose in ("own", "implementation"):  # papers without code come later, and are not removed
        assert len(figures.lists["hybrid", purpose]["frogs"].paper_ids) == 7


def test_the_number_shown_is_the_profiles_or_the_one_that_is_asked_for(
    lists: JudgedLists, warehouse: Warehouse
) -> None:
    shown = judge(warehouse, lists, "tfidf").outcomes["tfidf", "own"].of("shown").tolist()
    assert shown == [3, 2]
    assert judge(warehouse, lists, "tfidf", top_k=1).outcomes["tfidf", "own"].of("shown").tolist() == [1, 1]


def test_intervals_are_the_same_in_every_run_and_follow_the_seed(lists: JudgedLists, warehouse: Warehouse) -> None:
    figures = judge(warehouse, lists, "hybrid", "bm25")
    first, again = (together(figures, judging=JUDGING) for _ in range(2))
    assert {key: repr(found) for key, found in first.items()} == {key: repr(found) for key, found in again.items()}
    pairs = [against(figures, "bm25", judging=JUDGING) for _ in range(2)]
    assert repr(pairs[0]) == repr(pairs[1])


def test_a_difference_is_paired_by_profile_and_its_mean_is_that_of_the_differences(
    lists: JudgedLists, warehouse: Warehouse
) -> None:
    figures = judge(warehouse, lists, "hybrid", "bm25", purposes=["own", "general"])
    pairs = against(figures, "bm25", judging=JUDGING)
    assert set(pairs) == {("hybrid", "own"), ("hybrid", "general")}
    for key, found in pairs.items():
        assert list(found) == list(QUALITY)
        values = [figures.outcomes[name, key[1]].of("ndcg@10") for name in ("hybrid", "bm25")]
        assert found["ndcg@10"].difference == pytest.approx((values[0] - values[1]).mean())
    one = against(figures, "hybrid@general", judging=JUDGING)
    assert set(one) == set(figures.keys) - {("hybrid", "general")}


def test_an_unknown_list_or_purpose_is_refused_with_the_known_ones(lists: JudgedLists, warehouse: Warehouse) -> None:
    with pytest.raises(InvalidInput, match="no list 'magic' for this set; choose among hybrid, hyb"):
        judge(warehouse, lists, "magic")
    with pytest.raises(InvalidInput, match="no purpose 'fun'; choose among own, general"):
        judge(warehouse, lists, "hybrid", purposes=["fun"])
    with pytest.raises(InvalidInput, match="--against seed: not among the lists judged: hybrid@own"):
        against(judge(warehouse, lists, "hybrid"), "seed", judging=JUDGING)


def test_the_table_has_a_row_for_every_list_and_purpose(lists: JudgedLists, warehouse: Warehouse) -> None:
    figures = judge(warehouse, lists, "hybrid", "cosine", purposes=["own", "general"])
    header, rows = figures_table(figures, judging=JUDGING)
    assert [row[:2] for row in rows] == figures.keys
    assert {len(row) for row in rows} == {len(header)}


def test_two_sets_are_judged_together_each_on_its_day_and_by_kind_of_reader(
    lists: JudgedLists, warehouse: Warehouse, tmp_path: Path
) -> None:
    profiles = {
        "one": {"interests": {"primary": ["frogs"]}, "feed": {"categories": None}},
        "liked": {"interests": {"papers": ["2603.00001"]}, "feed": {"categories": None}},
    }
    grades = {name: {"2603.00001": 3, "2603.00003": 2} for name in profiles}
    more = load_judged_lists(write_lists(tmp_path / "more", profiles=profiles, grades=grades))
    both = joined([(lists, AS_OF), (more, date(2026, 3, 11))])
    figures = judge_lists(
        warehouse, both, ListChoice(names=["hybrid", "z-sum"]), as_of=AS_OF, embed=embed, scoring=ScoringConfig()
    )
    assert (figures.days["frogs"], figures.days["one"]) == (AS_OF, date(2026, 3, 11))
    kinds = by_kind(figures)
    assert {"one short interest", "liked papers only", "all"} <= set(kinds)
    assert kinds["all"]["hybrid", "own"]["readers"] == 4
    shown = sum(each.shown.sum() for each in figures.lists["z-sum", "own"].values())
    assert kinds["all"]["z-sum", "own"]["shown"] == shown
    assert {row[0] for row in kinds_table(figures)[1]} == set(kinds)
    assert {row[0] for row in reliability_table(calibration_by_kind(figures, ("hybrid", "own")))[1]} <= set(kinds)
    with pytest.raises(InvalidInput, match="frogs, stones: judged in two sets"):
        joined([(lists, AS_OF), (lists, AS_OF)])


def test_what_a_purpose_shows_is_described(lists: JudgedLists, warehouse: Warehouse) -> None:
    figures = judge(warehouse, lists, "hybrid", purposes=["general", "implementation"])
    header, rows = traits_table(figures)
    assert header[2:] == ["with code", "surveys", "age", "spread"] and len(rows) == 2
    code = [figures.lists["hybrid", purpose]["stones"].traits["with code"] for purpose in ("general", "implementation")]
    assert code[1] >= code[0] > 0


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(-1, 3)), min_size=1, max_size=60),
)
def test_calibration_agrees_with_a_plain_twin(papers: list[tuple[float, int]]) -> None:
    report = calibration_report(
        np.array([probability for probability, _ in papers]), np.array([grade for _, grade in papers])
    )
    hits = [(probability, float(grade >= 2)) for probability, grade in papers]
    assert report.brier == pytest.approx(sum((p - y) ** 2 for p, y in hits) / len(hits))
    losses = [-math.log(min(max(p if y else 1 - p, 1e-9), 1 - 1e-9)) for p, y in hits]
    assert report.log_loss == pytest.approx(sum(losses) / len(losses), rel=1e-6, abs=1e-8)
    assert sum(one.papers for one in report.bins) == len(papers)
    assert sum(one.judged for one in report.bins) == sum(grade != UNJUDGED for _, grade in papers)
    error = 0.0
    for one in report.bins:
        last = one.high == 1.0
        inside = [(p, y) for p, y in hits if one.low <= p and (p < one.high or last)]
        mean, share = (sum(column) / len(inside) for column in zip(*inside, strict=True))
        assert (len(inside), one.mean, one.on_topic) == (one.papers, pytest.approx(mean), pytest.approx(share))
        error += len(inside) / len(hits) * abs(mean - share)
    assert report.error == pytest.approx(error)


def test_a_list_without_probabilities_has_no_calibration(lists: JudgedLists, warehouse: Warehouse) -> None:
    assert calibration(judge(warehouse, lists, "seed"), ("seed", "own")) is None
    assert calibration(judge(warehouse, lists, "bm25"), ("bm25", "own")) is None


def test_lists_are_read_from_a_folder_of_any_name(tmp_path: Path, warehouse: Warehouse) -> None:
    lists = load_judged_lists(write_lists(tmp_path / "some folder"))
    assert judge(warehouse, lists, "bm25").outcomes["bm25", "own"].query_ids == ("frogs", "stones")
