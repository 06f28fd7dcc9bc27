"""G18: a preference that no paper of the last 30 days matches is named."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from paper_assets.digests.content import DigestRows, digest_of
from paper_assets.errors import LLMConfigError
from paper_assets.paper import papers_to_table
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.unmatched import contradictions, preferences_of, sentences
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.settings import RewritingConfig, load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import StoredRanking, candidates, ranking
from paper_assets.stores.warehouse import Warehouse
from tests.ranking.invented import AS_OF, NOW, paper

NOBODY = Verifier(ask=unavailable(LLMConfigError("no language model")), model=None)
ASKED = {
    "preferred_authors": ["Maria O'Connor", "Nobody Known"],
    "preferred_institutions": ["ETH", "MIT"],
    "keywords": {"must_include": ["kelp", "title:forest", "sea urchin"]},
}


def sentences_about(papers: list[Any], **asked: Any) -> list[str]:
    content = profile_content({"interests": {"primary": ["x"]}, **asked}, source="ann")
    return sentences(preferences_of(content), papers_to_table(papers))


def test_each_preference_that_no_paper_meets_is_named_and_no_other() -> None:
    papers = [
        paper("2603.00001", authors=("Maria K. O’Connor",), affiliations=("ETH Zürich",), abstract="Kelps, forests."),
        paper("2603.00002", title="Urchins"),
    ]
    assert sentences_about(papers, **ASKED) == [
        "no paper of the last 30 days is by Nobody Known",
        "no paper of the last 30 days is from MIT",
        "no paper of the last 30 days contains the must keyword title:forest or sea urchin",
    ]


def test_a_must_keyword_of_symbols_only_is_named_as_one_that_never_matches() -> None:
    (line,) = sentences_about([paper(abstract="Kelps?")], keywords={"must_include": ["?", "kelp", "title:", "?"]})
    assert line == "no paper of the last 30 days contains the must keyword ? or title:"


def test_without_any_affiliation_the_reason_and_the_remedy_are_named() -> None:
    (line,) = sentences_about([paper()], preferred_institutions=["ETH", "MIT", "Bell Labs"])
    assert "has an affiliation" in line
    assert "ETH, MIT or Bell Labs" in line
    assert "PAPER_ASSETS_SEMANTIC_SCHOLAR=on" in line


def test_no_preference_or_no_paper_at_all_gives_no_warning() -> None:
    assert sentences_about([paper()]) == []
    assert sentences_about([], **ASKED) == []


@pytest.mark.parametrize(
    ("wanted", "exclude", "named"),
    [
        ("Tree Ensembles", {"hard": ["kelp", "tree-ensemble"]}, "removed by the excluded keyword tree-ensemble"),
        ("graph neural networks", {"hard": ["neural network"]}, "removed by the excluded keyword neural network"),
        ("neural networks", {"hard": ["graph neural network"]}, None),  # the others are wanted
        ("survey", {"hard": ["title:surveys"]}, None),  # one that has it in the abstract is wanted
        ("title:survey", {"hard": ["title:surveys"]}, "removed by the excluded keyword title:surveys"),
        ("GPT-4*", {"hard": ["GPT-4"]}, None),
        ("GPT-4*", {"hard": ["GPT*"]}, "removed by the excluded keyword GPT*"),
        ("survey", {"soft": ["Surveys"]}, "the avoided keyword Surveys lowers it"),
        ("?", {"hard": ["?"]}, None),
    ],
)
def test_a_keyword_that_is_wanted_and_excluded_is_named(wanted: str, exclude: Any, named: str | None) -> None:
    keywords = {"must_include": ["urchin", wanted], "exclude": exclude}
    content = profile_content({"interests": {"primary": ["x"]}, "keywords": keywords}, source="ann")
    found = [line for line in contradictions(content) if line.startswith("the preferred")]
    assert len(found) == (named is not None)
    assert all(line.startswith(f"the preferred keyword {wanted} ") and line.endswith(str(named)) for line in found)


def ranked(folder: Path, *ages: int, **feed: Any) -> StoredRanking:
    """The ranking of a profile with one preferred author, who wrote papers of these ages in days."""
    settings = load_settings({"PAPER_ASSETS_FIRST_DAY": "2025-01-01"}, folder)
    warehouse = Warehouse(settings.warehouse_path, deadline=10)
    by_her = [
        paper(f"2603.1{number:04d}", authors=("Ana Li",), published=NOW - timedelta(days=age), categories=("cs.CL",))
        for number, age in enumerate(ages)
    ]
    other = paper("2603.00001", published=datetime(2026, 3, 30, tzinfo=UTC), categories=("cs.LG",))
    merge_papers(warehouse, [other, *by_her])
    record = {
        "interests": {"primary": ["graphs"]},
        "preferred_authors": ["Ana Li"],
        "keywords": {"must_include": ["kelp"], "exclude": {"hard": ["kelp"]}},
        "feed": feed,
    }
    profile = Profile(name="ann", content=profile_content(record, source="ann"))
    keep_candidates(warehouse, profile_day(warehouse, profile, AS_OF, settings=settings), settings=settings)
    keep_ranking(warehouse, profile, AS_OF, embedder=None, verifier=NOBODY, settings=settings, now=NOW)
    stored = ranking(warehouse, AS_OF, "ann")
    digest = digest_of(
        DigestRows(ranking=stored, papers={}, candidates=candidates(warehouse, AS_OF, "ann").to_pylist()),
        config=RewritingConfig(),
    )
    assert digest.warnings == tuple(stored.header["warnings"])
    return stored


@pytest.mark.parametrize(
    ("ages", "missed"), [((2,), False), ((29,), False), ((30,), True), ((-1, 45), True), ((), True)]
)
def test_the_ranking_and_the_digest_report_it_as_of_the_day_and_for_thirty_days(
    tmp_path: Path, ages: tuple[int, ...], missed: bool
) -> None:
    lines = [line for line in ranked(tmp_path, *ages).header["warnings"] if "Ana Li" in line]
    assert lines == (["no paper of the last 30 days is by Ana Li"] if missed else [])


def test_a_contradiction_is_reported_with_the_ranking_and_in_the_digest(tmp_path: Path) -> None:
    assert any("the preferred keyword kelp has no effect" in line for line in ranked(tmp_path, 2).header["warnings"])


def test_an_excluded_keyword_that_can_match_nothing_is_named() -> None:
    given = ["LLM.*agent", "*", "speech|audio", "GPT-4*", "C++", "A*", ".NET", "R&D", "what?"]
    content = profile_content({"interests": {"primary": ["x"]}, "keywords": {"exclude": {"hard": given}}}, source="ann")
    named = [line.removeprefix("the excluded keyword ").split(" excludes ")[0] for line in contradictions(content)]
    assert named == ["*", "LLM.*agent", "speech|audio"]


def test_a_paper_outside_the_profile_s_categories_meets_nothing(tmp_path: Path) -> None:
    assert any("Ana Li" in line for line in ranked(tmp_path, 20, categories=["cs.LG"]).header["warnings"])


def test_followed_categories_are_named_where_none_of_them_has_a_paper(tmp_path: Path) -> None:
    def lines(name: str, *categories: str) -> list[str]:
        warnings = ranked(tmp_path / name, 20, categories=list(categories)).header["warnings"]
        return [line for line in warnings if " is in " in line]

    assert lines("stored", "cs.LG", "cs.CL") == []  # a paper that is not new is enough
    assert lines("one", "cs.LG", "xx.YY") == []  # one that was proposed is not complained about
    (line,) = lines("nothing", "xx.YY", "xx.ZZ")
    assert line.startswith("no paper of the last 30 days is in xx.YY or xx.ZZ; check how the category is written")
