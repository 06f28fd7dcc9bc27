"""Test that what a reader types becomes a valid profile, or one clear line."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import PROFILE_NAME, profile_content
from paper_assets.settings import Settings
from paper_assets.setup.categories import all_categories, by_votes, by_words, category_name, check_category
from paper_assets.setup.draft import (
    LikedWork,
    ProfileDraft,
    added_to_record,
    check_name,
    draft_content,
    draft_record,
    ignored_note,
    proposed_name,
    read_references,
    unreadable_note,
)
from paper_assets.setup.matches import MOST_ASKED, proposed_categories, unknown_interests
from paper_assets.sources.bulk_files import read_papers


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("2501.12345", ["2501.12345"]),
        ("2501.12345v3, hep-th/9901001", ["2501.12345", "hep-th/9901001"]),
        ("arXiv:2501.12345 [cs.CL]", ["2501.12345"]),
        ("arXiv: 2501.12345", ["2501.12345"]),
        ("https://arxiv.org/pdf/2501.12345v2.pdf", ["2501.12345"]),
        ("arxiv.org/abs/2501.12345", ["2501.12345"]),
        ("https://huggingface.co/papers/2501.12345", ["2501.12345"]),
        ("https://doi.org/10.48550/arXiv.2501.12345", ["2501.12345"]),
        ("doi:10.1145/3292500.3330701.", ["doi:10.1145/3292500.3330701"]),
        ("https://doi.org/10.1000/ABC", ["doi:10.1000/abc"]),
        ("https://www.biorxiv.org/content/10.1101/2024.01.01.573796v2.full.pdf", ["doi:10.1101/2024.01.01.573796"]),
        ("https://www.medrxiv.org/content/10.64898/2026.01.02.26300001v1", ["doi:10.64898/2026.01.02.26300001"]),
        ("https://dl.acm.org/doi/10.1145/3292500.3330701", ["doi:10.1145/3292500.3330701"]),
        ("https://example.org/doi/full/10.1000/J.1/v1/pdf?from=mail", ["doi:10.1000/j.1/v1"]),
        ("https://example.org/article?id=10.1000/abc.def&type=x", ["doi:10.1000/abc.def"]),
        ("A. Writer, “Graphs for all” (arXiv:2501.12345), 2025.", ["2501.12345"]),
        ("2501.12345\n2501.12345v2\n", ["2501.12345"]),
    ],
)
def test_a_paper_is_recognised_in_every_form_that_people_paste(text: str, ids: list[str]) -> None:
    found = read_references(text)
    assert list(found.ids) == ids
    assert found.unreadable == ()
    assert ignored_note(found.ignored) is None


def test_words_beside_an_id_are_reported_and_the_id_is_kept() -> None:
    found = read_references(
        "2501.12345 asdf qwer\n1. 2501.00002\n2501.00003, 2501.1234567\nhttps://example.org/x 2501.00004"
    )
    assert found.ids == ("2501.12345", "2501.00002", "2501.00003", "2501.00004")
    assert found.ignored == ("asdf qwer", "2501.1234567", "https://example.org/x")
    assert ignored_note(found.ignored[:2]) == "not understood beside the ids of papers: “asdf qwer”, “2501.1234567”"


def test_lines_that_name_no_paper_are_reported_and_the_others_kept() -> None:
    found = read_references("2501.12345\nthe paper about attention\n\n- \nhttps://example.org/x")
    assert found.ids == ("2501.12345",)
    assert found.unreadable == ("the paper about attention", "https://example.org/x")


def test_a_link_without_an_id_is_answered_with_what_to_paste() -> None:
    for line in ("https://pubmed.ncbi.nlm.nih.gov/40000001/", "pubmed.ncbi.nlm.nih.gov/40000001", "www.example.org"):
        (unreadable,) = read_references(line).unreadable
        assert "paste the DOI that its page shows" in unreadable_note(unreadable)
    assert "such as 1706.03762" in unreadable_note("the paper about attention, v1.0")


@given(st.text())
def test_no_text_breaks_the_reading_of_references(text: str) -> None:
    read_references(text)


@given(st.text(), st.lists(st.sampled_from(["a", "a-2", "graphs"])))
def test_a_proposed_name_is_valid_and_free(text: str, taken: list[str]) -> None:
    name = proposed_name(text, taken=taken)
    assert name == "" or (PROFILE_NAME.fullmatch(name) and name not in taken and len(name) <= 60)


def test_an_invalid_name_is_answered_with_a_valid_one() -> None:
    with pytest.raises(InvalidInput, match=r"for example graph-learning$"):
        check_name("Graph Learning")
    with pytest.raises(InvalidInput, match=r"already.*for example graphs-2$"):
        check_name("graphs", taken=["graphs"])


def test_a_draft_becomes_a_profile_without_empty_keys() -> None:
    draft = ProfileDraft(
        name="x",
        interests=("graphs",),
        papers=(LikedWork(paper_id="2501.12345"), LikedWork(title="Trees", abstract="They grow.")),
        categories=("CS.lg", "cs.LG"),
        keywords=("code",),
    )
    record = draft_record(draft)
    assert record == {
        "interests": {"primary": ["graphs"], "papers": ["2501.12345", {"title": "Trees", "abstract": "They grow."}]},
        "keywords": {"must_include": ["code"]},
        "feed": {"categories": ["cs.LG"]},
    }
    assert draft_content(draft) == profile_content(json.loads(json.dumps(record)), source="test")


def test_a_draft_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="describe at least one interest"):
        draft_record(ProfileDraft(name="x", categories=("cs.LG",)))


def test_adding_keeps_everything_that_a_profile_has() -> None:
    record = {"interests": {"primary": ["a"], "papers": [{"paper_id": "2501.00001"}]}, "ranking": {"top_k": 9}}
    added = added_to_record(
        record, ProfileDraft(name="x", interests=("a", "b"), categories=("cs.CL",), papers=(LikedWork(paper_id="1"),))
    )
    assert added["interests"] == {"primary": ["a", "b"], "papers": [{"paper_id": "2501.00001"}, "1"]}
    assert added["ranking"] == {"top_k": 9}
    assert added["feed"] == {"categories": ["cs.CL"]}
    assert record["interests"]["primary"] == ["a"]


def test_categories_have_names_and_unknown_ones_are_refused_with_similar_ones() -> None:
    assert len(all_categories()) > 150
    assert category_name("cs.CL") == "cs.CL Computation and Language"
    assert check_category(" CS.cl ") == "cs.CL"
    with pytest.raises(InvalidInput, match="for example cs"):
        check_category("cs.XX")


def test_categories_are_proposed_by_words_and_by_similar_papers() -> None:
    assert by_words(["robots that grasp"])[0].code == "cs.RO"
    assert by_words(["zzz"]) == []
    votes = [["cs.CL", "cs.LG"]] * 8 + [["cs.LG"]] * 2 + [["math.NT"]]
    assert [each.code for each in by_votes(votes)] == ["cs.CL", "cs.LG"]


def empty_desk(folder: Path) -> Workspace:
    return open_workspace(
        Settings(home=folder, first_day=date(2026, 1, 1)), {}, clock=lambda: datetime(2026, 3, 2, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("interest", "code"),
    [
        ("text-to-image diffusion models", "cs.CV"),
        ("robust tokenization for language models", "cs.CL"),
        ("traffic forecasting", "cs.LG"),
        ("exoplanet atmospheres", "astro-ph.EP"),
        ("speech synthesis", "eess.AS"),
    ],
)
def test_an_empty_desk_proposes_where_papers_on_an_interest_are_filed(interest: str, code: str, tmp_path: Path) -> None:
    proposed = proposed_categories(empty_desk(tmp_path), [interest])
    assert code in {each.code for each in proposed}
    assert len(proposed) <= 4


def test_each_of_several_interests_proposes_its_category(tmp_path: Path) -> None:
    proposed = proposed_categories(
        empty_desk(tmp_path), ["gravitational waves", "speech synthesis", "robot grasping", "option pricing"]
    )
    assert {"gr-qc", "eess.AS", "cs.RO", "q-fin.CP"} <= {each.code for each in proposed}


def test_interests_of_unknown_words_propose_no_category_and_are_named(tmp_path: Path) -> None:
    desk = empty_desk(tmp_path)
    for nonsense in ("asdf qwer", "jkl jkl", "sdkfjh skdjfh", "12345"):
        assert not proposed_categories(desk, [nonsense]), nonsense
    together = proposed_categories(desk, ["asdf qwer", "speech synthesis"])
    assert together == proposed_categories(desk, ["speech synthesis"])
    assert unknown_interests(desk, ["asdf qwer", "speech synthesis", "QCD", "RLHF"]) == ("asdf qwer",)


def test_of_a_pasted_text_only_the_first_interests_are_asked_about(tmp_path: Path) -> None:
    desk, first = empty_desk(tmp_path), ["speech synthesis"] * MOST_ASKED
    assert proposed_categories(desk, [*first, "gravitational waves"]) == proposed_categories(desk, first)
    assert unknown_interests(desk, [*first, "asdf qwer"]) == ()


@pytest.mark.shared_data
def test_the_primary_category_is_proposed_for_most_recorded_titles(tmp_path: Path, shared_data: Path) -> None:
    desk = empty_desk(tmp_path)
    papers = list(read_papers(shared_data / "arxiv_papers" / "papers.jsonl.gz"))[::75]
    proposed = [{each.code for each in proposed_categories(desk, [paper.title])} for paper in papers]
    right = [paper.primary_category in codes for paper, codes in zip(papers, proposed, strict=True)]
    assert len(papers) > 100
    assert sum(right) >= 0.7 * len(papers)
    assert sum(map(len, proposed)) <= 4 * len(papers)
