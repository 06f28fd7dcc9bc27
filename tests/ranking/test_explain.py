import re
from datetime import UTC, datetime
from typing import Any

import pytest

from paper_assets.paper import papers_to_table
from paper_assets.ranking.explain import as_sum, reason, recompute, what_was_missing, why, why_removed
from paper_assets.ranking.rank import Ranking, RankingTask, rank
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DEFAULT_WEIGHTS, DIMENSIONS
from tests.ranking.invented import AS_OF, paper, profile


@pytest.fixture
def ranking() -> Ranking:
    papers = [
        paper("1", title="Graph learning", github_url="https://github.com/a/b"),
        paper("2", title="Graph learning: a survey"),
        paper("3", title="Graphs", published=datetime(2019, 1, 1, tzinfo=UTC), authors=("B C",)),
    ]
    asked = profile(
        keywords={"exclude": {"soft": ["survey"]}},
        preferred_authors=["Ana Müller"],
        ranking={"ranking_mode": "novelty", "top_k": 1, "interest_mode": "seed"},
    )
    options = asked.content.ranking
    return rank(
        RankingTask(
            candidates=papers_to_table(papers), profile=asked, options=options, as_of=AS_OF, scoring=ScoringConfig()
        )
    )


def explanation(ranking: Ranking, place: int) -> str:
    rows = ranking.rows.to_pylist()
    missing = what_was_missing(rows[place]["paper_id"], rows, ranking.header)
    return "\n".join(why(rows[place], ranking.header, scored=len(rows), missing=missing))


def test_a_changed_number_does_not_recompute(ranking: Ranking) -> None:
    rows = ranking.rows
    for name in ("recency", "bonus", "soft_penalty", "diversity_penalty"):
        changed = rows.set_column(
            rows.schema.get_field_index(name), name, [[value + 0.01 for value in rows[name].to_pylist()]]
        )
        assert (recompute(changed, ranking.header["weights"], ScoringConfig()) != rows["final"].to_numpy()).all()


def test_the_list_names_what_each_part_brought(ranking: Ranking) -> None:
    text = explanation(ranking, 0)
    assert text.splitlines()[0] == "Place 1 of 3."
    assert "by an author you follow; code." in text.lower()
    assert "The score is 1.025 = 0.300 relevance to your interests" in text
    assert "+0.150 authors you follow" in text
    assert "+0.100 ranking mode and purpose" in text
    assert "institutions you follow" not in text  # every paper has these points
    assert "Not among" not in text


def test_a_paper_outside_the_list_is_explained_by_what_it_lacks(ranking: Ranking) -> None:
    text = explanation(ranking, 1)
    assert "avoided keyword: survey" in text.lower()
    assert "-0.150 keywords you avoid" in text
    assert "Not among the first 1: 0.225 short of the last of them." in text
    text = explanation(ranking, 2)
    assert "Not among the first 1: " in text


def test_a_tie_is_explained_as_a_tie(ranking: Ranking) -> None:
    rows = ranking.rows.to_pylist()
    rows[1] = {**rows[1], "final": rows[0]["final"]}
    assert "has the same score" in (what_was_missing(rows[1]["paper_id"], rows, ranking.header) or "")


