"""Hash everything that candidates and rankings depend on, to detect whether stored ones are current.

This module computes no ranking, and imports nothing that does, so that `status` starts fast.
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
    """Return 32 hex digits that change with anything that the candidates of a day depend on.

    `papers` has the content hash of each day of the window, `shown` the papers of earlier lists, `imported` the liked
    papers that are not in the profile itself.
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
    considered: str | None = None,
) -> str:
    """Return 32 hex digits that change with anything that a ranking depends on.

    Args:
        candidates: the `candidate_fingerprint`.
        options: the ranking options.
        texts: those that papers are compared with; the text of a liked paper changes with the paper.
        model: the embedding model; None: keywords only.
        llm: the language model; None: papers are not verified.
        code_version: that of the ranking's code.
        preferences: version of what ratings have taught; None: nothing.
        considered: the last list for the same interests and its candidates; None: there is none.
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
            **({"considered": considered} if considered else {}),
        }
    )


def wishes_fingerprint(profile: Profile) -> str:
    """Return 32 hex digits that change with what relevance depends on: interests, interest mode, keywords and feed."""
    content = profile.content.model_dump(mode="json", include={"interests", "keywords", "feed"})
    return _hash({**content, "interest_mode": profile.content.ranking.interest_mode})


def _hash(parts: Mapping[str, object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
