from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.profile import Interests, RankingOptions
from paper_assets.ranking.calibration import ModelVectors, standard_calibration
from paper_assets.ranking.relevance import (
    InterestQueries,
    Relevance,
    interest_queries,
    relevance_of,
)
from paper_assets.ranking.term_matching import PaperWords, paper_words
from paper_assets.settings import ScoringConfig
from tests.ranking.invented import profile, unit_vectors

SCORING = ScoringConfig()
WISHES = {
    "primary": ["graph learning"],
    "secondary": ["pruning"],
    "exploratory": ["robots"],
    "papers": [{"title": f"Liked {number}", "abstract": "An abstract."} for number in range(4)],
}


def queries(mode: str = "hybrid", wishes: dict[str, Any] | None = None, **given: Any) -> InterestQueries:
    interests = profile(interests=wishes or WISHES).content.interests
    options = RankingOptions.model_validate({"interest_mode": mode, **given.pop("options", {})})
    return interest_queries(interests, options=options, scoring=SCORING, **given)


def judged(
    wanted: InterestQueries,
    cosines: list[list[float]],
    words: list[list[str]] | None = None,
    *,
    others: np.ndarray | None = None,
) -> Relevance:
    """Relevance of papers whose cosines (papers, texts) to the texts are given.

    What else they are about is the same for all, or one of the unit vectors `others` (papers, d) each.
    """
    rows = np.array(cosines, dtype=np.float32)
    rest = np.sqrt(np.maximum(0, 1 - (rows**2).sum(axis=1, keepdims=True)))
    others = np.ones((len(rows), 1)) if others is None else others
    return relevance_of(
        wanted,
        vectors=np.hstack([rows, rest * others]).astype(np.float32),
        query_vectors=np.eye(rows.shape[1] + others.shape[1], dtype=np.float32)[: rows.shape[1]],
        words=of_abstracts([" ".join(each) for each in words or [[]] * len(rows)]),
    )


def of_abstracts(texts: list[str]) -> PaperWords:
    return paper_words(pa.table({"title": [""] * len(texts), "abstract": texts}))


def test_seed_is_one_text_lanes_one_for_each_interest_and_library_one_for_each_paper() -> None:
    assert len(queries("seed").texts) == 1
    assert queries("lanes").texts == ["graph learning", "pruning", "robots"]
    assert queries("library").texts[0] == "Liked 0\n\nAn abstract."
    assert [view.mode for view in queries("hybrid").views] == ["lanes", "library"]


