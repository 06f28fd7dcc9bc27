from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.profile import Interests, RankingOptions
from paper_assets.ranking.interest_modes import Relevance, Sought, relevance_of, what_is_sought, with_every_lane
from paper_assets.settings import Scoring
from tests.ranking import plain_twin
from tests.ranking.invented import profile, unit_vectors

SCORING = Scoring()
WISHES = {
    "primary": ["graph learning"],
    "secondary": ["pruning"],
    "exploratory": ["robots"],
    "papers": [{"title": f"Liked {number}", "abstract": "An abstract."} for number in range(4)],
}


def sought(mode: str = "hybrid", wishes: dict[str, Any] | None = None, **given: Any) -> Sought:
    interests = profile(interests=wishes or WISHES).content.interests
    options = RankingOptions.model_validate({"interest_mode": mode, **given.pop("options", {})})
    return what_is_sought(interests, options=options, scoring=SCORING, **given)


def judged(wanted: Sought, cosines: list[list[float]], words: list[list[str]] | None = None) -> Relevance:
    """Relevance of papers whose cosines (papers, texts) to the texts are given."""
    rows = np.array(cosines, dtype=np.float32)
    rest = np.sqrt(np.maximum(0, 1 - (rows**2).sum(axis=1, keepdims=True)))
    return relevance_of(
        wanted,
        vectors=np.hstack([rows, rest]).astype(np.float32),
        asked=np.eye(rows.shape[1] + 1, dtype=np.float32)[:-1],
        words=words or [[]] * len(rows),
        scoring=SCORING,
    )


def test_seed_is_one_text_lanes_one_for_each_interest_and_library_one_for_each_paper() -> None:
    assert len(sought("seed").texts) == 1
    assert sought("lanes").texts == ["graph learning", "pruning", "robots"]
    assert sought("library").texts[0] == "Liked 0\n\nAn abstract."
    assert [view.mode for view in sought("hybrid").views] == ["seed", "lanes", "library"]
    assert [view.mode for view in sought("hybrid", options={"hybrid_of": ["library"]}).views] == ["library"]


