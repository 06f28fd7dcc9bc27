"""Invented papers and profiles for the tests of the gatekeeper: small vocabularies, so that things coincide."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from paper_assets.paper import Paper
from paper_assets.profile import Profile, profile_content

AS_OF = date(2026, 3, 31)
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)

WORDS = [
    "graph", "graphs", "neural", "network", "networks", "language", "Language", "model", "models",
    "zero-shot", "zero", "shot", "RL", "URL", "C++", "C", "study", "studies", "class", "classes", "naïve",
    "Naive", "強化学習", "언어모델을", "언어", "GPT-4", "GPT", "R&D", "β-VAE", "vae", "biomedical", "medical",
    "survey.", "(survey)", "GNNs", "GAN", "generative", "adversarial", "robot", "robotics", "GPT-4o", "for",
    "with", "\u2013", ",", "\n", "\t", "++", "\u00ad", "s",
]  # fmt: skip
KEYWORDS = [
    "graph neural networks", "graph", "language model", "Language-Models", "zero shot", "RL", "C++", "C", "studies",
    "class", "naive", "学習", "언어", "GPT-4", "R&D", "vae", "medical", "surveys", "survey", "++", "models",
    "title:survey", "abstract:models", "robot", "GPT-4*", "title: mode*",
]  # fmt: skip
NAMES = [
    "Ana Müller", "Muller, Ana", "A. Muller", "Li Wei", "Wei Li", "Søren Å. Berg", "Berg, Soren A.", "Ng, K., Jr.",
    "Ana K. Muller", "Ana L. Müller", "O’Connor, Maria K.", "Maria O'Connor",
]  # fmt: skip
PLACES = ["MIT", "Smith College", "Dept. of CS, MIT, Cambridge", "Université de Genève", "Geneve", "ETH"]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)
instants = st.none() | st.integers(-40, 4000).map(lambda age: NOW - timedelta(days=age, hours=age % 24))


@st.composite
def papers(draw: st.DrawFn, *, most: int = 8) -> list[Paper]:
    """Papers with distinct ids."""
    ids = draw(st.lists(st.integers(0, 30), max_size=most, unique=True))
    return [
        Paper(
            paper_id=f"2603.{number:05d}",
            title=draw(texts),
            abstract=draw(texts),
            authors=tuple(draw(st.lists(st.sampled_from(NAMES), max_size=3))),
            published=draw(instants),
            comment=draw(st.sampled_from([None, "12 pages", "Project page: https://some-lab.github.io/thing"])),
            github_url=draw(st.none() | st.just("https://github.com/invented/thing")),
            affiliations=tuple(draw(st.lists(st.sampled_from(PLACES), max_size=2))),
            withdrawn=draw(st.booleans()) and draw(st.booleans()),
        )
        for number in ids
    ]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Profiles with any mixture of wishes."""
    some = st.lists(st.sampled_from(KEYWORDS), max_size=4)
    visible = texts.filter(lambda text: text.replace("\u00ad", "").strip())  # a profile of soft hyphens is refused
    phrases = st.lists(visible, max_size=3)
    return profile(
        interests={
            "primary": [draw(st.sampled_from(["graph learning", "models of language", "C++", "naïve study"]))],
            "secondary": draw(phrases),
            "exploratory": draw(phrases),
            "papers": [{"title": title, "abstract": draw(texts)} for title in draw(phrases)],
        },
        keywords={"must_include": draw(some), "exclude": {"hard": draw(some), "soft": draw(some)}},
        preferred_authors=draw(st.lists(st.sampled_from(NAMES), max_size=2)),
        preferred_institutions=draw(st.lists(st.sampled_from(["MIT", "geneve", "ETH Zürich"]), max_size=2)),
        constraints={"min_year": draw(st.none() | st.integers(2016, 2026)), "require_code": draw(st.booleans())},
        ranking={
            "top_k": draw(st.integers(1, 6)),
            "purpose": draw(st.sampled_from(["general", "literature_review", "implementation", "idea_generation"])),
            "ranking_mode": draw(st.sampled_from(["balanced", "novelty", "practicality"])),
            "interest_mode": draw(st.sampled_from(["seed", "lanes", "library", "hybrid"])),
            "threshold": draw(
                st.sampled_from([None, None, 0.0, 1e-4, 0.02, 0.2, 1.0])
            ),  # random vectors are seldom near
        },
    )


def profile(**content: Any) -> Profile:
    """A profile with one interest and whatever else is given."""
    record = {"interests": {"primary": ["graph learning"]}, **content}
    return Profile(name="invented", content=profile_content(record, source="invented"))


def paper(paper_id: str = "2603.00001", **values: Any) -> Paper:
    """A paper of two weeks ago without anything special."""
    given = {
        "title": "A title",
        "abstract": "An abstract.",
        "authors": ("Ana Müller",),
        "published": datetime(2026, 3, 20, tzinfo=UTC),
    }
    return Paper(paper_id=paper_id, **{**given, **values})


def unit_vectors(count: int, *, seed: int, dimension: int = 24) -> NDArray[np.float32]:
    """Random unit rows (count, dimension)."""
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
