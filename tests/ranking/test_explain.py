from datetime import UTC, datetime

import pytest

from paper_assets.paper import papers_to_table
from paper_assets.ranking.explain import as_sum, recompute, why, why_removed
from paper_assets.ranking.rank import Ranking, rank
from paper_assets.settings import DIMENSIONS, Scoring
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
        ranking={"ranking_mode": "novelty", "top_k": 1},
    )
    options = asked.content.ranking
    return rank(papers_to_table(papers), asked, options=options, as_of=AS_OF, scoring=Scoring())


def told(ranking: Ranking, place: int) -> str:
    rows = ranking.rows.to_pylist()
    return "\n".join(why(rows[place], ranking.header, scored=len(rows), cutoff=rows[0]["final"]))


def test_a_changed_number_does_not_recompute(ranking: Ranking) -> None:
    rows = ranking.rows
    for name in ("recency", "bonus", "soft_penalty", "diversity_penalty"):
        changed = rows.set_column(
            rows.schema.get_field_index(name), name, [[value + 0.01 for value in rows[name].to_pylist()]]
        )
        assert (recompute(changed, ranking.header["weights"], Scoring()) != rows["final"].to_numpy()).all()


def test_the_list_names_what_each_part_brought(ranking: Ranking) -> None:
    text = told(ranking, 0)
    assert "Place 1 of 3 with a score of 1.025." in text
    assert "Relevance to your interests: 0.300 (1.00 of 1, weight 0.30, judged by keywords only" in text
    assert "Authors you follow: 0.150 (1.00 of 1, weight 0.15)." in text
    assert (
        "Institutions you follow: 0.100 (1.00 of 1, weight 0.10, as every paper has: the profile names none)." in text
    )
    assert "The mode novelty adds 0.100." in text
    assert "by an author you follow, code is published, very recent" in text
    assert "Not among" not in text


def test_a_paper_outside_the_list_is_told_what_it_lacks(ranking: Ranking) -> None:
    text = told(ranking, 1)
    assert "Keywords you avoid (survey) take 0.15." in text
    assert "Not among the first 1: 0.225 short of the last of them; no single mark would do." in text
    text = told(ranking, 2)
    assert "Not among the first 1: " in text


def test_one_mark_that_would_do_is_named(ranking: Ranking) -> None:
    row = {**ranking.rows.to_pylist()[1], "final": 0.9}
    text = "\n".join(why(row, ranking.header, scored=3, cutoff=1.0))
    assert "0.100 short of the last of them; the best mark in one of these would do: " in text
    assert text.endswith("code and PDF at hand; none of the keywords you avoid.")


def test_a_tie_is_told_as_a_tie(ranking: Ranking) -> None:
    row = ranking.rows.to_pylist()[1]
    assert "has the same score" in why(row, ranking.header, scored=3, cutoff=row["final"])[-1]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("BLACKLIST_KEYWORD:drug: discovery", "Not ranked: it holds your excluded keyword drug: discovery."),
        ("TOO_OLD:2019", "Not ranked: it is older than the earliest year you want; it is from 2019."),
        ("ALREADY_READ", "Not ranked: you have already read it."),
        ("SOMETHING_NEW", "Not ranked: SOMETHING_NEW."),
    ],
)
def test_a_removed_paper_is_told_why(reason: str, words: str) -> None:
    assert why_removed(reason) == words


def test_a_score_as_a_sum_adds_up_and_names_only_what_counted() -> None:
    parts = dict.fromkeys(DIMENSIONS, 0.0) | {"semantic_relevance": 0.5, "recency": 1.0}
    weights = dict(zip(DIMENSIONS, (0.3, 0.1, 0.15, 0.1, 0.2, 0.15), strict=True))
    row = {**parts, "bonus": 0.0, "soft_penalty": -0.15, "diversity_penalty": 0.0, "final": 0.2}
    told = as_sum(row, weights)
    assert told == "0.200 = 0.200 how recent it is +0.150 relevance to your interests -0.150 keywords you avoid"
