"""From ratings to a ranking: what was learned moves it, is explained, recomputes, and goes when the ratings go."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from paper_assets.interfaces.cli.ranking import ratings
from paper_assets.learning.ratings import change_forgotten, erase_ratings, rate
from paper_assets.paper import embedded_text
from paper_assets.pipeline.digests import write_digest
from paper_assets.pipeline.preferences import STEP
from paper_assets.pipeline.step import Partition, stale
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.ranking.changes import changes_between
from paper_assets.ranking.explain import recompute, why
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.feedback import NewRating, append_ratings, stored_model
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import StoredRanking, previous_ranking
from tests.pipeline.test_rankings import Day, paper
from tests.ranking.invented import AS_OF

ANN = Partition(profile="ann")
NOW = datetime(2026, 4, 1, 8, tzinfo=UTC)
WORDS = ("pond", "marsh", "rain", "night", "spring", "leaf", "reed", "mud", "song", "egg", "bank", "fly")


@pytest.fixture
def day(tmp_path: Path) -> Day:
    """Twelve papers on frogs and twelve on stones of one week, for a profile that likes nature."""
    found = Day(tmp_path, primary=["walks in nature"])
    record = '{"interests": {"primary": ["walks in nature"]}}'
    folder = tmp_path / "profiles" / "ann"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text(record, encoding="utf-8")
    for start, topic in ((100, "frogs and toads"), (200, "granite and basalt")):
        found.add(*(paper(start + at, f"Notes of a walk: {topic}, {word}") for at, word in enumerate(WORDS)))
    return found


def rate_frogs_and_stones(day: Day, frogs: str = "worth", stones: str = "no", *, count: int = 10) -> None:
    given = [
        NewRating(paper_id=f"2603.{number:05d}", rating=word)
        for at in range(count)
        for number, word in ((100 + at, frogs), (200 + at, stones))
    ]
    append_ratings(day.warehouse, "ann", given, given_in="page", now=NOW)


def learn(day: Day) -> list[Partition]:
    """Bring the model up to date; return what was stale."""
    workspace = open_workspace(day.settings, {}, clock=lambda: NOW)
    todo = stale(STEP.tracked, workspace, [ANN])
    made = STEP.make(workspace, todo, STEP.makes)
    assert not made.failures
    for each in todo:
        STEP.products[0].report(workspace, each, made)
    assert stale(STEP.tracked, workspace, [ANN]) == []
    return todo


def means(stored: StoredRanking) -> tuple[float, float]:
    """The mean places of the two unrated papers on each topic."""
    places = {row["paper_id"]: row["rank"] for row in stored.rows.to_pylist()}
    return tuple(float(np.mean([places[f"2603.{start + at:05d}"] for at in (10, 11)])) for start in (100, 200))  # type: ignore[return-value]


def test_what_ratings_teach_moves_unrated_papers_and_is_explained_and_recomputes(day: Day) -> None:
    before = day.ranked()
    rate_frogs_and_stones(day)
    assert learn(day) == [ANN]
    assert day.stale
    after = day.ranked()
    frogs, stones = means(after)
    assert frogs < stones
    assert after.header["learning"].startswith("Your ratings count ")
    final = recompute(after.rows, after.header["weights"], day.settings.scoring)
    assert np.abs(final - after.rows.column("final").to_numpy()).max() < 1e-12
    [row] = [row for row in after.rows.to_pylist() if row["paper_id"] == "2603.00110"]
    reasons = " ".join(why(row, after.header, scored=after.rows.num_rows))
    assert "Your ratings moved the probability by +" in reasons and "which you rated" in reasons
    assert set(row["learned_near"]) <= {f"2603.{100 + at:05d}" for at in range(10)}
    moves = changes_between(before.rows, after.rows, headers=(before.header, after.header), removed={}).moves
    assert sum("what your ratings taught" in move.reason for move in moves) > len(moves) / 2
    assert all("what your ratings taught" in move.reason or "others came or went" in move.reason for move in moves)


def test_ratings_hardly_lower_a_liked_paper_of_the_profile(day: Day) -> None:
    """Likes frogs, and rates other papers on frogs "not for me"."""
    liked = paper(300, "Notes of a walk: frogs and toads, pond")
    record = {"interests": {"papers": [{"title": liked.title, "abstract": liked.abstract}]}}
    (day.settings.profiles_dir / "ann" / "profile.json").write_text(json.dumps(record), encoding="utf-8")
    rate_frogs_and_stones(day, frogs="no", stones="worth")
    learn(day)
    stored, embedder = (
        stored_model(day.warehouse, "ann"),
        open_workspace(day.settings, {}, clock=lambda: NOW).embedder(),
    )
    assert stored and embedder
    of_liked, of_stone = (
        embedder.encode(
            [
                embedded_text(each.title, each.abstract)
                for each in (liked, paper(211, "Notes of a walk: granite and basalt, fly"))
            ]
        )
        @ stored.vector
    )
    assert of_liked > -0.5 and of_stone > 0.3


def test_a_few_ratings_of_one_kind_already_move_papers_like_them(day: Day) -> None:
    rate_frogs_and_stones(day, count=4, frogs="no", stones="later")
    learn(day)
    after = day.ranked()
    assert "0 papers rated worth reading, 4 not for you" in after.header["learning"]
    learned = {row["paper_id"]: row["learned"] for row in after.rows.to_pylist()}
    frogs, stones = (np.mean([learned[f"2603.{start + at:05d}"] for at in (10, 11)]) for start in (100, 200))
    assert -0.5 < frogs < stones


def test_a_forgotten_word_or_paper_teaches_nothing(day: Day) -> None:
    folder = day.settings.profiles_dir
    rate_frogs_and_stones(day)
    learn(day)
    before = stored_model(day.warehouse, "ann")
    assert before and "frog" in before.words and "2603.00100" in before.rated
    change_forgotten(day.warehouse, "ann", "word", "frog", now=NOW, profiles_dir=folder)
    change_forgotten(day.warehouse, "ann", "paper", "2603.00100", now=NOW, profiles_dir=folder)
    assert learn(day) == [ANN]
    after = stored_model(day.warehouse, "ann")
    assert after and "frog" not in after.words and "2603.00100" not in after.rated


def test_words_of_addresses_are_not_learned_and_those_of_the_text_are(day: Day) -> None:
    addresses = (
        "at https://github.com/devin71/toadtool.",
        "at https: //www.toads.example/devin72",
        "at www.devin73.example",
        "at toads.example/devin74/data",
        "(devin75.github.io)",
        "devin76@toads.example",
    )
    for number in range(12):  # two of each: a word that only one paper contains is not learned either
        text = f"Notes of a walk: frogs and/or newts on JD.com at mAP@0.5 {addresses[number // 2]} devin70"
        day.add(replace(paper(100 + number, text), version=2))
    rate_frogs_and_stones(day, count=12)
    learn(day)
    model = stored_model(day.warehouse, "ann")
    assert model and [word for word in model.words if "devin" in word] == ["devin70"]
    assert {"frog", "newt", "jd", "map"} <= set(model.words)


def test_a_name_that_one_rated_paper_alone_holds_is_not_learned_and_is_from_the_second_paper_on(day: Day) -> None:
    for number, title in ((100, "Frogdb: frogs in a pond"), (110, "Frogdb again: frogs in spring")):
        day.add(replace(paper(number, title), version=2))
    rate_frogs_and_stones(day)
    learn(day)
    model = stored_model(day.warehouse, "ann")
    assert model and "frogdb" not in model.words and model.words["frog"] > 0
    [row] = [row for row in day.ranked().rows.to_pylist() if row["paper_id"] == "2603.00110"]
    assert "+frogdb" not in row["learned_words"] and "+frog" in row["learned_words"]
    rate_frogs_and_stones(day, count=11)
    learn(day)
    model = stored_model(day.warehouse, "ann")
    assert model and model.words["frogdb"] > 0


def test_a_title_with_an_escaped_dollar_is_listed_as_a_reader_expects_it(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    day.add(paper(300, r"\$Frogs for ponds"))
    folder = day.settings.profiles_dir
    rate(day.warehouse, "ann", "2603.00300", "worth", given_in="page", now=NOW, profiles_dir=folder)
    monkeypatch.chdir(day.settings.warehouse_path.parent)
    monkeypatch.setenv("PAPER_ASSETS_HOME", str(day.settings.warehouse_path.parent))
    monkeypatch.setenv("PAPER_ASSETS_PROFILES", str(folder))
    monkeypatch.setenv("COLUMNS", "200")
    ran = CliRunner().invoke(ratings, ["list", "ann"])
    assert ran.output.count("$Frogs for ponds") == 1 and "\\" not in ran.output


def test_erased_ratings_are_gone_from_the_model_and_the_ranking_is_as_it_was_to_the_byte(day: Day) -> None:
    before = day.ranked()
    rate_frogs_and_stones(day)
    learn(day)
    assert day.ranked().rows != before.rows
    erase_ratings(day.warehouse, "ann", profiles_dir=day.settings.profiles_dir)
    assert stored_model(day.warehouse, "ann") is None
    learn(day)
    after = day.ranked()
    assert (after.rows, after.inputs) == (before.rows, before.inputs)
    kept = previous_ranking(day.warehouse, AS_OF, "ann").rows
    assert kept.column("learned_near").null_count == kept.num_rows


def test_what_is_erased_is_in_no_file_any_more(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = day.settings.profiles_dir, day.settings.warehouse_path.parent
    rate_frogs_and_stones(day)
    unknown = NewRating(paper_id="2601.00001", rating="worth", title="Quokkas of the north", abstract="A wombat too.")
    append_ratings(day.warehouse, "ann", [unknown], given_in="page", now=NOW)
    change_forgotten(day.warehouse, "ann", "word", "zebrafinch", now=NOW, profiles_dir=folder)
    learn(day)
    learned_words = {word for row in day.ranked().rows.to_pylist() for word in row["learned_words"]}
    write_digest(day.warehouse, "ann", AS_OF, settings=day.settings)
    traces = {*learned_words, "Quokkas of the north", "zebrafinch", "Your ratings count", "which you rated"}

    def left() -> set[str]:
        content = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
        return {each for each in traces if each.encode() in content}

    assert left() == traces
    monkeypatch.chdir(home)
    monkeypatch.setenv("PAPER_ASSETS_HOME", str(home))
    monkeypatch.setenv("PAPER_ASSETS_PROFILES", str(folder))
    ran = CliRunner().invoke(ratings, ["erase", "ann", "--yes"])
    assert ran.exit_code == 0 and "21 ratings erased" in ran.output
    assert left() == set()
    assert day.ranked().rows.num_rows and not day.warehouse.path.with_name(".warehouse.duckdb.rewritten").exists()


def test_a_model_is_trained_again_for_another_last_rating_and_not_for_the_same(day: Day) -> None:
    rate_frogs_and_stones(day)
    learn(day)
    first = stored_model(day.warehouse, "ann")
    rate_frogs_and_stones(day)
    assert learn(day) == []
    rate(day.warehouse, "ann", "2603.00100", "undo", given_in="page", now=NOW, profiles_dir=day.settings.profiles_dir)
    assert learn(day) == [ANN]
    second = stored_model(day.warehouse, "ann")
    assert first and second and first.version != second.version and len(second.rated) == 19


def test_papers_of_a_rated_day_change_the_model_and_those_of_a_new_day_do_not(day: Day) -> None:
    rate_frogs_and_stones(day)
    learn(day)
    first = stored_model(day.warehouse, "ann")
    day.add(replace(paper(300, "A new day's walk in nature"), published=NOW))
    assert learn(day) == [], "no paper of that day is rated"
    day.add(*(paper(400 + at, f"Walks in nature: {word}") for at, word in enumerate(WORDS)))
    assert learn(day) == [ANN], "what is near the interests is judged by the papers of the day"
    second = stored_model(day.warehouse, "ann")
    assert first and second and first.version != second.version
    assert first.rated == second.rated, "and only rated papers teach"


def test_a_rated_paper_without_a_vector_is_embedded_and_teaches_at_once(day: Day) -> None:
    merge_papers(day.warehouse, [paper(300, "A walk without a vector"), paper(301, "Another one")])
    rate_frogs_and_stones(day)
    folder = day.settings.profiles_dir
    rate(day.warehouse, "ann", "2603.00300", "worth", given_in="page", now=NOW, profiles_dir=folder)
    assert learn(day) == [ANN]
    model = stored_model(day.warehouse, "ann")
    assert model and "2603.00300" in model.rated
    _, embedded = vectors_of(day.warehouse, ["2603.00300", "2603.00301"], model=day.embedder.name)
    assert embedded.tolist() == [True, False]


def test_a_rating_given_while_the_model_is_made_is_learned_from_afterwards(day: Day) -> None:
    rate_frogs_and_stones(day)
    given: list[list[str]] = []

    def interrupted(texts: list[str]) -> NDArray[np.float32]:
        """A rating arrives while the model embeds the interests, in the middle of the work."""
        if not given and "walks in nature" in texts:
            given.append(texts)
            rate(
                day.warehouse,
                "ann",
                "2603.00110",
                "no",
                given_in="page",
                now=NOW + timedelta(days=1),
                profiles_dir=day.settings.profiles_dir,
            )
        return day.embedder.encode(texts)

    own = day.embedder
    model = SimpleNamespace(name=own.name, dimension=own.dimension, encode=interrupted)
    workspace = replace(open_workspace(day.settings, {}, clock=lambda: NOW), load_embedder=lambda: model)  # type: ignore[arg-type,return-value]
    made = STEP.make(workspace, [ANN], STEP.makes)
    assert given and not made.failures
    before = day.ranked()
    assert stale(STEP.tracked, workspace, [ANN]) == [ANN], "what came in between is known to be missing"
    learn(day)
    kept = stored_model(day.warehouse, "ann")
    assert kept and len(kept.rated) == 21
    assert day.ranked().rows != before.rows


def test_an_imported_library_is_liked_and_no_candidate(day: Day) -> None:
    day.ranked()
    liked = NewRating(paper_id="title:abc", rating="worth", title="Granite in the rain", abstract="Stones and basalt.")
    append_ratings(
        day.warehouse, "ann", [liked, NewRating(paper_id="2603.00200", rating="worth")], given_in="import", now=NOW
    )
    assert day.stale
    after = day.ranked()
    assert "2603.00200" not in after.rows.column("paper_id").to_pylist()
    assert "library" in after.header["views"]
    assert not day.stale
