"""Hash what candidates and rankings are made from, so that a stored one is recognized as current.

Belongs here: everything that a ranking depends on, and nothing that computes one; `status` loads no more than this.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from hashlib import sha256

from paper_assets.profile import Profile, RankingOptions
from paper_assets.settings import ScoringConfig


def candidate_fingerprint(
    profile: Profile,
    *,
    as_of: date,
    scoring: ScoringConfig,
    papers: Mapping[date, str],
    shown: frozenset[str],
    imported: frozenset[str] = frozenset(),
    code_version: str,
) -> str:
    """Return 32 hex digits over the profile's content, the papers of the window (content hash by day), the papers
    shown on earlier days, liked papers that the profile does not name itself, the numbers of the scoring and our
    code's version.
    """
    numbers = {field.name: getattr(scoring, field.name) for field in fields(scoring)}
    return _hash(
        {
            "profile": profile.content_hash,
            "as_of": as_of.isoformat(),
            "scoring": {**numbers, "weights": dict(scoring.weights)},
            "papers": {day.isoformat(): papers[day] for day in papers},
            "shown": sorted(shown),
            **({"imported": sorted(imported)} if imported else {}),
            "code": code_version,
        }
    )


def ranking_fingerprint(
    candidates: str,
    *,
    options: RankingOptions,
    texts: Sequence[str],
    model: str | None,
    llm: str | None,
    code_version: str,
    preferences: str | None = None,
    considered: date | None = None,
) -> str:
    """Return 32 hex digits over the candidates' fingerprint, the options, the texts that papers are compared with (a
    liked paper's changes with the paper), the embedding model (None: keywords), the LLM (None: not asked), our code,
    what ratings have taught (None: nothing) and the last day that considered the papers for the same wishes.
    """
    return _hash(
        {
            "candidates": candidates,
            "options": options.model_dump(mode="json"),
            "texts": list(texts),
            "model": model,
            "llm": llm if options.enable_llm_verification else None,
            "code": code_version,
            **({"preferences": preferences} if preferences else {}),
            **({"considered": considered.isoformat()} if considered else {}),
        }
    )


def wishes_fingerprint(profile: Profile) -> str:
    """Return 32 hex digits over what decides how relevant a paper is to the profile: its interests, keywords and
    feed.
    """
    content = profile.content.model_dump(mode="json", include={"interests", "keywords", "feed"})
    return _hash({**content, "interest_mode": profile.content.ranking.interest_mode})


def _hash(parts: Mapping[str, object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