def test_the_best_lane_counts_by_its_weight_and_is_named() -> None:
    relevance = judged(sought("lanes"), [[0.5, 0.6, 0.0], [0.1, 0.6, 0.7], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    assert relevance.values == pytest.approx([0.5, 0.42, 0.2, 0.0])
    assert relevance.best.tolist() == [0, 1, 2, -1]
    assert relevance.names == ("graph learning", "pruning", "robots")


def test_a_paper_serves_a_lane_from_the_threshold_on_whatever_the_lanes_weight() -> None:
    relevance = judged(sought("lanes"), [[0.39, 0.41, 0.5]])
    assert relevance.serves == pytest.approx(np.array([[0.0, 0.41, 0.5]]))


def test_an_interest_that_stands_on_two_levels_counts_by_the_higher() -> None:
    (lanes,) = sought("lanes", {"secondary": ["robots"], "exploratory": ["robots", "kites"]}).views
    assert dict(zip(lanes.texts, lanes.weights, strict=True)) == {"robots": 0.7, "kites": 0.4}


def test_library_is_the_mean_of_the_three_nearest_liked_papers() -> None:
    relevance = judged(sought("library"), [[0.2, 0.6, 0.4, 0.5]])
    assert relevance.values == pytest.approx([0.5])
    assert relevance.names[relevance.best[0]] == "Liked 1"
    two = sought("library", {"papers": WISHES["papers"][:2]})
    assert judged(two, [[0.2, 0.6]]).values == pytest.approx([0.4])


def test_hybrid_is_the_mean_of_words_and_example_each_a_mixture_of_meaning_and_words() -> None:
    wanted = sought("hybrid", {"primary": ["graph learning"], "papers": [{"title": "Robots", "abstract": ""}]})
    relevance = judged(wanted, [[0.5, 0.3, 0.2], [0.0, 0.0, 0.0]], [["graph", "robot"], ["learning"]])
    # Every word stands in one paper of two, so all have the same idf, and `graph` is half of the interest.
    seed, lane, liked = (0.6 * cosine + 0.4 * word for cosine, word in ((0.5, 0.5), (0.3, 0.5), (0.2, 1.0)))
    fused = ((seed + lane) / 2 + liked) / 2
    assert fused < 0.68
    assert relevance.values[0] == pytest.approx(0.4 + (fused - 0.3) * 0.3 / 0.38)


def test_an_interest_without_a_word_to_look_for_is_judged_by_its_meaning() -> None:
    wanted = sought("hybrid", {"primary": ["C++"]}, options={"hybrid_of": ["lanes"]})
    assert judged(wanted, [[0.3]], [["graph"]]).values == pytest.approx([0.4])


@pytest.mark.parametrize("mode", ["seed", "lanes", "library", "hybrid"])
@given(seed=st.integers(0, 2**32 - 1), lift=st.floats(0, 1), data=st.data())
def test_a_paper_that_is_nearer_to_what_is_sought_is_not_less_relevant(
    mode: str, seed: int, lift: float, data: st.DataObject
) -> None:
    wanted = sought(mode)
    count = len(wanted.texts)
    cosines = np.abs(unit_vectors(2, seed=seed, dimension=count + 1))[:, :count] * 0.99
    cosines[1] = cosines[0]
    at = data.draw(st.integers(0, count - 1))
    cosines[1, at] += lift * (np.sqrt(max(0.0, 1 - (cosines[1] ** 2).sum() + cosines[1, at] ** 2)) - cosines[1, at])
    said = data.draw(st.lists(st.sampled_from(["graph", "robots", "liked", "abstract"]), max_size=3))
    first, second = judged(wanted, cosines.tolist(), [said, [*said, "pruning"]]).values
    assert 0 <= first <= second + 1e-6
    assert second <= 1


def test_an_unknown_liked_paper_is_warned_of_and_has_no_say() -> None:
    wishes = {"papers": ["2501.00001v2", "2501.00002"]}
    wanted = sought("library", wishes, known={"2501.00001": ("Known", "Text.")})
    assert wanted.texts == ["Known\n\nText."]
    assert len(wanted.warnings) == 1
    assert "2501.00002 not known" in wanted.warnings[0]


def test_a_liked_papers_text_helps_out_while_its_id_is_unknown() -> None:
    wishes = {"papers": [{"paper_id": "2501.00001", "title": "Mine", "abstract": "Told."}]}
    assert sought("library", wishes).texts == ["Mine\n\nTold."]
    assert sought("library", wishes, known={"2501.00001": ("Known", "Text.")}).texts == ["Known\n\nText."]
    assert sought("library", wishes).warnings == ()


@pytest.mark.parametrize(
    ("mode", "wishes", "instead"),
    [
        ("library", {"primary": ["robots"]}, "seed"),
        ("library", {"primary": ["robots"], "papers": ["2501.00001"]}, "seed"),
        ("seed", {"papers": WISHES["papers"]}, "library"),
        ("lanes", {"papers": WISHES["papers"]}, "library"),
    ],
)
def test_a_mode_that_the_profile_cannot_serve_gives_way_with_a_warning(
    mode: str, wishes: dict[str, Any], instead: str
) -> None:
    wanted = sought(mode, wishes)
    assert [view.mode for view in wanted.views] == [instead]
    assert f"interest_mode {mode} needs" in wanted.warnings[-1]
    assert f"{instead} took its place" in wanted.warnings[-1]


def test_hybrid_takes_what_the_profile_has_without_a_warning() -> None:
    words, papers = sought("hybrid", {"primary": ["robots"]}), sought("hybrid", {"papers": WISHES["papers"]})
    assert [view.mode for view in words.views] == ["seed", "lanes"]
    assert [view.mode for view in papers.views] == ["library"]
    assert words.warnings == papers.warnings == ()


def test_a_profile_of_nothing_but_unknown_papers_finds_nothing_relevant() -> None:
    wanted = sought("hybrid", {"papers": ["2501.00001"]})
    nothing = relevance_of(
        wanted,
        vectors=unit_vectors(2, seed=1),
        asked=np.zeros((0, 24), dtype=np.float32),
        words=[[], []],
        scoring=SCORING,
    )
    assert nothing.values.tolist() == [0.0, 0.0]
    assert "2501.00001" in wanted.warnings[0]


def test_without_a_model_the_titles_of_liked_papers_stand_in_for_words() -> None:
    assert sought("hybrid").in_words == profile(interests=WISHES).content.interests
    assert sought("library", {"papers": WISHES["papers"][:1]}).in_words == Interests(primary=["Liked 0"])


def test_the_best_paper_of_an_unseen_lane_takes_the_lowest_place_that_can_be_spared() -> None:
    serves = np.array([[0.9, 0], [0.8, 0], [0.7, 0], [0, 0.6], [0, 0.7], [0, 0]])
    order, entered = with_every_lane(np.arange(6), serves, places=3)
    assert order.tolist() == [0, 1, 4, 2, 3, 5]
    assert entered == {4: 1}


def test_the_only_paper_of_a_lane_keeps_its_place() -> None:
    serves = np.array([[0.9, 0, 0], [0.8, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])
    order, entered = with_every_lane(np.arange(4), serves, places=3)
    assert order.tolist() == [0, 2, 3, 1]
    assert entered == {3: 2}


def test_a_list_in_which_every_lane_is_seen_stays_as_it_is() -> None:
    serves = np.array([[0.9, 0.4], [0.5, 0], [0, 0.6]])
    order, entered = with_every_lane(np.arange(3), serves, places=2)
    assert (order.tolist(), entered) == ([0, 1, 2], {})


def test_with_fewer_places_than_lanes_a_lane_that_is_seen_stays_and_then_the_first_one_comes() -> None:
    order, entered = with_every_lane(np.array([3, 2, 1, 0]), np.vstack([np.eye(3), np.zeros(3)]), places=2)
    assert (order.tolist(), entered) == ([2, 0, 3, 1], {0: 0})


levels = st.sampled_from([0.0, 0.0, 0.4, 0.5, 0.6, 0.7])


@given(data=st.data(), papers=st.integers(0, 8), lanes=st.integers(0, 4), places=st.integers(0, 9))
def test_no_lane_with_a_relevant_paper_goes_unseen(data: st.DataObject, papers: int, lanes: int, places: int) -> None:
    rows = data.draw(st.lists(st.lists(levels, min_size=lanes, max_size=lanes), min_size=papers, max_size=papers))
    serves = np.array(rows).reshape(papers, lanes)
    order = np.array(data.draw(st.permutations(range(papers))), dtype=np.int64)
    after, entered = with_every_lane(order, serves, places=places)
    assert after.tolist() == plain_twin.with_every_lane(order.tolist(), serves.tolist(), places)
    inside, outside = after[:places], after[places:]
    assert sorted(after.tolist()) == list(range(papers))
    place = {row: at for at, row in enumerate(order.tolist())}
    for part in (inside, outside):
        assert [place[row] for row in part] == sorted(place[row] for row in part)
    assert set(entered) == set(inside.tolist()) - set(order[:places].tolist())
    if places >= lanes:
        assert (serves[inside] > 0).any(axis=0).tolist() == (serves > 0).any(axis=0).tolist()
