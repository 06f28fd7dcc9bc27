import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput, ModelUnavailable
from paper_assets.paper import paper_from_mapping, papers_to_table
from paper_assets.ranking.gatekeeper import ranking_options
from paper_assets.settings import Settings
from paper_assets.sources.bulk_files import read_papers
from paper_assets.weights import DIMENSIONS
from tests.ranking.calling import called
from tests.ranking.invented import AS_OF, NOW

PROFILE = {
    "interests": {"primary": ["graph learning"]},
    "keywords": {"exclude": {"hard": ["clinical"], "soft": ["survey"]}},
    "ranking": {"top_k": 2, "purpose": "idea_generation"},
}


def record(paper_id: str, **values: Any) -> dict[str, Any]:
    given = {"title": f"Title {paper_id}", "abstract": "An abstract.", "authors": ["Ana Müller"]}
    return {"paper_id": paper_id, "published": "2026-03-20", **given, **values}


def embed(texts: list[str]) -> NDArray[np.float32]:
    """Two dimensions: about graphs, about anything else."""
    about = np.array([[text.lower().count("graph"), 1] for text in texts], dtype=np.float32)
    return about / np.linalg.norm(about, axis=1, keepdims=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path,
        profiles_dir=tmp_path / "profiles",
        output_dir=tmp_path / "output",
        pdf_dir=tmp_path / "pdfs",
    )


@pytest.fixture
def profile(settings: Settings) -> Path:
    folder = settings.profiles_dir / "graphs"
    (folder / "pdf").mkdir(parents=True)
    (folder / "profile.json").write_text(json.dumps(PROFILE), encoding="utf-8")
    return folder


def call(papers: Any, settings: Settings, **given: Any) -> dict[str, Any]:
    return called(papers, settings=settings, **{"as_of": AS_OF, "now": NOW, "embed": embed, **given})


def refusal(papers: Any, settings: Settings, **given: Any) -> str:
    result = call(papers, settings, **given)
    assert result["success"] is False
    assert (result["ranked_papers"], result["filtered_papers"], result["output_path"]) == ([], [], None)
    assert not (settings.rankings_dir).exists()
    assert "\n" not in result["error"]
    return str(result["error"])


def test_the_whole_answer_has_the_agreed_shape(settings: Settings, profile: Path) -> None:
    papers = [
        record("2603.00001", title="Graph learning", mine={"kept": True}),
        record("2603.00002", title="A survey"),
        record("2603.00003"),
        record("2603.00004", abstract="Clinical."),
    ]
    result = call(papers, settings, profile_path=profile, threshold=0)
    assert list(result) == [
        "success",
        "error",
        "summary",
        "ranked_papers",
        "filtered_papers",
        "contrastive_paper",
        "comparison_notes",
        "output_path",
        "generated_at",
    ]
    assert result["summary"] == {
        "input_count": 4,
        "filtered_count": 1,
        "scored_count": 3,
        "output_count": 2,
        "purpose": "idea_generation",
        "ranking_mode": "balanced",
        "profile_used": str(profile),
        "llm_verification_used": False,
        "llm_calls_made": 0,
        "llm_note": None,
        "threshold": 0.0,
        "levels": {"very likely": 1, "likely": 0, "possible": 1},
        "more_likely": 0,
        "quiet": False,
        "warnings": [],
    }
    best = result["ranked_papers"][0]
    assert best == {
        "rank": 1,
        "paper_id": "2603.00001",
        "title": "Graph learning",
        "authors": ["Ana Müller"],
        "published": "2026-03-20",
        "level": "very likely",
        "score": best["score"],
        "tags": ["SEMANTIC_HIGH_MATCH", "VERY_RECENT", "NO_CODE"],
        "local_status": {"already_downloaded": False, "local_path": None},
        "original_data": papers[0],
    }
    score = best["score"]
    assert list(score) == [
        "final",
        "breakdown",
        "weights",
        "bonus",
        "soft_penalty",
        "penalty_keywords",
        "diversity_penalty",
        "evaluation_method",
    ]
    assert tuple(score["breakdown"]) == tuple(score["weights"]) == DIMENSIONS
    assert score["evaluation_method"] == "embedding"
    parts = sum(score["weights"][name] * score["breakdown"][name] for name in DIMENSIONS)
    assert score["final"] == pytest.approx(parts + score["bonus"] + score["soft_penalty"], abs=1e-12)
    assert result["filtered_papers"] == [
        {
            "paper_id": "2603.00004",
            "title": "Title 2603.00004",
            "filter_reason": "BLACKLIST_KEYWORD:clinical",
            "filter_phase": 2,
        }
    ]
    assert result["contrastive_paper"] is None
    assert [note["paper_ids"] for note in result["comparison_notes"]] == [["2603.00001", "2603.00003"]]
    assert result["generated_at"] == "2026-03-31T12:00:00+00:00"


