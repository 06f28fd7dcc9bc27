"""Test that fitted coefficients recover those that made the grades, and that no profile influences its own."""

import numpy as np
import pytest

from benchmarks.evaluation.fitting import Parts, fit, held_out_fits
from paper_assets.errors import InvalidInput
from paper_assets.ranking.calibration import standard_calibration


def parts(
    seed: int,
    *,
    intercept: float = -6.0,
    meaning: float = 8.0,
    words: float = 4.0,
    number: float = -1.0,
    interests: int = 2,
    papers: int = 3_000,
) -> Parts:
    """Papers of some interests whose grades come from known coefficients."""
    rng, levels = np.random.default_rng(seed), np.log(np.array([1.0, 0.7] * interests)[:interests])
    near, scores = rng.random((interests, papers)), rng.random((interests, papers)) ** 3
    logits = intercept + meaning * near + words * scores + number * np.log(interests) + levels[:, None]
    missed = np.prod(1 / (1 + np.exp(logits)), axis=0)
    relevant = rng.random(papers) > missed
    values = {
        "meaning": near,
        "words": scores,
        "share": rng.random(near.shape),
        "best": rng.random(near.shape),
        "number": np.full_like(near, np.log(interests)),
    }
    return Parts(values=values, levels=levels, relevant=relevant)


def liked_parts(seed: int, *, intercept: float = -6.0, words: float = 2.0, papers: int = 2_000) -> Parts:
    """Papers of a reader with liked papers only, whose grades come from known coefficients."""
    rng = np.random.default_rng(seed)
    near, scores, titles = rng.normal(size=(3, 1, papers))
    relevant = rng.random(papers) < 1 / (1 + np.exp(-(intercept + 3 * near + words * scores + titles)[0]))
    return Parts(values={"meaning": near, "words": scores, "titles": titles}, levels=np.zeros(1), relevant=relevant)


def test_a_fit_finds_the_coefficients_that_made_the_grades() -> None:
    found = fit([parts(seed, interests=seed % 4 + 1) for seed in range(8)], version="mine")
    assert found.version == "mine"
    assert found.interest.intercept == pytest.approx(-6.0, abs=0.4)
    assert found.interest.meaning == pytest.approx(8.0, abs=0.5)
    assert found.interest.words == pytest.approx(4.0, abs=0.4)
    assert found.interest.number == pytest.approx(-1.0, abs=0.2)
    for part in ("share", "best"):  # these grades do not depend on them
        assert getattr(found.interest_with_best, part) == pytest.approx(0.0, abs=0.3)
    assert found.interest_wordless.words == 0.0
    assert found.library == standard_calibration().library  # no judged list likes papers


def test_a_part_that_speaks_against_relevance_counts_nothing_rather_than_less() -> None:
    found = fit([parts(seed, words=-4.0) for seed in range(3)], version="mine")
    assert found.interest.words == 0.0


def test_more_interests_never_raise_the_probability_of_one() -> None:
    found = fit([parts(seed, number=1.0, interests=seed % 4 + 1) for seed in range(4)], version="mine")
    assert found.interest.number == 0.0


def test_a_profile_has_no_say_in_the_coefficients_that_judge_it() -> None:
    plain, odd = parts(1, papers=500), parts(2, meaning=2.0, papers=500)
    fits = held_out_fits({"a": plain, "b": parts(3, papers=500), "c": plain})
    others = held_out_fits({"a": odd, "b": parts(3, papers=500), "c": plain})
    assert fits["a"] == others["a"]
    assert fits["b"] != others["b"]
    assert fits["a"].version == "fitted without a"


def test_no_profile_of_a_set_has_a_say_in_the_coefficients_that_judge_the_set() -> None:
    first, second = ({"a": parts(1, meaning=by, papers=300), "b": parts(2, papers=300)} for by in (1.0, 2.0))
    other = {"c": parts(3, papers=300)}
    groups = {"a": "one", "b": "one", "c": "two"}
    assert (
        held_out_fits({**first, **other}, groups=groups)["b"] == held_out_fits({**second, **other}, groups=groups)["b"]
    )


def test_a_profile_without_parts_is_judged_by_all_the_others() -> None:
    fits = held_out_fits({"a": parts(1, papers=300), "b": parts(2, papers=300), "empty": None})
    assert set(fits) == {"a", "b", "empty"}


def test_liked_papers_are_fitted_to_profiles_that_only_name_them() -> None:
    enough = [liked_parts(seed) for seed in range(10)]
    found = fit(enough, version="mine")
    assert found.library.intercept == pytest.approx(-6.0, abs=0.4)
    assert found.library.meaning == pytest.approx(3.0, abs=0.3)
    assert found.library.words == pytest.approx(2.0, abs=0.3)
    assert found.library.titles == pytest.approx(1.0, abs=0.3)
    assert found.interest == standard_calibration().interest  # no profile names interests
    assert fit([parts(1), *enough], version="mine").library == found.library
    assert fit(enough[:9], version="mine").library == standard_calibration().library  # too few


def test_a_profile_of_liked_papers_has_no_say_in_the_coefficients_that_judge_it() -> None:
    others = {str(seed): liked_parts(seed, papers=300) for seed in range(11)}
    fits, changed = (held_out_fits({**others, "odd": liked_parts(99, papers=300, words=each)}) for each in (2.0, -2.0))
    assert fits["odd"] == changed["odd"]
    assert fits["0"].library != changed["0"].library


def test_one_profile_alone_or_nothing_relevant_cannot_be_fitted() -> None:
    with pytest.raises(InvalidInput, match="at least two profiles"):
        held_out_fits({"a": parts(1, papers=10), "liked": None})
    with pytest.raises(InvalidInput, match="relevant papers"):
        fit([parts(1, intercept=-99.0, papers=10)], version="mine")
