"""The original document of the gatekeeper: scores, filters, tags and faults, by hand, through the whole call."""

import json
import math
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paper_assets.settings import Settings
from tests.ranking.calling import called
from tests.ranking.invented import AS_OF, NOW


def embed(texts: list[str]) -> NDArray[np.float32]:
    """The interests lie on the first axis; a paper is as near to them as its text says."""
    near = [float(found[1]) if (found := re.search(r"near ([01]\.\d+)", text)) else 1.0 for text in texts]
    return np.array([[cosine, math.sqrt(1 - cosine**2)] for cosine in near], dtype=np.float32)


CODE = {"github_url": "https://github.com/a/b"}
LOCAL = {"paper_id": "2603.00009"}  # its PDF is there
MUST = {"keywords": {"must_include": ["folding", "bridges"]}}
SOFT = {"keywords": {"exclude": {"soft": ["survey", "benchmark", "dataset"]}}}
AUTHOR, INSTITUTION = {"preferred_authors": ["Tri Dao"]}, {"preferred_institutions": ["MIT"]}
PURPOSE = {name: {"purpose": name} for name in ("literature_review", "implementation", "idea_generation")}

# A paper of ten days ago at a cosine of .8, without code. Weights: relevance, must, author, institution, recency,
# practicality.
STATEMENTS: tuple[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], float], ...] = (
    # statement, the profile beside its interests, options, the paper, final score
    ("general: .3×.8 + .1 + .15 + .1 + .2 + .15×0", {}, {}, {}, 0.79),
    ("literature_review: .35×.8 + .1 + .15 + .1 + .05", {}, PURPOSE["literature_review"], {}, 0.68),
    ("implementation: .2×.8 + .1 + .1 + .1 + .1 + .4×.5", {}, PURPOSE["implementation"], CODE, 0.76),
    ("idea_generation: .35×.8 + .1 + .1 + .05 + .35", {}, PURPOSE["idea_generation"], {}, 0.88),
    ("up to 14 days old: 1", {}, {}, {"age": 14}, 0.79),
    ("up to 30 days: .85", {}, {}, {"age": 30}, 0.76),
    ("up to 90 days: .7", {}, {}, {"age": 90}, 0.73),
    ("up to 180 days: .5", {}, {}, {"age": 180}, 0.69),
    ("up to a year: .3", {}, {}, {"age": 365}, 0.65),
    ("older: .1", {}, {}, {"age": 366}, 0.61),
    ("code: .5 of practicality", {}, {}, CODE, 0.865),
    ("a local PDF: .3", {}, {}, LOCAL, 0.835),
    ("both: .8", {}, {}, CODE | LOCAL, 0.91),
    ("novelty adds .1 × recency", {}, {"ranking_mode": "novelty"}, {}, 0.89),
    ("novelty adds .1 × .5 at 180 days", {}, {"ranking_mode": "novelty"}, {"age": 180}, 0.74),
    ("practicality adds .1 × practicality, which is 0", {}, {"ranking_mode": "practicality"}, {}, 0.79),
    ("practicality adds .1 × .5", {}, {"ranking_mode": "practicality"}, CODE, 0.915),
    ("practicality adds .1 × .8", {}, {"ranking_mode": "practicality"}, CODE | LOCAL, 0.99),
    ("all keywords asked for: 1", MUST, {}, {"title": "Folding bridges"}, 0.79),
    ("one of two keywords: .5", MUST, {}, {"title": "Folding"}, 0.74),
    ("none of them: 0", MUST, {}, {}, 0.69),
    ("a preferred author: 1", AUTHOR, {}, {"authors": ["Ada Lind", "Tri Dao"]}, 0.79),
    ("no preferred author: 0", AUTHOR, {}, {}, 0.64),
    ("a preferred institution, in part: 1", INSTITUTION, {}, {"affiliations": ["MIT CSAIL"]}, 0.79),
    ("another institution: 0", INSTITUTION, {}, {"affiliations": ["Smith College"]}, 0.69),
    ("one keyword to avoid: -.15", SOFT, {}, {"title": "A survey"}, 0.64),
    ("two: -.3", SOFT, {}, {"title": "A survey and benchmark"}, 0.49),
    ("three: no more than -.3", SOFT, {}, {"title": "A survey, benchmark and dataset"}, 0.49),
    ("no relevance below 0", {}, {}, {"abstract": "near 0.0"}, 0.55),
)


