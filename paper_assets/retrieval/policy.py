"""Policy: which documents a caller may be given at all, whatever their score (SPEC M1, M3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PRIVATE = "private, and of somebody else"
OTHER_LANGUAGE = "not in the language asked for"
OUTDATED = "not the latest version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The caller (a profile's name; None: anybody), the language asked for (None: any), and the latest version of
    papers as far as it is known beside the candidates themselves.

    What does not say that it is public is private; what does not say its language is in none.
    """

    owner: str | None = None
    language: str | None = None
    latest: Mapping[str, int] = field(default_factory=dict)


def refusals(metadatas: Iterable[Mapping[str, Any]], policy: Policy) -> list[str | None]:
    """For each document why it may not pass, or None. A private document of somebody else says nothing of versions."""
    documents = list(metadatas)
    reasons = [_refusal(document, policy) for document in documents]
    seen = _newest(document for document, reason in zip(documents, reasons, strict=True) if reason != PRIVATE)
    return [
        reason or (OUTDATED if _is_outdated(document, seen, policy) else None)
        for document, reason in zip(documents, reasons, strict=True)
    ]


def access(owner: str | None) -> dict[str, Any]:
    """The same rule as a condition of a search, so that what may not pass takes no place among the nearest."""
    public = {"access_level": {"$eq": "public"}}
    return public if owner is None else {"$or": [public, {"owner": {"$eq": owner}}]}


def _refusal(document: Mapping[str, Any], policy: Policy) -> str | None:
    if document.get("access_level") != "public":
        owner = document.get("owner")
        if owner is None or owner != policy.owner:
            return PRIVATE
    if policy.language is not None and document.get("language") != policy.language:
        return OTHER_LANGUAGE
    return None


def _newest(documents: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for document in documents:
        version = document.get("version")
        if isinstance(version, int):
            paper = document.get("paper_id", "")
            newest[paper] = max(version, newest.get(paper, version))
    return newest


def _is_outdated(document: Mapping[str, Any], seen: Mapping[str, int], policy: Policy) -> bool:
    version, paper = document.get("version"), document.get("paper_id", "")
    if not isinstance(version, int):
        return False
    return version < max(seen.get(paper, version), policy.latest.get(paper, version))
