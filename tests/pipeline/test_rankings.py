"""A profile's day with papers it likes: a real warehouse, the real model."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.errors import LLMConfigError, NotComputed
from paper_assets.models.embedder import Embedder, _Memory, load_embedder
from paper_assets.paper import Paper, embedded_text
from paper_assets.pipeline.day_inputs import inputs_by_day, profile_day, profile_queries, query_vectors
from paper_assets.pipeline.rankings import (
    RankingWork,
    day_task,
    judged_papers,
    keep_candidates,
    keep_ranking,
    ranking_work,
    with_stored_vectors,
)
from paper_assets.profile import Profile, ProfileContent, profile_content
from paper_assets.ranking.explain import why
from paper_assets.ranking.rank import rank
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.settings import Settings, load_settings
from paper_assets.stores.embeddings import keep_vectors, texts_without_vector
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import StoredRanking, candidates, new_in_window, ranking, stored_inputs
from paper_assets.stores.warehouse import Warehouse
from tests.ranking.invented import AS_OF, NOW

NOBODY = Verifier(ask=unavailable(LLMConfigError("no language model")), model=None)
TOMORROW = AS_OF + timedelta(days=1)
TOPICS = ("Frogs in the marsh", "Granite and other stones", "Sorting networks of small depth")


def paper(number: int, title: str, *, year: int = 2026) -> Paper:
    return Paper(
        paper_id=f"2603.{number:05d}",
        title=title,
        abstract=f"We study {title.lower()}.",
        authors=("A B",),
        published=datetime(year, 3, 30, tzinfo=UTC),
    )


class Day:
    """One profile's day over one warehouse."""

    def __init__(self, folder: Path, **interests: Any) -> None:
        self.settings: Settings = load_settings({}, folder)
        self.warehouse = Warehouse(self.settings.warehouse_path, deadline=10)
        self.embedder: Embedder = load_embedder()
        record = {"interests": interests, "ranking": {"enable_llm_verification": False}}
        self.profile = Profile(name="ann", content=profile_content(record, source="ann"))
        self.add(*(paper(number, title) for number, title in enumerate(TOPICS, 1)))

    def add(self, *papers: Paper) -> None:
        merge_papers(self.warehouse, papers)
        hashes, texts = texts_without_vector(self.warehouse, None, None, model=self.embedder.name)
        keep_vectors(self.warehouse, hashes, self.embedder.encode(texts), model=self.embedder.name)

    def ranked(self, *, embedder: bool = True, as_of: date = AS_OF) -> StoredRanking:
        day = profile_day(self.warehouse, self.profile, as_of, settings=self.settings)
        keep_candidates(self.warehouse, day, settings=self.settings)
        keep_ranking(
            self.warehouse,
            self.profile,
            as_of,
            embedder=self.embedder if embedder else None,
            verifier=NOBODY,
            settings=self.settings,
            now=NOW,
        )
        return ranking(self.warehouse, as_of, "ann")

    def work(self, now: datetime) -> RankingWork:
        work = ranking_work(
            self.warehouse, self.profile, AS_OF, embedder=self.embedder, llm=None, settings=self.settings, now=now
        )
        assert work
        return work

    @property
    def stale(self) -> bool:
        return self.stale_on(AS_OF)

    def stale_on(self, as_of: date) -> bool:
        wanted = inputs_by_day(
            self.warehouse, [(self.profile, [as_of])], model=self.embedder.name, llm=None, settings=self.settings
        )
        return stored_inputs(self.warehouse, {"ann": (as_of, as_of)}) != wanted


def titles(stored: StoredRanking) -> list[str]:
    return [TOPICS[int(paper_id[-2:]) - 1] for paper_id in stored.rows.column("paper_id").to_pylist()]