def with_levels(*probabilities: float, top_k: int = 2, **places: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of these probabilities in the order of the list, every other part the same, and their header."""
    weights = ScoringConfig().weights["general"]
    header = {
        "weights": dict(zip(DIMENSIONS, weights, strict=True)),
        "threshold": 0.05,
        "preference_weight": 10.0,
        "preference_baseline": 0.0,
        "interest_places": places,
    }
    rows = [
        {
            **dict.fromkeys(DIMENSIONS, 0.0),
            "semantic_relevance": probability,
            "rank": rank,
            "shown": rank <= top_k,
            "paper_id": f"{rank}",
            "final": weights[0] * probability,
            "tags": [],
        }
        for rank, probability in enumerate(probabilities, 1)
    ]
    return rows, header


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (1, None),
        (2, None),
        (
            3,
            "it is very likely, and all 2 places went to better matches. It is number 1 of the likely papers after it.",
        ),
        (4, "it is likely, and all 2 places went to better matches. It is number 2 of the likely papers after it."),
        (5, "it is possible, and all 2 places went to better matches."),
        (6, "it is unlikely to be about your interests."),
    ],
)
def test_a_paper_outside_the_list_is_told_why_by_its_level(place: int, words: str | None) -> None:
    rows, header = with_levels(0.95, 0.92, 0.9, 0.6, 0.2, 0.01)
    missing = what_was_missing(f"{place}", rows, header)
    assert missing == (words and f"Not in the list: {words}")


def test_a_paper_that_gave_way_to_an_interest_is_explained_by_that() -> None:
    rows, header = with_levels(0.95, 0.9, 0.92, **{"2": "state-space models"})
    missing = what_was_missing("3", rows, header) or ""
    assert "a place went to a paper that is about as likely, for your interest in state-space models." in missing


ROW = {
    **dict.fromkeys(DIMENSIONS, 0.5), "rank": 4, "shown": True, "paper_id": "1", "final": 0.5, "bonus": 0.0,
    "soft_penalty": 0.0, "penalty_keywords": [], "diversity_penalty": 0.0, "evaluation_method": "embedding", "tags": [],
    "nearest": "graph learning", "below_threshold": False, "meaning": 0.61, "words": 0.48, "library": None,
    "interest_probability": 0.4,
}  # fmt: skip
SHARES = {"semantic_relevance": 0.5, "recency": 0.25, "practicality": 0.25}
HEADER = {"weights": {**dict.fromkeys(DIMENSIONS, 0.0), **SHARES}, "interest_places": {}, "threshold": 0.4, "top_k": 3}


def why_of(**changes: object) -> list[str]:
    return why({**ROW, **changes}, HEADER, scored=9)


def test_the_parts_of_a_probability_are_named() -> None:
    nearest = (
        "Nearest is your interest in graph learning: 0.61 by meaning and 0.48 by words, which alone would make 40 %."
    )
    assert nearest in why_of()
    compared = why(ROW, HEADER | {"best_matches": 5}, scored=9)
    assert any("by words, and similarity to the 5 papers that match it best, which alone" in line for line in compared)
    assert nearest.replace(" and 0.48 by words", "") in why_of(words=None)
    assert "The papers you like alone would make 70 %." in why_of(library=0.7)
    liked = why_of(nearest="On graphs", interest_probability=None, library=0.7)
    assert "It is near the papers you like: 0.61 by meaning and 0.48 by words, most of all to On graphs." in liked
    assert not any(
        "by words" in line for line in why_of(meaning=None, words=None, nearest=None, interest_probability=None)
    )


def test_the_match_is_explained_by_numbers_that_add_up_and_only_on_request() -> None:
    header = {**HEADER, "preference_weight": 4.0, "preference_baseline": 0.25}
    row = {**ROW, "semantic_relevance": 0.3, "final": 0.4}
    (line,) = (line for line in why(row, header, scored=9) if line.startswith("The match is "))
    match, *parts = map(float, re.findall(r"[+-]?\d+\.\d\d", line))
    assert match == pytest.approx(sum(parts), abs=0.02) and parts[0] < 0
    assert "for 30 % on topic" in line and "+0.50 for code and PDF at hand" in line
    assert why(row, header, scored=9, numbers=False) == ["Place 4 of 9.", "Near to graph learning."]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("BLACKLIST_KEYWORD:drug: discovery", "Not ranked: it contains your excluded keyword drug: discovery."),
        ("TOO_OLD:2019", "Not ranked: it is older than the earliest year you want; it is from 2019."),
        ("ALREADY_READ", "Not ranked: you have already read it."),
        ("SOMETHING_NEW", "Not ranked: SOMETHING_NEW."),
    ],
)
def test_a_removed_paper_is_explained_by_its_filter(reason: str, words: str) -> None:
    assert why_removed(reason) == words


def test_a_score_as_a_sum_adds_up_and_names_only_what_counted() -> None:
    parts = dict.fromkeys(DIMENSIONS, 0.0) | {"semantic_relevance": 0.5, "recency": 1.0}
    weights = dict(zip(DIMENSIONS, DEFAULT_WEIGHTS["general"], strict=True))
    row = {**parts, "bonus": 0.0, "soft_penalty": -0.15, "diversity_penalty": 0.0, "final": 0.2}
    line = as_sum(row, weights)
    assert line == "0.200 = 0.200 how recent it is +0.150 relevance to your interests -0.150 keywords you avoid"


@pytest.mark.parametrize(
    ("nearest", "texts", "tags", "sentence"),
    [
        (
            "image segmentation",
            ("Image segmentation", "On it."),
            ["CODE_AVAILABLE"],
            "image segmentation in title; code.",
        ),
        (
            "image segmentation",
            ("Image segmentation", "Image segmentation."),
            [],
            "image segmentation in title and abstract.",
        ),
        ("few labels", ("Labels", "Rare."), ["VERY_RECENT", "NO_CODE"], "labels in title; few not found."),
        ("few labels", ("Stones", "Rare."), [], "near to few labels in meaning."),
        ("visual SLAM and odometry", ("Visual SLAM", "Rare."), [], "Visual SLAM in title; odometry not found."),
        (
            "visual SLAM and odometry",
            ("A SLAM", "Odometry."),
            [],
            "SLAM in title; odometry in abstract; visual not found.",
        ),
        ("sparse autoencoders", ("SAEs of stones", ""), [], "SAEs in title."),
        (
            "LLM agents",
            ("Agents from large language models", ""),
            [],
            "large language models, agents in title.",
        ),
        (
            "SLAM odometry",
            ("Simultaneous localization and mapping", "Odometry."),
            [],
            "simultaneous localization, mapping in title; odometry in abstract.",
        ),
        ("atmospheres of planets", ("Atmospheric", ""), [], "atmospheric in title; planets not found."),
        (
            "large language model reasoning",
            ("Reasoning in large language models", ""),
            [],
            "large language model, reasoning in title.",
        ),
        (
            "evaluation of dialogue assistants",
            ("Dialogue", ""),
            [],
            "dialogue in title; evaluation, assistants not found.",
        ),
        (None, ("Stones", ""), ["PREFERRED_AUTHOR"], "by an author you follow."),
    ],
)
def test_a_reason_is_one_sentence_that_claims_only_what_is_there(
    nearest: str | None, texts: tuple[str, str], tags: list[str], sentence: str
) -> None:
    assert reason({**ROW, "nearest": nearest, "tags": tags}, HEADER, texts) == sentence