def test_the_answer_is_saved_under_the_profiles_name(settings: Settings, profile: Path) -> None:
    result = call([record("2603.00001")], settings, profile_path=profile / "profile.json")
    saved = Path(result["output_path"])
    assert saved.parent == settings.rankings_dir / "graphs"
    assert json.loads(saved.read_text(encoding="utf-8")) == result
    assert call([record("2603.00001")], settings, save=False)["output_path"] is None


def test_an_answer_that_cannot_be_saved_is_given_all_the_same(settings: Settings) -> None:
    settings.output_dir.write_text("in the way", encoding="utf-8")
    result = call([record("2603.00001")], settings)
    assert (result["success"], result["output_path"], len(result["ranked_papers"])) == (True, None, 1)
    assert "OUTPUT_DIR" in result["summary"]["warnings"][0]


def test_no_papers_are_a_success_without_papers(settings: Settings, profile: Path) -> None:
    result = call([], settings, profile_path=profile)
    assert (result["success"], result["ranked_papers"], result["summary"]["input_count"]) == (True, [], 0)


@pytest.mark.parametrize(
    ("papers", "message"),
    [
        ([record("2603.00001"), {**record("2603.00002"), "title": 5}], "paper 2 (2603.00002): title"),
        ([{"title": "x"}], "paper 1: paper_id"),
        ([record("2603.00001", published="soon")], "published must be a date"),
        (["2603.00001"], "paper 1 is a text"),
        ({"papers": []}, "papers must be a list"),
        (None, "papers must be a list"),
        ("2603.00001", "papers must be a list"),
    ],
)
def test_a_malformed_paper_fails_the_call_and_is_named(settings: Settings, papers: Any, message: str) -> None:
    assert message in refusal(papers, settings)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"top_k": 0}, "top_k: "),
        ({"top_k": "5"}, "top_k: "),
        ({"purpose": "fun"}, "purpose: input should be 'general', "),
        ({"ranking_mode": "x"}, "ranking_mode: "),
        ({"contrastive_type": "x"}, "contrastive_type: "),
    ],
)
def test_a_wrong_option_fails_the_call_and_is_named(settings: Settings, option: dict[str, Any], message: str) -> None:
    assert message in refusal([record("2603.00001")], settings, **option)


def test_a_broken_profile_fails_the_call_with_its_line(settings: Settings, profile: Path) -> None:
    (profile / "profile.json").write_text('{"interests": \n', encoding="utf-8")
    assert "profile.json: not valid JSON at line 2" in refusal([record("1")], settings, profile_path=profile)
    (profile / "profile.json").write_text('{"interest": {}}', encoding="utf-8")
    assert "interest: unknown key" in refusal([record("1")], settings, profile_path=profile)


def test_without_a_profile_the_ranking_is_profile_free(settings: Settings) -> None:
    result = call([record("2603.00001")], settings)
    assert result["summary"]["profile_used"] is None
    assert result["summary"]["warnings"] == []
    assert result["ranked_papers"][0]["score"]["evaluation_method"] == "profile_free"


