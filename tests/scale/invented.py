"""Invented texts, papers and profiles in any number, the same at each call."""

import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from paper_assets.paper import Paper
from paper_assets.profile import Profile, profile_content
from tests.invented_papers import paper

FIRST = date(2026, 3, 2)
_WORDS = [
    "frog",
    "marsh",
    "granite",
    "stone",
    "sorting",
    "network",
    "depth",
    "vector",
    "language",
    "retrieval",
    "calibration",
    "tree",
    "ensemble",
    "speech",
    "graph",
    "kernel",
    "diffusion",
    "sparse",
    "attention",
    "protein",
    "orbit",
    "tide",
    "lattice",
    "theorem",
    "proof",
    "sample",
    "survey",
    "benchmark",
    "dataset",
]


def texts(count: int) -> list[str]:
    """Distinct texts of 5 to 25 words."""
    chance = random.Random(16)
    return [f"{' '.join(chance.choices(_WORDS, k=chance.randint(5, 25)))} {number}" for number in range(count)]


def papers(days: int, per_day: int) -> list[Paper]:
    """Return this number of papers for each of the days from FIRST on."""
    abstracts = iter(texts(2 * days * per_day))
    return [
        paper(f"{day:%y%m}.{day.day:02d}{number:03d}", day, title=next(abstracts), abstract=next(abstracts))
        for day in days_from_first(days)
        for number in range(per_day)
    ]


def days_from_first(days: int) -> list[date]:
    return [FIRST + timedelta(days=back) for back in range(days)]


def records(count: int) -> dict[str, dict[str, Any]]:
    """Return this number of profiles as in their files, all different, by name."""
    chance = random.Random(5)
    found = {}
    for number in range(count):
        one, two, three, hard, soft = chance.sample(_WORDS, 5)
        found[f"p{number:02d}"] = {
            "interests": {"primary": [f"{one} {two}"], "secondary": [three]},
            "keywords": {"must_include": [one], "exclude": {"hard": [f"{hard} {two}"], "soft": [soft]}},
            "ranking": {"interest_mode": ("hybrid", "seed", "lanes")[number % 3], "threshold": 0.0},
        }
    return found


def profiles(count: int) -> list[Profile]:
    return [Profile(name=name, content=profile_content(each, source=name)) for name, each in records(count).items()]


def written(folder: Path, count: int) -> Path:
    """The profiles as a folder of folders."""
    import json

    for name, each in records(count).items():
        (folder / name).mkdir(parents=True)
        (folder / name / "profile.json").write_text(json.dumps(each), encoding="utf-8")
    return folder
