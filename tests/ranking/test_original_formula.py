"""The original document of the gatekeeper: scores by its formula, computed by hand, through the whole call."""

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
    near = [float(found[1]) if (found := re.search(r"near (0\.\d+)", text)) else 1.0 for text in texts]
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


@pytest.mark.parametrize(
    ("profile", "options", "paper", "final"), [row[1:] for row in STATEMENTS], ids=[row[0] for row in STATEMENTS]
)
def test_a_score_is_what_the_document_says(
    tmp_path: Path, profile: dict[str, Any], options: dict[str, Any], paper: dict[str, Any], final: float
) -> None:
    settings = Settings(home=tmp_path, profiles_dir=tmp_path, output_dir=tmp_path, pdf_dir=tmp_path)
    (tmp_path / "own").mkdir()
    content = {"interests": {"primary": ["caches"]}, **profile}
    (tmp_path / "own" / "profile.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "2603.00009.pdf").touch()
    given = {"paper_id": "2603.00001", "title": "T", "abstract": "near 0.8", "authors": ["Ada Lind"], **paper}
    given["published"] = f"{AS_OF - timedelta(days=given.pop('age', 10))}"
    call: dict[str, Any] = {
        "settings": settings,
        "as_of": AS_OF,
        "now": NOW,
        "embed": embed,
        "save": False,
        "interest_mode": "seed",
    }
    [ranked] = called([given], profile_path="own", **call, **options)["ranked_papers"]
    assert ranked["score"]["final"] == pytest.approx(final, abs=1e-6)