def test_papers_like_the_liked_one_come_first_and_their_row_names_it(tmp_path: Path) -> None:
    day = Day(tmp_path, papers=["2603.00009"])
    day.add(paper(9, "A toad and a frog by the pond", year=2020))
    stored = day.ranked()
    assert titles(stored)[0] == "Frogs in the marsh"
    assert stored.rows.column("nearest").to_pylist()[0] == "A toad and a frog by the pond"
    assert stored.header["views"] == ["library"]
    assert stored.header["warnings"] == []


def test_a_liked_papers_stored_vector_is_used_and_only_a_missing_one_embedded(tmp_path: Path) -> None:
    day = Day(tmp_path, papers=["2603.00009", {"title": "Deep pits of granite", "abstract": ""}])
    toads = paper(9, "Newts and toads by the pond", year=2020)
    merge_papers(day.warehouse, [toads])
    hashes, texts = texts_without_vector(day.warehouse, None, None, model=day.embedder.name)
    assert texts == [embedded_text(toads.title, toads.abstract)]
    stones = day.embedder.encode(["Rows of comparators that sort"])
    keep_vectors(day.warehouse, hashes, stones, model=day.embedder.name)  # a vector that gives itself away
    relevance = dict(zip(titles(day.ranked()), day.ranked().rows.column("semantic_relevance").to_pylist(), strict=True))
    assert relevance["Granite and other stones"] > relevance["Frogs in the marsh"]
    assert relevance["Sorting networks of small depth"] > relevance["Frogs in the marsh"]


def test_an_unknown_liked_paper_is_a_warning_until_its_import_which_ranks_again(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["stones"], papers=["2603.00009"])
    before = day.ranked()
    assert "do not count: 2603.00009;" in before.header["warnings"][0]
    assert titles(before)[0] == "Granite and other stones"
    assert not day.stale
    day.add(paper(9, "A toad and a frog by the pond", year=2020))
    assert day.stale
    after = day.ranked()
    assert after.header["warnings"] == []
    assert after.header["views"] == ["lanes", "library"]
    gain = {
        title: now - then
        for title, now, then in zip(sorted(titles(before)), by_title(after), by_title(before), strict=True)
    }
    assert max(gain, key=lambda title: gain[title]) == "Frogs in the marsh"


def broken(embedder: Embedder) -> Embedder:
    """The model by its name, giving vectors of nan."""

    def many(texts: list[str]) -> Any:
        yield range(len(texts)), np.full((len(texts), embedder.dimension), np.nan, np.float32)

    return replace(
        embedder, _one=lambda text: np.full(embedder.dimension, np.nan), _many=many, _memory=type(embedder._memory)()
    )


def test_a_model_that_fails_when_asked_ranks_by_keywords_and_again_once_it_works(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["stones"])
    works, day.embedder = day.embedder, broken(day.embedder)
    stored = day.ranked()
    assert stored.header["evaluation_method"] == "keyword"
    assert "keywords only: embedding model 'all-MiniLM-L6-v2' gave" in stored.header["warnings"][0]
    assert titles(stored)[0] == "Granite and other stones"
    assert day.stale
    day.embedder = works
    assert (day.ranked().header["evaluation_method"], day.ranked().header["warnings"]) == ("embedding", [])
    assert not day.stale


def test_papers_without_vector_are_ranked_by_keywords_where_the_model_fails_and_refused_where_it_works(
    tmp_path: Path,
) -> None:
    day = Day(tmp_path, primary=["stones"])
    merge_papers(day.warehouse, [paper(4, "Pebbles")])
    with pytest.raises(NotComputed, match="materialize paper_embeddings"):
        day.ranked()
    day.embedder = broken(day.embedder)
    stored = day.ranked()
    assert (stored.header["evaluation_method"], stored.rows.num_rows) == ("keyword", len(TOPICS) + 1)
    assert texts_without_vector(day.warehouse, None, None, model=day.embedder.name)[0]


def by_title(stored: StoredRanking) -> np.ndarray:
    return stored.rows.column("semantic_relevance").to_numpy()[np.argsort(titles(stored))]


