"""Read every path, threshold and key from the environment once; the interfaces pass them down.

Each default is defined once, beside the sentence that justifies it. To add a setting, add a field to `Settings`: its
variable is its name in capitals behind PAPER_ASSETS_, and its type says how the variable's text becomes a value.
Nothing below the interfaces and the Dagster layer reads the environment or the clock.

Without a setting, the data folder is the current folder in a checkout, or if it already contains profiles or papers;
elsewhere it is the user's data folder, so that `uv tool install` and `pipx install` are enough.
"""

import getpass
import math
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, time
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from paper_assets.errors import InvalidInput
from paper_assets.small_files import first_fault
from paper_assets.weights import DEFAULT_WEIGHTS, DIMENSIONS, weights_from_json

# Not settings: stores/kept_settings.py provides them and models/llm_config.py reads them. Where the use of the language
# model is recorded, the current month, and why the kept language model cannot be read.
LLM_USE_FOLDER = "PAPER_ASSETS_LLM_USE_FOLDER"
LLM_MONTH = "PAPER_ASSETS_LLM_MONTH"
LLM_FAULT = "PAPER_ASSETS_LLM_FAULT"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a value must be, for the message about one that is not."""

    words: str


def _absolute(path: Path, info: ValidationInfo) -> Path:
    """Resolve a relative path against the working directory, which is the context."""
    if info.context is None:
        return path
    try:
        resolved = Path(info.context / path.expanduser()).absolute()
    except RuntimeError:
        raise ValueError("no such user") from None
    str(resolved).encode()  # DuckDB and SQLite open no other file; raises a ValueError
    return resolved


def _listed(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _day(value: object) -> object:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _time(value: object) -> object:
    if not isinstance(value, str):
        return value
    hour, _, minute = value.partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2):
        raise ValueError("not a time of day")
    return time(int(hour), int(minute))


def _weekdays(value: object) -> object:
    """Expand `mon-fri` and `mon,wed`, also across the end of the week (`sat-mon`), in the order of the week."""
    if not isinstance(value, str):
        return value
    chosen: set[str] = set()
    for part in value.lower().split(","):
        first, *last = (WEEKDAYS.index(name.strip()[:3]) for name in part.split("-", 1))
        end = last[0] if last else first
        chosen |= {WEEKDAYS[(first + step) % 7] for step in range((end - first) % 7 + 1)}
    return tuple(name for name in WEEKDAYS if name in chosen)


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, KeyError, ValueError):
        raise ValueError("no such time zone") from None
    return name


def _whole_number(value: object) -> object:
    if not isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return int(number)


_SECONDS = Expected("a number of seconds from 0")

Folder = Annotated[
    Path, AfterValidator(_absolute), Field(validate_default=True), Expected("a folder with a name in UTF-8")
]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), _SECONDS]
WholeSeconds = Annotated[int, BeforeValidator(_whole_number), Field(ge=0), _SECONDS]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False), Expected("a number above 0")]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]  # comma separated
Port = Annotated[int, BeforeValidator(_whole_number), Field(ge=1, le=65_535), Expected("a port from 1 to 65535")]
MailAddress = Annotated[
    str, Field(pattern=r"^([!-?A-~]{1,64}@[A-Za-z0-9][A-Za-z0-9.-]{0,251})?$"), Expected("a mail address")
]
Address = Annotated[str, AfterValidator(lambda text: text.rstrip("/"))]
ClusterAddress = Annotated[
    Address,
    Field(pattern=r"^((tcp|tls)://[A-Za-z0-9.:\[\]-]{1,253}:[0-9]{1,5}/?)?$"),
    Expected("an address like tcp://host:8786"),
]
ServerAddress = Annotated[
    Address,
    Field(pattern=r"^(https?://[A-Za-z0-9.:\[\]-]{1,253}/?)?$"),
    Expected("an address like http://host:8000"),
]
Switch = Annotated[bool, Expected("on or off")]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
TimeOfDay = Annotated[time, BeforeValidator(_time), Expected("a time of day like 06:30")]
Weekdays = Annotated[
    tuple[str, ...], BeforeValidator(_weekdays), Field(min_length=1), Expected("weekdays like mon-fri or mon,wed")
]
TimeZone = Annotated[str, AfterValidator(_zone), Expected("a time zone like UTC or Europe/Berlin")]
Day = Annotated[date, BeforeValidator(_day), Expected("a day like 2025-01-01")]


ARCHIVE = "optim_best_practices_v1"  # B1: the version is in the name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringConfig:
    """The numbers of SPEC 2. Weights are per purpose, in the order of DIMENSIONS, and sum to 1."""

    weights: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: DEFAULT_WEIGHTS)  # G8
    literature_review_grace_years: int = 5  # G3
    interest_repeats: tuple[int, int, int] = (3, 2, 1)  # primary, secondary, exploratory, G4
    interest_weights: tuple[float, float, float] = (1.0, 0.7, 0.4)  # the same, of single interests
    floor: float = 0.01  # G17: the lowest probability of a listed paper
    # G17c: points of log odds by which a point of the score beside relevance (keywords, authors, code, recency) moves a
    # paper. Code moves it by 0.75 points; with purpose implementation, where code matters most, by 2.8.
    preference_weight: float = 10.0
    implementation_preference_weight: float = 14.0
    survey_bonus: float = 0.15  # G8: of a survey, for purpose literature_review
    # G8: purpose idea_generation does not prefer what is certain: probabilities from here on count the same. It prefers
    # papers that differ from each other.
    idea_probability: float = 0.8
    idea_similarity: float = 0.6  # cosine from which a paper repeats another, in mode diversity too unless mode is seed
    bm25_k1: float = 1.2  # G4: how soon a repeated word stops counting
    recency_steps: tuple[tuple[int, float], ...] = (
        (14, 1.0),
        (30, 0.85),
        (90, 0.7),
        (180, 0.5),
        (365, 0.3),
    )  # G7
    recency_floor: float = 0.1  # G7
    llm_band: tuple[float, float] = (0.4, 0.7)  # G5: a paper of relevance from the first to below the second is checked
    llm_batch: int = 10  # G5: papers in one question
    llm_abstract: int = 500  # G5: characters of the abstract that are shown
    practicality_code: float = 0.5  # G7
    practicality_pdf: float = 0.3  # G7
    mode_bonus: float = 0.1  # G9
    soft_penalty: float = -0.15  # G9
    soft_penalty_floor: float = -0.3  # G9
    diversity_similarity: float = 0.8  # G11: cosine from which a paper repeats another
    diversity_penalty: float = -0.2  # G11
    similar_pair: float = 0.7  # G14: cosine from which two papers are noted as similar
    similar_pair_with_traits: float = 0.6  # G14: the same, if they also share a problem and a method
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
class RetrievalConfig:
    """The numbers of SPEC 3."""

    k: int = 10  # R2: documents of a standard retrieval
    k_per_side: int = 2  # R3: documents for each side of a question
    bm25_k1: float = 1.2  # how soon a repeated word stops counting; measured together with the next two
    bm25_b: float = 0.4  # how much a long text loses by its length
    lexical_share: float = 0.48  # hybrid: BM25 against cosine; docs/evaluation.md
    # R8: similarity below which the best of a side is called weak. The best of 1 question in 100 of CACM's is at 0.205,
    # of Perspectrum's at 0.28; of "?", of a Korean question and of nonsense over both between 0.14 and 0.21.
    floors: Mapping[str, float] = field(default_factory=lambda: {"hybrid": 0.2, "vector": 0.35, "lexical": 0.1})
    # R8: a document without a vector is taken to have the cosine `assumed_cosine` + its share of words (measured on
    # documents that have both).
    assumed_cosine: float = 0.25
    chunk_characters: int = 300  # R6
    chunk_overlap: int = 50  # R6
    best_chunks: int = 5  # R6
    shortlist: int = 5  # M1: times the wanted documents that are fetched, and reordered where they are graded
    shortlist_most: int = 200  # but no more than these (or than are wanted): 1,200 chunks for a cross-encoder
    examined: int = 40  # R7: documents whose stance is judged, at least; four questions to a language model
    max_per_source: int = 2  # M2
    fusion_constant: int = 60  # M2: k of reciprocal rank fusion (Cormack, Clarke & Buettcher 2009)
    max_tokens: int = 8_000  # M4: ten abstracts as long as arXiv allows, counted as bytes / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritingConfig:
    """The thresholds of SPEC 4 (B8); scores are whole numbers from 0 to 100."""

    attempts: int = 5  # B4: number of attempts before the best one is taken
    more_attempts: int = 3  # B4: where all of them are under `enough`
    passes: int = 90  # B4: from here on an attempt passes at once
    asks: int = 85  # B4: from here on, below `passes`, a person is asked
    enough: int = 75  # B4: the least that best-of-N takes without a warning
    archived: int = 95  # B2: from here on a rewrite is archived as a best practice
    recalled: int = 92  # B3: the least score of a best practice that is shown as an example
    duplicate_similarity: float = 0.95  # B2: cosine from which two originals are the same
    examples: int = 2  # B3: in one prompt
    example_characters: int = 500  # B3: of one example
    example_tokens: int = 1_000  # B3: of all of them together
    recall_depth: int = 100  # B3: places of each ranking that are fused
    recall_floor: float = 0.4  # B3: cosine below which an example is about something else; docs/decisions.md
    copied_share: float = (
        0.25  # B2: share of word triples from which a rewrite copies an example; rewriting/measures.py
    )
    mask_pii: bool = True  # B2: phones and mail addresses
    waiting_days: int = 3  # days without a decision after which a waiting rewrite is a warning

    def __post_init__(self) -> None:
        if not (self.attempts >= 1 and self.more_attempts >= 0 and self.examples >= 0):
            raise InvalidInput("rewriting: attempts must be at least 1, more_attempts and examples at least 0")
        for names, least, most in (
            (("archived", "recalled"), 0, 100),
            (("duplicate_similarity", "copied_share"), 0, 1),
            (("recall_floor",), -1, 1),
            (("waiting_days",), 0, 36_500),
            (("example_characters", "example_tokens"), 0, math.inf),
            (("recall_depth",), 1, math.inf),
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


def archive_name(text: str, given_as: str) -> str:
    """Return the name of a collection of best practices, which ends in its version (B1). Raises InvalidInput."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,60}_v[0-9]+", text, re.ASCII):
        raise InvalidInput(f"{given_as} must be a name that ends in its version, like {ARCHIVE}, got {text[:60]!r}")
    return text


