"""Every path, threshold and key: read once from the environment at the edge, passed down from there.

Nothing below the faces and the Dagster layer reads the environment or the clock.
"""

import getpass
import math
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from paper_assets.errors import InvalidInput

DIMENSIONS = (
    "semantic_relevance",
    "must_keywords",
    "author_trust",
    "institution_trust",
    "recency",
    "practicality",
)

ARCHIVE = "optim_best_practices_v1"  # B1: the version is in the name

# SPEC G8, in the order of DIMENSIONS.
_WEIGHTS = {
    "general": (0.30, 0.10, 0.15, 0.10, 0.20, 0.15),
    "literature_review": (0.35, 0.10, 0.15, 0.10, 0.05, 0.25),
    "implementation": (0.20, 0.10, 0.10, 0.10, 0.10, 0.40),
    "idea_generation": (0.35, 0.10, 0.10, 0.05, 0.35, 0.05),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The numbers of SPEC 2. Weights are per purpose, in the order of DIMENSIONS, and sum to 1."""

    weights: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType(dict(_WEIGHTS)))
    literature_review_grace_years: int = 5  # G3
    interest_repeats: tuple[int, int, int] = (3, 2, 1)  # primary, secondary, exploratory, G4
    hybrid_repeats: tuple[int, int, int] = (1, 1, 1)  # the same in hybrid, where lanes give the weights; measured
    lane_weights: tuple[float, float, float] = (1.0, 0.7, 0.4)  # likewise
    lane_relevant: float = 0.4  # G4: from here on, before the weight, a paper counts as relevant to a lane
    liked_best: int = 3  # G4: so many of the nearest liked papers count
    bm25_k1: float = 1.2  # G4 hybrid: how soon a repeated word stops counting
    lexical_share: float = 0.4  # G4 hybrid: BM25 against cosine; docs/evaluation.md
    # G4 hybrid: a fused score and the cosine (seed mode) that as many papers reach, measured on CACM; see the same.
    hybrid_scale: tuple[tuple[float, float], ...] = ((0.0, 0.0), (0.3, 0.4), (0.68, 0.7), (1.0, 1.0))
    recency_steps: tuple[tuple[int, float], ...] = (
        (14, 1.0),
        (30, 0.85),
        (90, 0.7),
        (180, 0.5),
        (365, 0.3),
    )  # G7
    recency_floor: float = 0.1  # G7
    llm_band: tuple[float, float] = (0.4, 0.7)  # G5: from the first, below the second, a paper is worth a question
    llm_batch: int = 15  # G5: papers in one question
    llm_abstract: int = 500  # G5: characters of the abstract that are shown
    practicality_code: float = 0.5  # G7
    practicality_pdf: float = 0.3  # G7
    mode_bonus: float = 0.1  # G9
    soft_penalty: float = -0.15  # G9
    soft_penalty_floor: float = -0.3  # G9
    diversity_similarity: float = 0.8  # G11: cosine from which a paper repeats another
    diversity_penalty: float = -0.2  # G11
    similar_pair: float = 0.7  # G14: cosine from which two papers are noted as similar
    similar_pair_with_traits: float = 0.6  # G14: the same, where they also share a problem and a method
    final_floor: float = -0.5  # G10
    final_ceiling: float = 1.5  # G10
    high_match: float = 0.7  # G13
    very_recent_days: int = 14  # G13
    older_days: int = 90  # G13

    def __post_init__(self) -> None:
        for purpose, weights in self.weights.items():
            if len(weights) != len(DIMENSIONS) or not all(math.isfinite(w) and w >= 0 for w in weights):
                raise InvalidInput(f"weights of {purpose}: expected {len(DIMENSIONS)} numbers from 0, got {weights}")
            if not math.isclose(sum(weights), 1.0, abs_tol=1e-9):
                raise InvalidInput(f"weights of {purpose} sum to {sum(weights):g}; they must sum to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How rankings are judged on labelled sets (docs/evaluation.md)."""

    ndcg_at: tuple[int, ...] = (10, 20)
    recall_at: tuple[int, ...] = (20, 100)
    coverage_at: tuple[int, ...] = (5, 10)  # 5 = the default top_k, what a reader sees
    resamples: int = 10_000  # the ends of the interval then move by about 0.001 from seed to seed
    confidence: float = 0.95
    seed: int = 20260313  # any number; fixed so that a figure can be printed again


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieving:
    """The numbers of SPEC 3."""

    k: int = 10  # R2: documents of a standard retrieval
    k_per_side: int = 2  # R3
    method: Literal["vector", "lexical", "hybrid"] = "hybrid"  # docs/evaluation.md
    lexical_share: float = 0.48  # hybrid: BM25 against cosine; docs/evaluation.md
    memory: int = 1_000_000_000  # bytes of documents that a process keeps for searching, some 200,000 abstracts
    chunk_characters: int = 300  # R6
    chunk_overlap: int = 50  # R6
    best_chunks: int = 5  # R6
    max_per_source: int = 2  # M2
    fusion_constant: int = 60  # M2: k of reciprocal rank fusion (Cormack, Clarke & Buettcher 2009)
    max_tokens: int = 8_000  # M4: ten abstracts as long as arXiv allows, counted as bytes / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The thresholds of SPEC 4 (B8); scores are whole numbers from 0 to 100."""

    attempts: int = 5  # B4: so many before the best of them is taken
    more_attempts: int = 3  # B4: where all of them are under `enough`
    passes: int = 90  # B4: from here on an attempt passes at once
    asks: int = 85  # B4: from here on, below `passes`, a person is asked
    enough: int = 75  # B4: the least that best-of-N takes without a warning
    archived: int = 95  # B2
    recalled: int = 92  # B3
    duplicate_similarity: float = 0.95  # B2: cosine from which two originals are the same
    examples: int = 2  # B3: in one prompt
    example_characters: int = 500  # B3: of one example
    example_tokens: int = 1_000  # B3: of all of them together
    recall_depth: int = 100  # B3: places of each ranking that are fused
    recall_pool: int = 10  # B3: so many of the best fused are taken in the order of their scores
    copied_share: float = 0.25  # B2: share of word triples from which a rewrite copies an example; rewriting/copying.py
    mask_pii: bool = True  # B2: phones and mail addresses
    waiting_days: int = 3  # after so many days without a person's word a waiting rewrite is a warning

    def __post_init__(self) -> None:
        if not (self.attempts >= 1 and self.more_attempts >= 0 and self.examples >= 0):
            raise InvalidInput("rewriting: attempts must be at least 1, more_attempts and examples at least 0")
        for names, least, most in (
            (("archived", "recalled"), 0, 100),
            (("duplicate_similarity", "copied_share"), 0, 1),
            (("waiting_days",), 0, 36_500),
            (("example_characters", "example_tokens"), 0, math.inf),
            (("recall_depth", "recall_pool"), 1, math.inf),
        ):
            for name in names:
                if not least <= getattr(self, name) <= most:  # nan is in no range
                    bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
                    raise InvalidInput(f"rewriting: {name} must be {bounds}, got {getattr(self, name)}")
        if not 0 <= self.enough <= self.asks <= self.passes <= 100:
            raise InvalidInput(
                "rewriting: 0 <= enough <= asks <= passes <= 100 must hold, "
                f"got enough={self.enough}, asks={self.asks}, passes={self.passes}"
            )


# Hosts by name (https only, public addresses only), or whole origins such as http://127.0.0.1:8080 for a mirror.
KNOWN_HOSTS = (
    "arxiv.org",
    "www.arxiv.org",
    "export.arxiv.org",
    "www.semanticscholar.org",
    "pdfs.semanticscholar.org",
    "aclanthology.org",
    "openreview.net",
    "proceedings.mlr.press",
    "proceedings.neurips.cc",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where things lie and how the outside world is reached. Paths are absolute."""

    home: Path
    profiles_dir: Path
    output_dir: Path
    pdf_dir: Path
    first_day: date = date(2025, 1, 1)  # first partition; earlier papers are kept but have no partition
    categories: tuple[str, ...] = ("cs.CL", "cs.LG")  # what the schedule fetches, SPEC S1
    embedding_model: str = "all-MiniLM-L6-v2"
    archive: str = ARCHIVE  # collection of best practices in use
    cross_encoder: str = "cross-encoder/ms-marco-MiniLM-L6-v2"  # English; Korean: Dongjin-kr/ko-reranker, R6
    arxiv_url: str = "https://export.arxiv.org/api/query"
    request_gate: Path = Path(tempfile.gettempdir()) / "paper_assets"  # shared by all processes of the machine
    request_interval: float = 3.0  # seconds between two requests to arXiv, S2
    request_timeout: float = 60.0  # seconds for one answer
    contact: str | None = None  # added to the User-Agent, so that arXiv can reach the operator
    arxiv_pdf_url: str = "https://arxiv.org/pdf"
    semantic_scholar_url: str = "https://api.semanticscholar.org/graph/v1"
    semantic_scholar: bool = False  # ask it about fetched papers too (S4)
    known_hosts: tuple[str, ...] = KNOWN_HOSTS  # what may be asked for somebody, I8
    pdf_megabytes: float = 50.0  # a larger PDF is not read, I7
    store_deadline: float = 60.0  # seconds to wait for a store that another process holds
    sensor_interval: int = 15  # seconds between two looks at profiles/ and at what is due
    call_limit: float = 50.0  # I6: seconds for one call over MCP; clients give up after 60
    scoring: Scoring = field(default_factory=Scoring)
    retrieving: Retrieving = field(default_factory=Retrieving)
    rewriting: Rewriting = field(default_factory=Rewriting)

    @property
    def warehouse_path(self) -> Path:
        return self.home / "warehouse.duckdb"

    @property
    def vectors_path(self) -> Path:
        return self.home / "chroma"


def archive_name(text: str, given_as: str) -> str:
    """The name of a collection of best practices, which ends in its version (B1). Raises InvalidInput."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,60}_v[0-9]+", text, re.ASCII):
        raise InvalidInput(f"{given_as} must be a name that ends in its version, like {ARCHIVE}, got {text!r}")
    return text


def load_settings(environ: Mapping[str, str], working_dir: Path) -> Settings:
    """Settings from environment variables; a relative path is taken from `working_dir`.

    Variables: PAPER_ASSETS_HOME (./data), PAPER_ASSETS_PROFILES (./profiles), OUTPUT_DIR (HOME/output),
    PDF_DIR (OUTPUT_DIR), PAPER_ASSETS_FIRST_DAY, PAPER_ASSETS_CATEGORIES (comma separated),
    PAPER_ASSETS_EMBEDDING_MODEL, PAPER_ASSETS_ARXIV_URL, PAPER_ASSETS_REQUEST_GATE,
    PAPER_ASSETS_REQUEST_INTERVAL, PAPER_ASSETS_REQUEST_TIMEOUT, PAPER_ASSETS_CONTACT,
    PAPER_ASSETS_STORE_DEADLINE, PAPER_ASSETS_SENSOR_INTERVAL, PAPER_ASSETS_ARXIV_PDF_URL,
    PAPER_ASSETS_SEMANTIC_SCHOLAR_URL, PAPER_ASSETS_SEMANTIC_SCHOLAR (on or off), PAPER_ASSETS_KNOWN_HOSTS (comma
    separated), PAPER_ASSETS_PDF_MEGABYTES, PAPER_ASSETS_CROSS_ENCODER, PAPER_ASSETS_ARCHIVE,
    PAPER_ASSETS_REWRITING (fields of `Rewriting` as `passes=92, asks=86`, B8),
    PAPER_ASSETS_CALL_LIMIT (at most 50). An empty variable counts as unset. Raises InvalidInput naming the variable.
    """
    given = {name: value.strip() for name, value in environ.items() if value.strip()}

    def path(name: str, default: Path) -> Path:
        return (working_dir / Path(given[name]).expanduser() if name in given else default).absolute()

    def seconds(name: str, default: float) -> float:
        try:
            value = float(given.get(name, default))
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise InvalidInput(f"{name} must be a number of seconds from 0, got {given[name]!r}")
        return value

    home = path("PAPER_ASSETS_HOME", working_dir / "data")
    output_dir = path("OUTPUT_DIR", home / "output")
    categories = tuple(
        part.strip() for part in given.get("PAPER_ASSETS_CATEGORIES", "cs.CL,cs.LG").split(",") if part.strip()
    )
    try:
        first_day = date.fromisoformat(given.get("PAPER_ASSETS_FIRST_DAY", "2025-01-01"))
    except ValueError:
        raise InvalidInput(
            f"PAPER_ASSETS_FIRST_DAY must be a day like 2025-01-01, got {given['PAPER_ASSETS_FIRST_DAY']!r}"
        ) from None
    return Settings(
        home=home,
        profiles_dir=path("PAPER_ASSETS_PROFILES", working_dir / "profiles"),
        output_dir=output_dir,
        pdf_dir=path("PDF_DIR", output_dir),
        first_day=first_day,
        categories=categories,
        embedding_model=given.get("PAPER_ASSETS_EMBEDDING_MODEL", "all-MiniLM-L6-v2"),
        archive=archive_name(given.get("PAPER_ASSETS_ARCHIVE", ARCHIVE), "PAPER_ASSETS_ARCHIVE"),
        cross_encoder=given.get("PAPER_ASSETS_CROSS_ENCODER", "cross-encoder/ms-marco-MiniLM-L6-v2"),
        arxiv_url=given.get("PAPER_ASSETS_ARXIV_URL", "https://export.arxiv.org/api/query"),
        request_gate=path(
            "PAPER_ASSETS_REQUEST_GATE", Path(tempfile.gettempdir()) / f"paper_assets-{getpass.getuser()}"
        ),
        request_interval=seconds("PAPER_ASSETS_REQUEST_INTERVAL", 3.0),
        request_timeout=seconds("PAPER_ASSETS_REQUEST_TIMEOUT", 60.0),
        contact=given.get("PAPER_ASSETS_CONTACT"),
        arxiv_pdf_url=given.get("PAPER_ASSETS_ARXIV_PDF_URL", "https://arxiv.org/pdf").rstrip("/"),
        semantic_scholar_url=given.get(
            "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL", "https://api.semanticscholar.org/graph/v1"
        ).rstrip("/"),
        semantic_scholar=_switch(given, "PAPER_ASSETS_SEMANTIC_SCHOLAR"),
        known_hosts=tuple(part.strip() for part in given.get("PAPER_ASSETS_KNOWN_HOSTS", "").split(",") if part.strip())
        or KNOWN_HOSTS,
        pdf_megabytes=_megabytes(given),
        store_deadline=seconds("PAPER_ASSETS_STORE_DEADLINE", 60.0),
        sensor_interval=int(seconds("PAPER_ASSETS_SENSOR_INTERVAL", 15.0)),
        call_limit=min(seconds("PAPER_ASSETS_CALL_LIMIT", 50.0), 50.0),
        rewriting=_rewriting(given.get("PAPER_ASSETS_REWRITING", "")),
    )


def _rewriting(text: str) -> Rewriting:
    """`passes=92, asks=86`; true and false for a switch. Raises InvalidInput with the entry."""
    defaults, chosen = Rewriting(), {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in Rewriting.__slots__:
            known = ", ".join(Rewriting.__slots__)
            raise InvalidInput(f"PAPER_ASSETS_REWRITING: {name[:40]!r} is unknown; use {known}")
        kind = type(getattr(defaults, name))
        try:
            chosen[name] = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
        except (ValueError, KeyError):
            wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
            raise InvalidInput(f"PAPER_ASSETS_REWRITING: {name} must be {wanted}, got {value[:40]!r}") from None
    try:
        return replace(defaults, **chosen)
    except InvalidInput as fault:
        raise InvalidInput(f"PAPER_ASSETS_REWRITING: {str(fault).removeprefix('rewriting: ')}") from None


def _switch(given: Mapping[str, str], name: str) -> bool:
    known = {"on": True, "1": True, "true": True, "yes": True, "off": False, "0": False, "false": False, "no": False}
    text = given.get(name, "off")
    if text.lower() not in known:
        raise InvalidInput(f"{name} must be on or off, got {text[:40]!r}")
    return known[text.lower()]


def _megabytes(given: Mapping[str, str]) -> float:
    text = given.get("PAPER_ASSETS_PDF_MEGABYTES", "50")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"PAPER_ASSETS_PDF_MEGABYTES must be a number above 0, got {text[:40]!r}")
    return value