@pytest.mark.parametrize(
    ("option", "path"),
    [
        ("profile_path", "config/profile.json"),
        ("profile_path", "."),
        ("history_path", "absent.json"),
        ("local_pdf_dir", "absent"),
    ],
)
def test_a_path_with_nothing_there_is_left_out_with_a_warning_unless_it_is_required(
    settings: Settings, option: str, path: str
) -> None:
    paths = {option: path, "working_dir": settings.home}
    result = call([record("2603.00001")], settings, **paths)
    [warning] = result["summary"]["warnings"]
    assert warning.startswith(f"{option}: no")
    first = settings.pdf_dir if option == "local_pdf_dir" else settings.output_dir
    assert f"{first / path} or {settings.home / path}; ranked without it" in warning
    assert (result["summary"]["profile_used"], result["summary"]["output_count"]) == (None, 1)
    shutil.rmtree(settings.rankings_dir)
    assert str(first / path) in refusal([record("2603.00001")], settings, **paths, required=True)


def test_the_default_history_and_pdfs_count_where_the_profile_has_none(settings: Settings, profile: Path) -> None:
    history = settings.output_dir / "history" / "read_papers.json"
    history.parent.mkdir(parents=True)
    history.write_text('["2603.00001"]', encoding="utf-8")
    (settings.pdf_dir / "pdf").mkdir(parents=True)
    (settings.pdf_dir / "pdf" / "2603.00002.pdf").touch()
    result = call([record("2603.00001"), record("2603.00002")], settings)
    assert [paper["filter_reason"] for paper in result["filtered_papers"]] == ["ALREADY_READ"]
    assert result["ranked_papers"][0]["local_status"]["already_downloaded"]
    (profile / "read_papers.json").write_text('["2603.00002"]', encoding="utf-8")
    own = call([record("2603.00001"), record("2603.00002")], settings, profile_path=profile)
    assert [paper["paper_id"] for paper in own["filtered_papers"]] == ["2603.00002"]


def test_code_named_in_an_abstract_counts_as_it_does_on_import(settings: Settings, tmp_path: Path) -> None:
    given = record("2603.00001", abstract="Code: https://github.com/some-lab/tool.", mine=1)
    given |= {"published": "2026-03-20T00:00:00+00:00"}
    (tmp_path / "papers.jsonl").write_text(json.dumps(given), encoding="utf-8")
    (imported,) = read_papers(tmp_path / "papers.jsonl")
    best = call([given], settings, purpose="implementation")["ranked_papers"][0]
    assert imported.github_url == "https://github.com/some-lab/tool"
    assert ("CODE_AVAILABLE" in best["tags"], best["score"]["breakdown"]["practicality"]) == (True, 0.5)
    assert best["original_data"] == given


def test_a_list_is_filled_and_a_day_is_quiet_only_if_nothing_is_possible(settings: Settings, profile: Path) -> None:
    papers = [record("2603.00001", title="Graph learning"), record("2603.00002"), record("2603.00003")]
    filled = call(papers, settings, profile_path=profile)
    assert (filled["summary"]["output_count"], filled["summary"]["quiet"]) == (2, False)
    assert [paper["level"] for paper in filled["ranked_papers"]] == ["very likely", "possible"]
    assert filled["summary"]["levels"] == {"very likely": 1, "likely": 0, "possible": 1}
    nothing = call(papers[1:], settings, profile_path=profile, threshold=0.5)
    assert (nothing["success"], nothing["ranked_papers"], nothing["summary"]["quiet"]) == (True, [], True)
    seed = call(papers, settings, profile_path=profile, interest_mode="seed")
    assert (seed["summary"]["output_count"], seed["summary"]["levels"], seed["summary"]["quiet"]) == (2, None, False)
    assert "level" not in seed["ranked_papers"][0]


def test_what_is_asked_goes_before_the_profile_and_that_before_the_default(settings: Settings, profile: Path) -> None:
    papers = [record(f"2603.0000{number}") for number in range(1, 9)]
    assert call(papers, settings)["summary"]["output_count"] == 5
    assert call(papers, settings, profile_path=profile, threshold=0)["summary"]["output_count"] == 2
    asked = call(papers, settings, profile_path=profile, top_k=3, purpose="general", threshold=0)["summary"]
    assert (asked["output_count"], asked["purpose"]) == (3, "general")
    with pytest.raises(InvalidInput, match="top: unknown option"):
        ranking_options(None, {"top": 5})