def _archive(name: str) -> str:
    return archive_name(name, "PAPER_ASSETS_ARCHIVE")


def _scoring(value: object) -> object:
    if isinstance(value, str):
        return ScoringConfig(weights=weights_from_json(value, given_as="PAPER_ASSETS_WEIGHTS"))
    return value


def _rewriting(value: object) -> object:
    """Read the fields that a text changes: `passes=92, mask_pii=false`. Raises InvalidInput."""
    if not isinstance(value, str):
        return value
    entries = (entry.partition("=") for entry in value.split(",") if entry.strip())
    chosen = {name.strip(): text.strip() for name, _, text in entries}
    names = [each.name for each in fields(RewritingConfig)]
    try:
        for name in chosen.keys() - set(names):
            raise InvalidInput(f"{name[:40]!r} is unknown; use {', '.join(names)}")
        return TypeAdapter(RewritingConfig).validate_python(chosen)
    except ValidationError as fault:
        raise InvalidInput(f"PAPER_ASSETS_REWRITING: {first_fault(fault)}") from None
    except InvalidInput as fault:
        raise InvalidInput(f"PAPER_ASSETS_REWRITING: {str(fault).removeprefix('rewriting: ')}") from None


class Settings(BaseModel):
    """Locations of files and servers, and limits. Paths are absolute."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Folder = Path("data")
    profiles_dir: Folder = Path("profiles")
    output_dir: Folder = Field(default_factory=lambda given: given["home"] / "output")
    pdf_dir: Folder = Field(default_factory=lambda given: given["output_dir"])
    first_day: Day = date(2025, 1, 1)  # first partition; earlier papers are kept but have no partition
    sources: Names = ("arxiv",)  # sources whose days are fetched, by their names in sources/table.py
    categories: Names = ("cs.CL", "cs.LG")  # fetched by the schedule, SPEC S1
    # When the daily fetch runs: the time of day in the time zone, on these weekdays. 01:30 UTC is after arXiv's
    # announcement at 20:00 in New York, in winter and in summer.
    fetch_at: TimeOfDay = time(1, 30)
    fetch_weekdays: Weekdays = WEEKDAYS
    time_zone: TimeZone = "UTC"
    embedding_model: str = "all-MiniLM-L6-v2"
    dask: ClusterAddress = ""  # scheduler of a Dask cluster that embeds and scores (X4); "" for this process alone
    archive: Annotated[str, AfterValidator(_archive)] = ARCHIVE  # collection of best practices in use
    cross_encoder: str = "cross-encoder/ms-marco-MiniLM-L6-v2"  # English; Korean: Dongjin-kr/ko-reranker, R6
    # NLI cross-encoder that judges stances instead of the language model, R7; "" for none
    stance_model: str = ""
    chroma_url: ServerAddress = ""  # a Chroma server instead of the folder `vectors_path` (X4)
    arxiv_url: str = "https://export.arxiv.org/api/query"
    arxiv_oai_url: str = "https://oaipmh.arxiv.org/oai"  # for `harvest` (Z4)
    # Shared by all processes of a user.
    request_gate: Folder = Field(
        default_factory=lambda: Path(tempfile.gettempdir()) / f"paper_assets-{getpass.getuser()}"
    )
    request_interval: Seconds = 3.0  # between two requests to arXiv, S2
    request_timeout: Seconds = 60.0  # for one answer
    contact: str | None = None  # added to the User-Agent, so that arXiv can reach the operator
    arxiv_pdf_url: Address = "https://arxiv.org/pdf"
    biorxiv_url: Address = "https://api.biorxiv.org"  # of bioRxiv and medRxiv (Z5)
    semantic_scholar_url: Address = "https://api.semanticscholar.org/graph/v1"
    semantic_scholar: Switch = False  # ask it about fetched papers too (S4)
    zotero_url: Address = "https://api.zotero.org"
    # The mail server that sends digests, over TLS: from the first byte on port 465, by STARTTLS on any other (Z3). The
    # password is read from PAPER_ASSETS_SMTP_PASSWORD only.
    smtp_host: str = ""
    smtp_port: Port = 587
    smtp_user: str = ""
    mail_from: MailAddress = ""
    rating_over_mcp: Switch = False  # whether an assistant may rate papers for a profile (L1)
    # Hosts from which PDFs may be fetched, I8.
    known_hosts: Annotated[Names, AfterValidator(lambda names: names or KNOWN_HOSTS)] = KNOWN_HOSTS
    pdf_megabytes: Above0 = 50.0  # a larger PDF is not read, I7
    store_deadline: Seconds = 60.0  # for which to wait for a store that another process holds
    sensor_interval: WholeSeconds = 5  # between two checks of profiles/, ratings and what is due; at least 5
    desk_url: Address = "http://127.0.0.1:8787"  # URL of the desk in digests and in Dagster
    # I6: for one call over MCP; clients stop waiting after 60.
    call_limit: Annotated[Seconds, AfterValidator(lambda limit: min(limit, 50.0))] = 50.0
    scoring: Annotated[InstanceOf[ScoringConfig], BeforeValidator(_scoring)] = Field(default_factory=ScoringConfig)
    retrieval: InstanceOf[RetrievalConfig] = Field(default_factory=RetrievalConfig)
    rewriting: Annotated[InstanceOf[RewritingConfig], BeforeValidator(_rewriting)] = Field(
        default_factory=RewritingConfig
    )

    @property
    def warehouse_path(self) -> Path:
        """Return the DuckDB file with papers and results."""
        return self.home / "warehouse.duckdb"

    @property
    def rankings_dir(self) -> Path:
        """Return the folder of the rankings that are written as JSON."""
        return self.output_dir / "rankings"

    @property
    def digests_dir(self) -> Path:
        """Return the folder of the digest pages."""
        return self.output_dir / "digests"

    @property
    def vectors_path(self) -> Path:
        """Return the folder of the Chroma collections."""
        return self.home / "chroma"

    @property
    def vectors_place(self) -> Path | str:
        """Where the vectors are searched: the folder, or the address of a Chroma server."""
        return self.chroma_url or self.vectors_path


# What a setting is called in the environment; all others PAPER_ASSETS_<NAME>. `scoring` takes the weights as JSON (G8),
# `rewriting` fields as `passes=92, asks=86` (B8), lists are comma separated.
_VARIABLES = {
    "profiles_dir": "PAPER_ASSETS_PROFILES",
    "output_dir": "OUTPUT_DIR",
    "pdf_dir": "PDF_DIR",
    "scoring": "PAPER_ASSETS_WEIGHTS",
    "retrieval": None,
}


@runtime_checkable
class FilesBehind(Protocol):
    """An environment in which files give some of the variables."""

    def file_of(self, variable: str) -> Path | None:
        """Return the file that gives the variable, or None."""


def variables() -> dict[str, str]:
    """Return the environment variables that are read, and the setting that each one gives."""
    named = {_VARIABLES.get(name, f"PAPER_ASSETS_{name.upper()}"): name for name in Settings.model_fields}
    return {variable: name for variable, name in named.items() if variable}


def load_settings(environ: Mapping[str, str], working_dir: Path, *, default_folder: Path | None = None) -> Settings:
    """Read the settings from environment variables (`variables()`); a relative path is resolved against `working_dir`.

    `default_folder` holds `data` and `profiles` where no variable names them; without it that is `working_dir`.

    An empty variable counts as unset. Raises InvalidInput naming the variable.
    """
    values = {
        name: environ[variable].strip() for variable, name in variables().items() if environ.get(variable, "").strip()
    }
    if default_folder is not None:
        for name, folder in (("home", "data"), ("profiles_dir", "profiles")):
            values.setdefault(name, str(default_folder / folder))
    try:
        return Settings.model_validate(values, context=working_dir)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        variable = next(variable for variable, setting in variables().items() if setting == name)
        expected = next(each.words for each in Settings.model_fields[name].metadata if isinstance(each, Expected))
        file = environ.file_of(variable) if isinstance(environ, FilesBehind) else None
        place = f" in {file}; correct that line" if file else ""
        raise InvalidInput(
            f"{variable} must be {expected}, got {values.get(name, str(working_dir))[:40]!r}{place}"
        ) from None


def wrong_settings(environ: Mapping[str, str], working_dir: Path) -> dict[str, str]:
    """Return every variable whose value cannot be used, with the reason in one line."""
    faults = {}
    for variable in variables():
        try:
            load_settings({variable: environ.get(variable, "")}, working_dir)
        except InvalidInput as fault:
            faults[variable] = str(fault)
    return faults


NAME = "paper-assets"


def default_folder(environ: Mapping[str, str], working_dir: Path) -> Path:
    """Return the folder of `data`, `profiles` and `dagster_home` for what no variable sets.

    With PAPER_ASSETS_HOME set it is the working folder, as the variable says where the data is.
    """
    if environ.get("PAPER_ASSETS_HOME", "").strip() or is_desk_folder(working_dir):
        return working_dir
    return user_data_path(NAME, appauthor=False)


def dagster_folder(environ: Mapping[str, str], working_dir: Path) -> Path:
    """Return the folder of Dagster's instance: DAGSTER_HOME, or `dagster_home` beside the data."""
    return Path(environ.get("DAGSTER_HOME") or default_folder(environ, working_dir) / "dagster_home")


def is_desk_folder(folder: Path) -> bool:
    """Return whether a folder is a checkout of this project, or holds profiles or papers already."""
    try:
        checkout = (folder / "pyproject.toml").is_file() and (folder / "paper_assets" / "definitions.py").is_file()
        return (
            checkout
            or (folder / "data" / "warehouse.duckdb").exists()
            or next((folder / "profiles").glob("*/profile.json"), None) is not None
        )
    except OSError:
        return False
