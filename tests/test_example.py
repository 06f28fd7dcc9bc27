"""The bundled example resembles the real feed, and the demo's rankings of it are sensible."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper, embedded_text, paper_from_mapping, paper_to_mapping
from paper_assets.paper_id import split_arxiv_id
from paper_assets.profile import Profile, load_profile
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.settings import load_settings
from paper_assets.sources.paper_fields import code_url, is_withdrawn
from tests.example_profiles import FOLDERS, PROFILES
from tests.ranking.calling import called

LAST_DAY = date(2026, 3, 13)


@pytest.fixture(scope="module")
def lines() -> list[Paper]:
    text = (files("paper_assets.setup") / "example_papers.jsonl").read_text(encoding="utf-8")
    return [paper_from_mapping(json.loads(line)) for line in text.splitlines()]


@pytest.fixture(scope="module")
def papers(lines: list[Paper]) -> dict[str, Paper]:
    """Return the newest version of each paper."""
    return {paper.paper_id: paper for paper in sorted(lines, key=lambda paper: paper.version)}


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    return {folder.name: load_profile(folder) for folder in FOLDERS}


def test_a_few_dozen_papers_are_in_the_file_once_for_each_version(lines: list[Paper]) -> None:
    assert 48 <= len(lines) <= 60
    assert max(Counter((paper.paper_id, paper.version) for paper in lines).values()) == 1
    for paper in lines:
        assert split_arxiv_id(paper.paper_id) == (paper.paper_id, None)
        assert paper.pdf_url == f"https://arxiv.org/pdf/{paper.paper_id}v{paper.version}"


def test_one_paper_comes_twice_and_its_newer_version_says_more(lines: list[Paper]) -> None:
    (twice,) = [paper_id for paper_id, count in Counter(paper.paper_id for paper in lines).items() if count == 2]
    first, second = (paper for paper in lines if paper.paper_id == twice)
    assert (first.version, second.version) == (1, 2)
    assert first.abstract != second.abstract
    assert first.published == second.published


def test_a_later_version_was_updated_after_it_was_published(lines: list[Paper]) -> None:
    assert sum(paper.version > 1 for paper in lines) >= 4
    for paper in lines:
        assert paper.published and paper.updated
        assert (paper.updated > paper.published) == (paper.version > 1)
        assert paper.updated.date() <= LAST_DAY


def test_eight_days_end_on_a_friday_with_a_quiet_weekend_between(papers: dict[str, Paper]) -> None:
    per_day = Counter(paper.day for paper in papers.values() if paper.day)
    assert sorted(per_day) == [date(2026, 3, day) for day in range(6, 14)]
    weekend = [count for day, count in per_day.items() if day.weekday() >= 5]
    assert max(weekend) < min(count for day, count in per_day.items() if day.weekday() < 5)
    assert len({paper.published.hour for paper in papers.values() if paper.published}) > 12


def test_ids_ascend_with_the_moment_of_submission(papers: dict[str, Paper]) -> None:
    ordered = sorted(papers.values(), key=lambda paper: paper.paper_id)
    moments = [paper.published for paper in ordered if paper.published]
    assert moments == sorted(moments)


def test_categories_are_mixed_and_cross_listed(papers: dict[str, Paper]) -> None:
    primary = Counter(paper.primary_category for paper in papers.values())
    assert {"cs.CL", "cs.LG", "cs.CV", "cs.IR", "stat.ML", "cs.AI"} <= set(primary)
    assert sum(len(paper.categories) > 1 for paper in papers.values()) > len(papers) / 2
    assert any(len(paper.categories) == 1 for paper in papers.values())
    assert all(paper.categories[0] == paper.primary_category for paper in papers.values())


def test_one_paper_is_withdrawn_according_to_its_comment(papers: dict[str, Paper]) -> None:
    (gone,) = [paper for paper in papers.values() if paper.withdrawn]
    assert is_withdrawn(gone.comment, gone.abstract)


def test_the_comment_names_the_repository(papers: dict[str, Paper]) -> None:
    linked = [paper for paper in papers.values() if paper.github_url]
    assert len(papers) / 3 < len(linked) < len(papers) * 2 / 3
    for paper in papers.values():
        assert paper.github_url == code_url(paper.comment, paper.abstract)
    hosts = {(paper.github_url or "").split("/")[2] for paper in linked}
    assert hosts == {"github.com", "gitlab.com", "huggingface.co"}


def test_texts_and_names_are_as_odd_as_real_ones(papers: dict[str, Paper]) -> None:
    abstracts = [paper.abstract for paper in papers.values()]
    assert all(80 <= len(abstract.split()) <= 160 for abstract in abstracts)
    assert sum("$" in abstract and "\\" in abstract for abstract in abstracts) >= 5
    names = " ".join(name for paper in papers.values() for name in paper.authors)
    for letters in ("ø", "č", "É", "ą", "한", "王", "Ю", "'"):
        assert letters in names
    assert any(paper.affiliations for paper in papers.values())
    assert any(not paper.affiliations for paper in papers.values())


@pytest.mark.parametrize("word", ["survey", "benchmark", "medical", "self-supervised", "supervised", "state-space"])
def test_the_kinds_of_paper_that_the_profiles_speak_of_are_there(word: str, papers: dict[str, Paper]) -> None:
    assert any(word in f" {paper.title} {paper.abstract}".lower() for paper in papers.values())


def test_a_record_written_out_reads_back_as_the_same_paper(lines: list[Paper]) -> None:
    assert [paper_from_mapping(paper_to_mapping(paper)) for paper in lines] == lines


def test_two_profiles_differ_in_what_they_look_for(profiles: dict[str, Profile]) -> None:
    assert len(profiles) == 2
    for first, second in combinations(profiles.values(), 2):
        assert not set(first.content.interests.primary) & set(second.content.interests.primary)
        assert not set(first.content.preferred_institutions) & set(second.content.preferred_institutions)


def test_every_part_of_a_profile_folder_is_shown_by_one_of_them(
    profiles: dict[str, Profile], papers: dict[str, Paper]
) -> None:
    read = [profile.read_ids for profile in profiles.values() if profile.read_ids]
    questions = [profile.questions for profile in profiles.values() if profile.questions]
    assert read and any(paper_id in papers for paper_id in read[0])
    assert questions and all("rewritten_question" in plan for plan in questions[0])


def test_a_profile_names_authors_and_institutions_of_the_example(
    profiles: dict[str, Profile], papers: dict[str, Paper]
) -> None:
    institutions = {place for paper in papers.values() for place in paper.affiliations}
    surnames = {name.split()[-1] for paper in papers.values() for name in paper.authors}
    for profile in profiles.values():
        assert set() < set(profile.content.preferred_institutions) <= institutions
        assert set() < {name.split(",")[0].split()[-1] for name in profile.content.preferred_authors} <= surnames


@pytest.fixture(scope="module")
def embed(lines: list[Paper]) -> Embed:
    """Return the vectors of the real model, run once over the papers."""
    encode = load_embedder("all-MiniLM-L6-v2").encode
    texts = [embedded_text(paper.title, paper.abstract) for paper in lines]
    known = dict(zip(texts, encode(texts), strict=True))
    return lambda asked: np.stack([known[text] if text in known else encode([text])[0] for text in asked])


def test_near_identical_papers_are_near_and_the_rest_are_not(papers: dict[str, Paper], embed: Embed) -> None:
    rows = list(papers.values())
    vectors = embed([embedded_text(paper.title, paper.abstract) for paper in rows])
    near = np.argwhere(np.triu(vectors @ vectors.T, k=1) >= 0.8)
    assert [{rows[i].title.split(":")[0] for i in pair} for pair in near] == [{"BranchDraft", "TwigSpec"}]


@pytest.mark.parametrize(
    ("name", "themes"),
    [
        ("efficient-inference", ("kv cache", "speculative", "three-bit weights", "model inference")),
        ("retrieval-evidence", ("balanced evidence", "citation", "opposing evidence", "opposing views", "augmented")),
    ],
)
def test_the_top_five_of_a_profile_are_plainly_about_its_interests(
    name: str, themes: tuple[str, ...], lines: list[Paper], embed: Embed, tmp_path: Path
) -> None:
    result = ranked(name, lines, embed, tmp_path)
    titles = [paper["title"].lower() for paper in result["ranked_papers"]]
    top = [title.replace("key-value", "kv").replace("caches", "cache") for title in titles]
    assert len(top) == 5
    for theme in themes:
        assert any(theme in title for title in top), theme
    for title in top:
        assert any(theme in title for theme in themes), title
    reasons = {removed["filter_reason"].split(":")[0] for removed in result["filtered_papers"]}
    assert {"WITHDRAWN", "BLACKLIST_KEYWORD"} <= reasons


def ranked(name: str, lines: list[Paper], embed: Embed, tmp_path: Path) -> dict[str, Any]:
    return called(
        [paper_to_mapping(paper) for paper in lines if paper.day and (LAST_DAY - paper.day).days < 7],
        settings=load_settings({}, tmp_path),
        as_of=LAST_DAY,
        now=datetime(2026, 3, 13, 22, tzinfo=UTC),
        embed=embed,
        profile_path=PROFILES / name,
        include_contrastive=False,
        enable_llm_verification=False,
        save=False,
    )