def test_weights_of_the_profile_are_those_of_its_scores(settings: Settings, profile: Path) -> None:
    weights = {**dict.fromkeys(DIMENSIONS, 0.0), "semantic_relevance": 0.5, "recency": 0.25, "practicality": 0.25}
    content = {**PROFILE, "ranking": {"weights": weights}}
    (profile / "profile.json").write_text(json.dumps(content), encoding="utf-8")
    [ranked] = call([record("2603.00001")], settings, profile_path=profile, threshold=0)["ranked_papers"]
    assert ranked["score"]["weights"] == weights


def test_a_model_that_cannot_be_loaded_is_replaced_by_keywords_with_a_warning(
    settings: Settings, profile: Path
) -> None:
    def unavailable(texts: list[str]) -> NDArray[np.float32]:
        raise ModelUnavailable("the files are missing")

    papers = [record("2603.00001"), record("2603.00002", abstract="Graph learning.")]
    for broken in (unavailable, None):
        result = call(papers, settings, profile_path=profile, embed=broken, threshold=0)
        assert [paper["paper_id"] for paper in result["ranked_papers"]] == ["2603.00002", "2603.00001"]
        assert result["ranked_papers"][0]["score"]["evaluation_method"] == "keyword"
        assert "keywords only" in result["summary"]["warnings"][0]


def raising(texts: list[str]) -> NDArray[np.float32]:
    raise RuntimeError("out of memory\nand a trace")


@pytest.mark.parametrize(
    "broken",
    [
        raising,
        lambda texts: np.full((len(texts), 2), np.nan, dtype=np.float32),
        lambda texts: np.zeros((len(texts), 2), dtype=np.float32),
        lambda texts: np.ones((len(texts) - 1, 2), dtype=np.float32),
        lambda texts: np.ones(len(texts), dtype=np.float32),
        lambda texts: [[1.0, 0.0], [1.0]],
        lambda texts: None,
    ],
    ids=["raises", "nan", "zeros", "too few", "one number each", "ragged", "none"],
)
def test_a_model_that_fails_when_called_is_replaced_by_keywords_with_a_warning(
    settings: Settings, profile: Path, broken: Any
) -> None:
    papers = [record("2603.00001"), record("2603.00002", abstract="Graph learning.")]
    result = call(papers, settings, profile_path=profile, embed=broken)
    assert result["ranked_papers"][0]["paper_id"] == "2603.00002"
    assert result["ranked_papers"][0]["score"]["evaluation_method"] == "keyword"
    (warning,) = result["summary"]["warnings"]
    assert warning.startswith("relevance was judged by keywords only: the embedding model")
    assert "\n" not in warning


def test_a_repeated_id_is_kept_once_in_its_newest_version(settings: Settings) -> None:
    papers = [
        record("2603.00001v1", title="First"),
        record("2603.00001v3", title="Third"),
        record("2603.00001v2", title="Second"),
        record("2603.00002", title="One"),
        record("2603.00002", title="Other"),
    ]
    result = call(papers, settings)
    assert {paper["title"] for paper in result["ranked_papers"]} == {"Third", "One"}
    assert result["summary"]["input_count"] == 5
    assert "3 of 5 papers repeat an id" in result["summary"]["warnings"][0]


def test_the_history_asked_for_replaces_the_profiles(settings: Settings, profile: Path) -> None:
    (profile / "read_papers.json").write_text('["2603.00001v2"]', encoding="utf-8")
    other = settings.output_dir / "history" / "read.json"
    other.parent.mkdir(parents=True)
    other.write_text('{"read": ["2603.00002"]}', encoding="utf-8")
    papers = [record("2603.00001"), record("2603.00002")]
    own = call(papers, settings, profile_path=profile)["filtered_papers"]
    given = call(papers, settings, profile_path=profile, history_path="history/read.json")["filtered_papers"]
    assert [paper["paper_id"] for paper in own] == ["2603.00001"]
    assert [(paper["paper_id"], paper["filter_reason"]) for paper in given] == [("2603.00002", "ALREADY_READ")]