def test_a_paper_liked_by_its_id_counts_as_read(tmp_path: Path) -> None:
    day = Day(tmp_path, papers=["2603.00001"])
    assert titles(day.ranked()) != []
    reasons = candidates(day.warehouse, AS_OF, "ann").to_pylist()
    assert [(row["paper_id"], row["reason"]) for row in reasons if row["reason"]] == [("2603.00001", "ALREADY_READ")]


def test_without_a_model_the_titles_of_liked_papers_are_the_keywords(tmp_path: Path) -> None:
    day = Day(tmp_path, papers=["2603.00009"])
    day.add(paper(9, "Granite", year=2020))
    stored = day.ranked(embedder=False)
    assert stored.header["evaluation_method"] == "keyword"
    assert titles(stored)[0] == "Granite and other stones"
    assert stored.rows.column("semantic_relevance").to_pylist() == pytest.approx([1.0, 0.0, 0.0], abs=0.01)
    assert stored.rows.column("nearest").to_pylist()[0] == "Granite"


def test_a_paper_that_an_earlier_list_did_not_show_is_less_probable_the_next_day_with_the_reason(
    tmp_path: Path,
) -> None:
    day = Day(tmp_path, primary=["stones"])
    first = day.ranked()
    passed_over = "2603.00003"
    assert not row_of(first, passed_over)["shown"]
    second = day.ranked(as_of=TOMORROW)
    before, after = row_of(first, passed_over), row_of(second, passed_over)
    assert after["semantic_relevance"] < before["semantic_relevance"]
    assert "CONSIDERED_BEFORE" in after["tags"] and "CONSIDERED_BEFORE" not in before["tags"]
    assert any("An earlier list considered it" in each for each in why(after, second.header, scored=3))


def test_papers_count_in_full_where_no_earlier_list_considered_them_for_the_same_wishes(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["stones"])
    first = day.ranked()
    fresh = paper(4, "Pebbles of the beach")
    day.add(replace(fresh, published=datetime(TOMORROW.year, TOMORROW.month, TOMORROW.day, tzinfo=UTC)))
    assert "CONSIDERED_BEFORE" not in row_of(day.ranked(as_of=TOMORROW), fresh.paper_id)["tags"]
    day.profile = replace(day.profile, content=edited(day.profile, interests={"primary": ["stones", "networks"]}))
    other = day.ranked(as_of=TOMORROW)
    assert all("CONSIDERED_BEFORE" not in row["tags"] for row in other.rows.to_pylist())
    day.profile = replace(day.profile, content=edited(day.profile, interests={"primary": ["stones"]}, repeat=True))
    again = day.ranked(as_of=TOMORROW)
    assert row_of(again, "2603.00003")["semantic_relevance"] == pytest.approx(
        row_of(first, "2603.00003")["semantic_relevance"], abs=0.02
    )


def test_a_paper_that_is_announced_after_the_list_of_its_day_counts_in_full_and_as_new(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["stones"])
    day.ranked()
    late = paper(4, "Pebbles of the beach")
    day.add(late)
    tags = {row["paper_id"]: row["tags"] for row in day.ranked(as_of=TOMORROW).rows.to_pylist()}
    assert "CONSIDERED_BEFORE" not in tags[late.paper_id]
    assert "CONSIDERED_BEFORE" in tags["2603.00003"]
    assert new_in_window(day.warehouse, AS_OF, "ann") == len(TOPICS)
    assert new_in_window(day.warehouse, TOMORROW, "ann") == 1


