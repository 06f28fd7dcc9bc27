"""Test topics to avoid: what they remove, what they lower, and that they are no evidence for a paper (W2, W3)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from paper_assets.ranking.avoided import beside_wanted, named_in, own_words
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.settings import Settings
from paper_assets.text.forward_index import indexed
from tests.ranking.calling import called
from tests.ranking.invented import AS_OF, NOW

TOPICS = ("speech", "music", "vision", "chess")
TITLES = {
    "2603.00001": "Recognition of speech with few labels",
    "2603.00002": "Speech and its recognition in noise",
    "2603.00003": "Music as a model of speech",
    "2603.00004": "A corpus of speech",
    "2603.00005": "Vision without labels",
    **{f"2603.001{number:02d}": f"Chess endings, part {number}" for number in range(40)},
}
ABSTRACTS = {"2603.00004": "Speech of many speakers, transcribed and aligned, with a little music."}


def embed(texts: list[str]) -> NDArray[np.float32]:
    """One dimension for each topic."""
    counts = np.array([[text.lower().count(topic) for topic in TOPICS] + [0.3] for text in texts], dtype=np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, profiles_dir=tmp_path / "p", output_dir=tmp_path / "o", pdf_dir=tmp_path / "d")


def ranked(settings: Settings, **interests: Any) -> dict[str, Any]:
    folder = settings.profiles_dir / "a"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.json").write_text(json.dumps({"interests": interests}), encoding="utf-8")
    papers = [
        {
            "paper_id": paper_id,
            "title": title,
            "abstract": ABSTRACTS.get(paper_id, f"{title}."),
            "authors": [],
            "published": "2026-03-20",
        }
        for paper_id, title in TITLES.items()
    ]
    found = called(
        papers, settings=settings, as_of=AS_OF, now=NOW, embed=embed, profile_path=f"{folder}", top_k=10, threshold=0.1
    )
    assert found["success"], found["error"]
    return found


def relevance(found: dict[str, Any]) -> dict[str, float]:
    return {each["paper_id"]: each["score"]["breakdown"]["semantic_relevance"] for each in found["ranked_papers"]}


def removed(found: dict[str, Any]) -> dict[str, str]:
    return {each["paper_id"]: each["filter_reason"] for each in found["filtered_papers"]}


def test_a_paper_nearer_to_an_avoided_topic_is_removed_and_one_near_both_loses_points(settings: Settings) -> None:
    plain = relevance(ranked(settings, primary=["speech"]))
    found = ranked(settings, primary=["speech"], avoid=["music"])
    assert removed(found) == {"2603.00003": "AVOIDED_TOPIC:music"}
    kept = relevance(found)
    assert kept["2603.00001"] == plain["2603.00001"] and kept["2603.00004"] < plain["2603.00004"]
    tags = {each["paper_id"]: each["tags"] for each in found["ranked_papers"]}
    assert "NEAR_AVOIDED:music" in tags["2603.00004"] and "NEAR_AVOIDED:music" not in tags["2603.00001"]


def test_a_less_interesting_topic_removes_nothing_and_costs_half(settings: Settings) -> None:
    plain, avoided, less = (
        relevance(ranked(settings, primary=["speech"], **given))["2603.00004"]
        for given in ({}, {"avoid": ["music"]}, {"less": ["music"]})
    )
    odds = [float(np.log(p / (1 - p))) for p in (plain, avoided, less)]
    assert odds[0] - odds[2] == pytest.approx((odds[0] - odds[1]) / 2)
    assert removed(ranked(settings, primary=["speech"], less=["music"])) == {}


def test_an_avoided_topic_never_speaks_for_a_paper(settings: Settings) -> None:
    found = ranked(settings, primary=["speech"], avoid=["vision"])
    assert "2603.00005" not in relevance(found)


def test_an_exclusion_inside_an_interest_counts_as_one_and_is_reported(settings: Settings) -> None:
    found = ranked(settings, primary=["speech, not music"])
    assert removed(found) == {"2603.00003": "AVOIDED_TOPIC:music"}
    assert "“speech, not music” is read as an exclusion of music" in found["summary"]["warnings"]
    assert relevance(found) == relevance(ranked(settings, primary=["speech"], avoid=["music"]))


def test_keywords_alone_are_the_interests(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "p" / "a"
    ranked(settings, primary=["speech"])
    (folder / "profile.json").write_text('{"keywords": {"must_include": ["speech"]}}', encoding="utf-8")
    papers = [{"paper_id": i, "title": t, "abstract": t, "authors": []} for i, t in TITLES.items()]
    found = called(papers, settings=settings, as_of=AS_OF, now=NOW, embed=embed, profile_path=f"{folder}")
    assert found["ranked_papers"] and all("speech" in each["title"].lower() for each in found["ranked_papers"])


def test_words_of_a_wanted_topic_do_not_exclude() -> None:
    assert own_words(["diffusion models"], "applications of diffusion models to medicine or games") == (
        "applications medicine; games"
    )
    assert own_words(["speech"], "speech") == "speech"


def test_a_title_with_an_acronym_names_what_the_acronym_is_a_kind_of() -> None:
    titles = indexed(pa.array(["Compute for LLM agents", "Agents that plan"]))
    assert named_in(titles, ["language models"])[:, 0].tolist() == [True, False]


def test_what_only_the_avoided_topic_means_is_told_from_what_a_wanted_one_means_too() -> None:
    plain = [f"Speech of kind {number}" for number in range(40)]
    vectors = embed([*plain, "Speech for chess"])
    wanted, avoided = embed(["speech"]), embed(["speech chess", "speech"])
    beside = beside_wanted(vectors, avoided, wanted, usual=standard_calibration().cosines)
    assert beside[0, -1] > 2 > beside[0, :-1].max()
    assert not beside[1].any(), "a topic that means the same as a wanted one excludes nothing"
    other_way = beside_wanted(vectors[::-1], avoided, wanted, usual=standard_calibration().cosines)
    assert np.array_equal(other_way[:, ::-1], beside)