def test_a_pdf_at_hand_is_named_wherever_the_folder_comes_from(settings: Settings, profile: Path) -> None:
    def local(**given: Any) -> dict[str, Any]:
        best = call([record("hep-th/9901001")], settings, threshold=0, **given)["ranked_papers"][0]
        assert ("ALREADY_DOWNLOADED" in best["tags"]) == best["local_status"]["already_downloaded"]
        return best["local_status"]

    mine, shared, here = profile / "pdf", settings.pdf_dir / "shelf", settings.home / "work" / "desk"
    for folder in (mine, shared, here):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hep-th_9901001v1.pdf").touch()
    assert local(profile_path=profile)["local_path"] == str(mine / "hep-th_9901001v1.pdf")
    assert local(local_pdf_dir="shelf")["local_path"] == str(shared / "hep-th_9901001v1.pdf")
    assert local(local_pdf_dir="desk", working_dir=here.parent)["local_path"] == str(here / "hep-th_9901001v1.pdf")
    assert local() == {"already_downloaded": False, "local_path": None}


def test_a_relative_profile_is_looked_for_in_the_output_folder_then_where_one_works(
    settings: Settings, profile: Path
) -> None:
    found = call([record("1")], settings, profile_path="profiles/graphs", working_dir=settings.home)
    assert found["summary"]["profile_used"] == "profiles/graphs"


def test_the_day_is_the_one_asked_for_and_not_todays(settings: Settings) -> None:
    early = call([record("1")], settings, as_of=date(2026, 3, 21))["ranked_papers"][0]["score"]["breakdown"]
    late = call([record("1")], settings, as_of=date(2028, 3, 21))["ranked_papers"][0]["score"]["breakdown"]
    assert (early["recency"], late["recency"]) == (1.0, 0.1)


def test_whatever_a_callers_record_holds_the_answer_is_json(settings: Settings) -> None:
    odd = record("1", seen={1: NOW}, score=float("nan"))
    result = call([odd], settings)
    assert result["success"]
    assert json.loads(json.dumps(result, allow_nan=False)) == result


@pytest.mark.parametrize("mode", ["balanced", "novelty", "practicality", "diversity"])
def test_every_mode_answers_with_the_options_of_later_parts_given(settings: Settings, profile: Path, mode: str) -> None:
    result = call(
        [record("1"), record("2")],
        settings,
        profile_path=profile,
        ranking_mode=mode,
        include_contrastive=True,
        contrastive_type="domain",
        enable_llm_verification=True,
    )
    assert (result["success"], result["summary"]["ranking_mode"]) == (True, mode)


def test_liked_papers_are_found_among_the_given_ones_then_by_the_lookup(settings: Settings, profile: Path) -> None:
    asked: list[list[str]] = []

    def find_papers(ids: list[str]) -> pa.Table:
        asked.append(ids)
        return papers_to_table([paper_from_mapping(record("2603.00009", title="Graphs of graphs"))])

    content = {**PROFILE, "interests": {"papers": ["2603.00001v2", "2603.00009", "2603.00010"]}}
    (profile / "profile.json").write_text(json.dumps(content), encoding="utf-8")
    papers = [record("2603.00001", title="Stones"), record("2603.00002"), record("2603.00003", title="A graph")]
    result = call(
        papers, settings, profile_path=profile, find_papers=find_papers, interest_mode="library", purpose="general"
    )
    assert asked == [["2603.00009", "2603.00010"]]
    assert result["ranked_papers"][0]["paper_id"] == "2603.00003"  # the other shares no word
    assert [(paper["paper_id"], paper["filter_reason"]) for paper in result["filtered_papers"]] == [
        ("2603.00001", "ALREADY_READ")
    ]
    assert len(result["summary"]["warnings"]) == 1
    assert "not stored do not count: 2603.00010;" in result["summary"]["warnings"][0]


def test_the_interest_mode_asked_for_goes_before_the_profiles(settings: Settings, profile: Path) -> None:
    papers = [record("2603.00001", title="Graph learning"), record("2603.00002")]
    assert "interest_mode: " in refusal(papers, settings, interest_mode="books")
    result = call(papers, settings, profile_path=profile, interest_mode="library")
    assert "interest_mode library needs a liked paper" in result["summary"]["warnings"][0]