def test_a_shown_paper_keeps_the_next_days_papers_from_seeming_to_match_well(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["granite"])
    assert row_of(day.ranked(), "2603.00002")["shown"]
    fresh = paper(4, "Walls of granite dust")
    day.add(replace(fresh, published=datetime(TOMORROW.year, TOMORROW.month, TOMORROW.day, tzinfo=UTC)))
    window = profile_day(day.warehouse, day.profile, TOMORROW, settings=day.settings)
    task = day_task(
        day.warehouse,
        day.profile,
        TOMORROW,
        judged_papers(day.warehouse, window, settings=day.settings),
        queries=profile_queries(day.warehouse, day.profile, settings=day.settings),
        preferences=None,
        earlier=None,
        settings=day.settings,
    )
    assert task.shown_before is not None
    assert task.shown_before.column("title").to_pylist() == ["Granite and other stones"]
    with_it, without = (
        dict(zip(found.column("paper_id").to_pylist(), found.column("semantic_relevance").to_pylist(), strict=True))
        for found in (rank(each).rows for each in (task, replace(task, shown_before=None)))
    )
    assert with_it[fresh.paper_id] < without[fresh.paper_id]


def test_papers_that_may_be_repeated_count_in_full_on_every_day(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["stones"])
    day.profile = replace(day.profile, content=edited(day.profile, interests={"primary": ["stones"]}, repeat=True))
    assert not row_of(day.ranked(), "2603.00003")["shown"]
    assert "CONSIDERED_BEFORE" not in row_of(day.ranked(as_of=TOMORROW), "2603.00003")["tags"]


def test_a_day_is_out_of_date_once_an_earlier_one_has_considered_its_papers(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["nothing that these papers are about"])
    day.ranked(as_of=TOMORROW)
    assert not day.stale_on(TOMORROW)
    assert not any(row["shown"] for row in day.ranked().rows.to_pylist())
    assert day.stale_on(TOMORROW)
    day.ranked(as_of=TOMORROW)
    assert not day.stale_on(TOMORROW)


def edited(profile: Profile, *, repeat: bool = False, window: int = 7, **changes: Any) -> ProfileContent:
    record = {
        **changes,
        "feed": {"repeat": repeat, "window_days": window},
        "ranking": {"enable_llm_verification": False},
    }
    return profile_content(record, source=profile.name)


def row_of(stored: StoredRanking, paper_id: str) -> dict[str, Any]:
    (row,) = (row for row in stored.rows.to_pylist() if row["paper_id"] == paper_id)
    found: dict[str, Any] = row
    return found


def test_vectors_of_the_calibrated_model_are_judged_by_its_usual_cosines(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["frogs in the marsh"])
    known = day.ranked().rows.to_pylist()[0]["semantic_relevance"]
    day.embedder = replace(day.embedder, name="another-model")
    day.add()
    assert day.ranked().rows.to_pylist()[0]["semantic_relevance"] < known


def test_a_list_that_two_processes_compute_at_once_is_stored_once(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["frogs"])
    inputs = profile_day(day.warehouse, day.profile, AS_OF, settings=day.settings)
    keep_candidates(day.warehouse, inputs, settings=day.settings)
    works = [day.work(NOW), day.work(NOW + timedelta(seconds=1))]
    for work in works:
        task = with_stored_vectors(day.warehouse, day.profile, work.task, day.embedder)
        work.store(day.warehouse, task, rank(task, verifier=NOBODY))
    assert len([*(day.settings.rankings_dir / "ann").glob("*.json")]) == 1


def test_interests_are_embedded_for_the_first_list_only_and_a_preview_stores_nothing(tmp_path: Path) -> None:
    day = Day(tmp_path, primary=["frogs"])
    queries = profile_queries(day.warehouse, day.profile, settings=day.settings)
    query_vectors(day.warehouse, queries, day.embedder, keep=False)
    assert day.warehouse.value("select count(*) from embeddings") == len(TOPICS)
    day.ranked()
    day.add(paper(4, "A toad in the marsh"))

    def broken(_: object) -> Any:
        raise RuntimeError("no model")

    day.embedder = replace(day.embedder, _one=broken, _many=broken, _memory=_Memory())
    assert day.ranked(as_of=TOMORROW).header["evaluation_method"] == "embedding"