def test_the_best_interest_is_named_and_every_interest_counts_by_its_weight() -> None:
    relevance = judged(queries("lanes"), [[0.5, 0.6, 0.0], [0.1, 0.6, 0.7], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    assert relevance.best.tolist() == [1, 2, 2, -1]
    assert relevance.names == ("graph learning", "pruning", "robots")
    assert relevance.meaning == pytest.approx([0.6, 0.7, 0.5, 0.0])
    assert relevance.values[0] > relevance.interest_probability[0] > 0.0  # others may want it too
    first, second, third = (judged(queries("lanes"), [list(row)]).values[0] for row in np.eye(3) * 0.5)
    assert first > second > third


def test_an_interest_on_two_levels_counts_by_the_higher() -> None:
    (lanes,) = queries("lanes", {"secondary": ["robots"], "exploratory": ["robots", "kites"]}).views
    assert dict(zip(lanes.texts, lanes.weights, strict=True)) == {"robots": 0.7, "kites": 0.4}


def test_library_knows_the_nearest_liked_paper_and_profits_from_others() -> None:
    relevance = judged(queries("library"), [[0.2, 0.6, 0.4, 0.5], [0.2, 0.6, 0.5, 0.5]])
    assert relevance.names[relevance.best[0]] == "Liked 1"
    assert relevance.values[0] < relevance.values[1]
    assert np.array_equal(relevance.values, relevance.library)


def test_liked_papers_change_the_relevance_by_words() -> None:
    wishes = {"primary": ["graph learning"], "papers": [{"title": "Robots", "abstract": ""}]}
    texts = [["robot"], ["graph"]]
    both = judged(queries("hybrid", wishes), [[0.4, 0.4, 0.7], [0.4, 0.0, 0.0]], texts)
    words = judged(queries("hybrid", {"primary": ["graph learning"]}), [[0.4, 0.4, 0.7], [0.4, 0.0, 0.0]], texts)
    assert both.values[0] > words.values[0]
    assert both.values[1] < words.values[1]
    assert both.interest_probability == pytest.approx(words.interest_probability)


def test_interests_are_compared_by_their_adapted_vector_and_liked_papers_by_their_own() -> None:
    wishes = {"primary": ["graph learning"], "papers": [{"title": "Robots", "abstract": ""}]}
    swapped = ModelVectors(adapter=np.eye(3)[[1, 0, 2]], mean=np.zeros(3))
    seen = {}
    for name, vectors in (("as they are", None), ("swapped", swapped)):
        calibration = replace(standard_calibration(), vectors=vectors)
        for mode in ("lanes", "library", "seed"):
            found = relevance_of(
                queries(mode, wishes),
                vectors=np.array([[0.8, 0.0, 0.6], [0.0, 0.8, 0.6]], dtype=np.float32),
                query_vectors=np.eye(3, dtype=np.float32)[:1],
                words=of_abstracts(["", ""]),
                calibration=calibration,
            )
            seen[name, mode] = found.values.argmax()
    assert [seen["as they are", mode] for mode in ("lanes", "library", "seed")] == [0, 0, 0]
    assert [seen["swapped", mode] for mode in ("lanes", "library", "seed")] == [1, 0, 0]


def test_an_interest_without_searchable_words_is_judged_by_its_meaning() -> None:
    cpp, graphs = (queries("hybrid", {"primary": [text]}) for text in ("C++", "graph"))
    assert judged(cpp, [[0.6]], [["learning"]]).values[0] > judged(graphs, [[0.6]], [["learning"]]).values[0]
    assert np.isnan(judged(cpp, [[0.6]], [["learning"]]).words).all()


def test_the_mode_seed_is_the_cosine_and_has_no_floor() -> None:
    wanted = queries("seed")
    assert judged(wanted, [[0.5], [0.25]]).values == pytest.approx([0.5, 0.25])
    assert (wanted.floor, queries("hybrid").floor, queries("hybrid", options={"threshold": 0.4}).floor) == (
        None,
        SCORING.floor,
        0.4,
    )


@pytest.mark.parametrize("mode", ["seed", "lanes", "library", "hybrid"])
@given(seed=st.integers(0, 2**32 - 1), lift=st.floats(0, 1), data=st.data())
def test_a_paper_that_is_nearer_to_its_query_is_not_less_relevant(
    mode: str, seed: int, lift: float, data: st.DataObject
) -> None:
    wanted = queries(mode)
    count = len(wanted.texts)
    cosines = np.abs(unit_vectors(2, seed=seed, dimension=count + 1))[:, :count] * 0.99
    cosines[1] = cosines[0]
    at = data.draw(st.integers(0, count - 1))
    cosines[1, at] += lift * (np.sqrt(max(0.0, 1 - (cosines[1] ** 2).sum() + cosines[1, at] ** 2)) - cosines[1, at])
    texts = data.draw(st.lists(st.sampled_from(["graph", "robots", "liked", "abstract"]), max_size=3))
    # Own words added do not lower likeness to interests; they may lower likeness to papers.
    more = [] if wanted.views[-1].mode == "library" else ["pruning"]
    first, second = judged(wanted, cosines.tolist(), [texts, [*texts, *more]]).values
    assert 0 <= first <= second + 1e-6
    assert second <= 1


@pytest.mark.parametrize("count", [0, 1, 20])
def test_any_number_of_interests_and_liked_papers_will_do(count: int) -> None:
    wishes = {
        "primary": ["graph learning", *(f"topic{number} graphs" for number in range(count))],
        "papers": [{"title": f"On topic{number}", "abstract": "Graphs."} for number in range(count)],
    }
    wanted = queries("hybrid", wishes)
    cosines = (np.abs(unit_vectors(3, seed=count, dimension=len(wanted.texts) + 1))[:, :-1] * 0.9).tolist()
    relevance = judged(wanted, cosines, [["graph"], [], ["topic3"]])
    assert ((relevance.values > 0) & (relevance.values < 1)).all()
    assert (relevance.library is None) == (count == 0)


def test_without_a_model_words_judge_and_the_line_holds() -> None:
    papers = of_abstracts(["graph learning by pruning", "liked abstract 1", "other things"])
    for wishes in ({"primary": ["graph learning"]}, {"papers": WISHES["papers"]}):
        wanted = queries("hybrid", wishes)
        found = relevance_of(wanted, vectors=None, query_vectors=None, words=papers)
        assert found.meaning is None
        assert found.values.argmax() == (0 if "primary" in wishes else 1)
        assert found.values[2] < 0.05


def test_a_handful_of_papers_is_judged_as_a_week_is() -> None:
    chance, background = np.random.default_rng(4), standard_calibration().background
    asked = {word: background.words[word] / background.papers for word in ("graph", "sparse", "learning")}
    holds = chance.random((1000, len(asked))) < list(asked.values())  # as often as in a week of arXiv
    near = chance.normal(0.14, 0.085, size=(1000, 1))
    near[:20], holds[:20] = 0.62, True
    texts = [[word for word, held in zip(asked, row, strict=True) if held] for row in holds]
    wanted = queries("hybrid", {"primary": ["learning sparse graphs"]})
    others = unit_vectors(1000, seed=4, dimension=30) + 0.14  # as near to each other as papers of arXiv are
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    week = judged(wanted, np.clip(near, 0, 0.7).tolist(), texts, others=others)
    few = [*range(4), *range(20, 1000, 60)]  # four on topic and seventeen others
    alone = judged(wanted, np.clip(near[few], 0, 0.7).tolist(), [texts[row] for row in few], others=others[few])
    assert week.values[few[3]] > 0.35
    assert ((alone.values > 0.35) == (week.values[few] > 0.35)).all()
    assert np.abs(alone.values - week.values[few]).mean() < 0.1


def test_an_unknown_liked_paper_causes_a_warning_and_has_no_effect() -> None:
    wishes = {"papers": ["2501.00001v2", "2501.00002"]}
    wanted = queries("library", wishes, known={"2501.00001": ("Known", "Text.")})
    assert wanted.texts == ["Known\n\nText."]
    assert len(wanted.warnings) == 1
    assert "do not count: 2501.00002;" in wanted.warnings[0]


def test_a_liked_papers_text_helps_out_while_its_id_is_unknown() -> None:
    wishes = {"papers": [{"paper_id": "2501.00001", "title": "Mine", "abstract": "Told."}]}
    assert queries("library", wishes).texts == ["Mine\n\nTold."]
    assert queries("library", wishes, known={"2501.00001": ("Known", "Text.")}).texts == ["Known\n\nText."]
    assert queries("library", wishes).warnings == ()


@pytest.mark.parametrize(
    ("mode", "wishes", "instead"),
    [
        ("library", {"primary": ["robots"]}, "lanes"),
        ("library", {"primary": ["robots"], "papers": ["2501.00001"]}, "lanes"),
        ("seed", {"papers": WISHES["papers"]}, "library"),
        ("lanes", {"papers": WISHES["papers"]}, "library"),
    ],
)
def test_a_mode_that_the_profile_cannot_serve_is_replaced_with_a_warning(
    mode: str, wishes: dict[str, Any], instead: str
) -> None:
    wanted = queries(mode, wishes)
    assert [view.mode for view in wanted.views] == [instead]
    assert f"interest_mode {mode} needs" in wanted.warnings[-1]
    assert f"{instead} took its place" in wanted.warnings[-1]


def test_hybrid_takes_what_the_profile_has_without_a_warning() -> None:
    words, papers = queries("hybrid", {"primary": ["robots"]}), queries("hybrid", {"papers": WISHES["papers"]})
    assert [view.mode for view in words.views] == ["lanes"]
    assert [view.mode for view in papers.views] == ["library"]
    assert words.warnings == papers.warnings == ()


def test_a_profile_of_nothing_but_unknown_papers_finds_nothing_relevant() -> None:
    wanted = queries("hybrid", {"papers": ["2501.00001"]})
    nothing = relevance_of(
        wanted,
        vectors=unit_vectors(2, seed=1),
        query_vectors=np.zeros((0, 24), dtype=np.float32),
        words=of_abstracts(["", ""]),
    )
    assert nothing.values.tolist() == [0.0, 0.0]
    assert "2501.00001" in wanted.warnings[0]


def test_without_a_model_the_titles_of_liked_papers_are_used_as_interests() -> None:
    assert queries("hybrid").in_words == profile(interests=WISHES).content.interests
    assert queries("library", {"papers": WISHES["papers"][:1]}).in_words == Interests(primary=["Liked 0"])