ABSTRACT = {"abstract": "near 0.8 clinical"}
HARD = {"keywords": {"exclude": {"hard": ["medical", "clinical"], "soft": ["clinical"]}}}
NEW = {"constraints": {"min_year": 2024}}
OLD = {"age": 900}  # of October 2023
FILTERED: tuple[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str | None], ...] = (
    # statement, the profile beside its interests, options, the paper, the reason
    ("in the history", {}, {"history_path": "read.json"}, {}, "ALREADY_READ"),
    ("an excluded keyword, before it costs points", HARD, {}, ABSTRACT, "BLACKLIST_KEYWORD:clinical"),
    ("the history before the keyword", HARD, {"history_path": "read.json"}, ABSTRACT, "ALREADY_READ"),
    ("a year before min_year", NEW, {}, OLD, "TOO_OLD:2023"),
    ("the keyword before the year", HARD | NEW, {}, ABSTRACT | OLD, "BLACKLIST_KEYWORD:clinical"),
    ("the year before the code", NEW, PURPOSE["implementation"], OLD, "TOO_OLD:2023"),
    ("a literature review goes back five years", NEW, PURPOSE["literature_review"], OLD, None),
    ("to 2019", NEW, PURPOSE["literature_review"], {"age": 2640}, None),
    ("and no further", NEW, PURPOSE["literature_review"], {"age": 2650}, "TOO_OLD:2018"),
    ("min_year itself is not too old", NEW, {}, {"age": 800}, None),
    ("without code for an implementation", {}, PURPOSE["implementation"], {}, "NO_CODE_REQUIRED"),
    ("with code", {}, PURPOSE["implementation"], CODE, None),
    ("without code where the profile requires it", {"constraints": {"require_code": True}}, {}, {}, "NO_CODE_REQUIRED"),
    ("a keyword to avoid removes nothing", SOFT, {}, {"title": "A survey"}, None),
    ("a keyword that is not there removes nothing", MUST, {}, {}, None),
)
TAGGED: tuple[tuple[str, dict[str, Any], dict[str, Any], str, bool], ...] = (
    # statement, the profile beside its interests, the paper, tag, whether the paper has it
    ("a cosine of .7", {}, {"abstract": "near 0.701"}, "SEMANTIC_HIGH_MATCH", True),
    ("less", {}, {"abstract": "near 0.699"}, "SEMANTIC_HIGH_MATCH", False),
    ("an author", AUTHOR, {"authors": ["Tri Dao"]}, "PREFERRED_AUTHOR", True),
    ("nobody preferred, though the dimension is 1", {}, {}, "PREFERRED_AUTHOR", False),
    ("an institution", INSTITUTION, {"affiliations": ["MIT"]}, "PREFERRED_INSTITUTION", True),
    ("none preferred", {}, {"affiliations": ["MIT"]}, "PREFERRED_INSTITUTION", False),
    ("a github_url", {}, CODE, "CODE_AVAILABLE", True),
    ("and then not", {}, CODE, "NO_CODE", False),
    ("no github_url", {}, {}, "NO_CODE", True),
    ("two weeks", {}, {"age": 14}, "VERY_RECENT", True),
    ("a day more", {}, {"age": 15}, "VERY_RECENT", False),
    ("a PDF", {}, LOCAL, "ALREADY_DOWNLOADED", True),
    ("none", {}, {}, "ALREADY_DOWNLOADED", False),
    ("three months", {}, {"age": 90}, "OLDER_PAPER", True),
    ("a day less", {}, {"age": 89}, "OLDER_PAPER", False),
    ("a keyword to avoid", SOFT, {"title": "A survey"}, "SOFT_PENALTY:survey", True),
    ("only the one that is there", SOFT, {"title": "A survey"}, "SOFT_PENALTY:dataset", False),
    ("a keyword asked for", MUST, {"title": "Folding"}, "MUST_KEYWORD_MATCH", True),
    ("none of them", MUST, {}, "MUST_KEYWORD_MATCH", False),
)
TRANSFORMER, RNN = "Machine translation with a transformer", "Machine translation with an RNN"
SUPERVISED, SELF = "A supervised transformer", "A self-supervised transformer"
LANGUAGE, VISION = "A transformer for question answering on legal texts", "A transformer on satellite images"
CONTRASTS = (
    # type, the paper of the reader's field, the one that contrasts, the tag
    ("method", TRANSFORMER, RNN, "CONTRASTIVE_METHOD"),
    ("assumption", SUPERVISED, SELF, "CONTRASTIVE_ASSUMPTION"),
    ("domain", LANGUAGE, VISION, "CONTRASTIVE_DOMAIN"),
)


def answer(folder: Path, profile: dict[str, Any], options: dict[str, Any], *papers: dict[str, Any]) -> dict[str, Any]:
    """Call with a profile of one interest; a paper has an `age` in days."""
    settings = Settings(home=folder, profiles_dir=folder, output_dir=folder, pdf_dir=folder)
    for name in ("own", "pdf"):
        (folder / name).mkdir()
    content = {"interests": {"primary": ["caches"]}, **profile}
    (folder / "own" / "profile.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "read.json").write_text('["2603.00001"]', encoding="utf-8")
    (folder / "pdf" / "2603.00009.pdf").touch()
    given = []
    for number, paper in enumerate(papers, 1):
        whole = {
            "paper_id": f"2603.{number:05}",
            "title": "T",
            "abstract": "near 0.8",
            "authors": ["Ada Lind"],
            **paper,
        }
        given.append({**whole, "published": f"{AS_OF - timedelta(days=whole.pop('age', 10))}"})
    call = {"as_of": AS_OF, "now": NOW, "embed": embed, "save": False, "interest_mode": "seed", "profile_path": "own"}
    return called(given, settings=settings, **call | options)


@pytest.mark.parametrize(
    ("profile", "options", "paper", "final"), [row[1:] for row in STATEMENTS], ids=[row[0] for row in STATEMENTS]
)
def test_a_score_is_what_the_document_says(
    tmp_path: Path, profile: dict[str, Any], options: dict[str, Any], paper: dict[str, Any], final: float
) -> None:
    [ranked] = answer(tmp_path, profile, options, paper)["ranked_papers"]
    assert ranked["score"]["final"] == pytest.approx(final, abs=1e-6)


@pytest.mark.parametrize(
    ("profile", "options", "paper", "reason"), [row[1:] for row in FILTERED], ids=[row[0] for row in FILTERED]
)
def test_a_paper_is_removed_for_the_first_reason_of_the_document(
    tmp_path: Path, profile: dict[str, Any], options: dict[str, Any], paper: dict[str, Any], reason: str | None
) -> None:
    found = answer(tmp_path, profile, options, paper)
    assert [each["filter_reason"] for each in found["filtered_papers"]] == [reason] * (reason is not None)
    assert len(found["ranked_papers"]) == (reason is None)
    counted = {name: found["summary"][f"{name}_count"] for name in ("input", "filtered", "scored", "output")}
    left = int(reason is None)
    assert found["success"]
    assert counted == {"input": 1, "filtered": 1 - left, "scored": left, "output": left}


@pytest.mark.parametrize(
    ("profile", "paper", "tag", "has"), [row[1:] for row in TAGGED], ids=[row[0] for row in TAGGED]
)
def test_a_paper_has_the_tags_of_the_document(
    tmp_path: Path, profile: dict[str, Any], paper: dict[str, Any], tag: str, has: bool
) -> None:
    [ranked] = answer(tmp_path, profile, {}, paper)["ranked_papers"]
    assert (tag in ranked["tags"]) == has


@pytest.mark.parametrize(("kind", "usual", "other", "tag"), CONTRASTS, ids=[row[0] for row in CONTRASTS])
def test_the_contrast_is_the_one_that_the_document_gives_as_example(
    tmp_path: Path, kind: str, usual: str, other: str, tag: str
) -> None:
    papers = [{"title": usual, "abstract": "near 0.9"} for _ in range(3)] + [{"title": other, "abstract": "near 0.5"}]
    options = {"include_contrastive": True, "contrastive_type": kind, "top_k": 3}
    found = answer(tmp_path, {}, options, *papers)
    pick = found["contrastive_paper"]
    assert (pick["title"], found["ranked_papers"][-1]["title"]) == (other, other)
    assert {"CONTRASTIVE_PICK", tag} <= set(pick["tags"]) and pick["contrastive_info"]["type"] == kind
    assert "contrastive" in {note["relation"] for note in found["comparison_notes"]}


def test_the_interests_are_one_text_with_each_repeated_three_times_twice_and_once(tmp_path: Path) -> None:
    texts: list[str] = []

    def keep(given: list[str]) -> NDArray[np.float32]:
        texts.extend(given)
        return embed(given)

    interests = {"primary": ["caches"], "secondary": ["sheep"], "exploratory": ["kites"]}
    answer(tmp_path, {"interests": interests}, {"embed": keep}, {"title": "Title", "abstract": "Abstract"})
    [query] = [text for text in texts if "caches" in text]
    assert [len(re.findall(word, query)) for word in ("caches", "sheep", "kites")] == [3, 2, 1]
    assert any(re.fullmatch(r"Title\W+Abstract\W*", text) for text in texts)


def test_of_papers_that_are_as_alike_as_the_document_says_the_second_loses_two_tenths(tmp_path: Path) -> None:
    """At cosines of .9 and .43 to the interest two papers are .9 × .43 + √(1 - .9²) × √(1 - .43²) = .7806 alike, at .9
    and .46 .8010.
    """
    losses = []
    for number, other in enumerate((0.43, 0.46)):
        (folder := tmp_path / f"{number}").mkdir()
        papers = [{"abstract": f"near {cosine}"} for cosine in (0.9, other)]
        for mode in ("balanced", "diversity"):
            (place := folder / mode).mkdir()
            found = answer(place, {}, {"ranking_mode": mode}, *papers)["ranked_papers"]
            losses.append([each["score"]["final"] for each in found])
    assert losses[0] == losses[1]
    assert losses[3] == pytest.approx([losses[2][0], losses[2][1] - 0.2])


def test_a_score_stays_between_minus_a_half_and_one_and_a_half(tmp_path: Path) -> None:
    best = {"title": "Folding bridges", "abstract": "near 1.0", "age": 0, **CODE, **LOCAL}
    (tmp_path / "high").mkdir()
    (tmp_path / "low").mkdir()
    high = answer(tmp_path / "high", MUST, {"ranking_mode": "novelty"}, best)["ranked_papers"][0]["score"]["final"]
    assert high == pytest.approx(0.3 + 0.1 + 0.15 + 0.1 + 0.2 + 0.15 * 0.8 + 0.1)
    worst = {"title": "A survey, benchmark and dataset", "abstract": "near 0.0", "age": 400}
    wishes = {**AUTHOR, **INSTITUTION, "keywords": {**MUST["keywords"], **SOFT["keywords"]}}
    low = answer(tmp_path / "low", wishes, {}, worst)["ranked_papers"][0]["score"]["final"]
    assert low == pytest.approx(0.2 * 0.1 - 0.3)
