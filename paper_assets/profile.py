"""Profile: a researcher's interests as a folder `profiles/<name>/`: schema, validation, content hash (SPEC G1, A1)."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from paper_assets import small_files
from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.paper_id import unversioned
from paper_assets.small_files import first_fault, is_broken_link, is_present
from paper_assets.text.cleaning import encodable, without_controls
from paper_assets.text.languages import LANGUAGES
from paper_assets.text.statement_languages import language_within
from paper_assets.text.statements import LONGEST_STATEMENT, read_statement
from paper_assets.weights import Weights

Purpose = Literal["general", "literature_review", "implementation", "idea_generation"]
RankingMode = Literal["balanced", "novelty", "practicality", "diversity"]
ContrastiveType = Literal["method", "assumption", "domain"]
InterestView = Literal["seed", "lanes", "library"]
Learning = Literal["auto", "off"]
InterestMode = Literal["seed", "lanes", "library", "hybrid"]

LONGEST_TITLE = 120  # characters
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")  # also a partition key and a folder name


def _visible(text: str) -> str:
    cleaned = without_controls(text).strip()
    if not any(each.isprintable() and not each.isspace() for each in cleaned):
        raise ValueError("it has no visible character; write words, or remove it")
    return cleaned


Words = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000), AfterValidator(_visible)
]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, defer_build=True
    )  # a large file that is not read costs nothing


class LikedPaper(_Part):
    """A paper that the reader likes: the id of a stored paper, or title and abstract. In JSON an id may
    stand for itself. With both, the text is what counts while the id is unknown.
    """

    paper_id: Words | None = None
    title: Words | None = None
    abstract: str = ""

    @field_validator("paper_id")
    @classmethod
    def _without_version(cls, paper_id: str | None) -> str | None:
        return paper_id and unversioned(paper_id)

    @model_validator(mode="after")
    def _require_id_or_title(self) -> Self:
        if not (self.paper_id or self.title):
            raise ValueError("give a paper id, or an object with title and abstract")
        return self


def _liked(entry: object) -> object:
    return {"paper_id": entry} if isinstance(entry, str) else entry


class Interests(_Part):
    """What the reader looks for (G4): interests in words, primary ones with most weight, and liked papers as examples.

    A paper liked by its id counts as read. Papers on a topic of `avoid` leave the list or lose points; those on one of
    `less` lose half as many and never leave it, also if `avoid` has the topic too.
    """

    primary: list[Words] = []
    secondary: list[Words] = []
    exploratory: list[Words] = []
    avoid: list[Words] = Field([], exclude_if=lambda topics: not topics)
    less: list[Words] = Field([], exclude_if=lambda topics: not topics)
    papers: list[Annotated[LikedPaper, BeforeValidator(_liked)]] = []

    @property
    def in_words(self) -> bool:
        """Return whether there are interests in words."""
        return bool(self.primary or self.secondary or self.exploratory)


class Exclude(_Part):
    """hard removes a paper (G3), soft lowers its score (G9)."""

    hard: list[Words] = []
    soft: list[Words] = []


class Keywords(_Part):
    """Words that raise a paper, and words that remove or lower it."""

    must_include: list[Words] = []
    exclude: Exclude = Exclude()


class Constraints(_Part):
    """Conditions that remove a paper that does not meet them (G3)."""

    min_year: int | None = Field(None, ge=1900, le=9999)
    require_code: bool = False


class FeedOptions(_Part):
    """Which papers reach the profile: arXiv categories (without any, all stored), a window of days, repeats or not."""

    categories: list[Words] | None = None
    exclude_categories: list[Words] = Field([], exclude_if=lambda codes: not codes)  # primary:cs.CV: the primary only
    window_days: int = Field(7, ge=1, le=366)
    repeat: bool = False

    @field_validator("categories")
    @classmethod
    def _none_means_all(cls, categories: list[str] | None) -> list[str] | None:
        return categories or None


class RankingOptions(_Part):
    """How candidates are ordered. The command line and MCP show the descriptions."""

    top_k: int = Field(5, ge=1, le=1000, description="Length of the list.")
    purpose: Purpose = Field("general", description="Sets the weights.")
    ranking_mode: RankingMode = Field("balanced", description="What earns a bonus.")
    include_contrastive: bool = Field(False, description="Give the last place to a contrasting paper.")
    contrastive_type: ContrastiveType = Field("method", description="What that paper differs in.")
    enable_llm_verification: bool = Field(True, description="Let an LLM check doubtful papers.")
    interest_mode: InterestMode = Field("hybrid", description="How relevance is measured.")
    # Instead of the setting's (G17) and the purpose's (G8). Not written where they are not used, so that they change no
    # older profile's hash.
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        exclude_if=lambda threshold: threshold is None,
        description="Threshold: lowest probability of being on topic.",
    )
    weights: Weights | None = Field(None, exclude_if=lambda weights: weights is None)
    learning: Learning = Field("auto", exclude_if=lambda learning: learning == "auto")  # L3


class RewritingOptions(_Part):
    """The levels for which the first `papers` of each list are rewritten (none: no rewriting), and the language."""

    target_levels: list[Literal["public", "student", "expert"]] = []
    papers: int = Field(3, ge=0, le=100)
    language: str | None = Field(None, exclude_if=lambda language: language is None)  # None: that of the original (B11)

    @field_validator("language")
    @classmethod
    def _is_known(cls, language: str | None) -> str | None:
        if language is not None and language not in LANGUAGES:
            raise ValueError(f"use a two-letter code, one of {', '.join(LANGUAGES)}")
        return language


class ProfileContent(_Part):
    """The schema of `profile.json` (G1). Unknown keys and wrong types are errors that name the key.

    `title`: what readers call the profile, in any script; no result depends on it. `statement`: what the reader wants
    in the words that the other fields were read from; it ranks nothing.
    """

    title: Annotated[str, Field(max_length=LONGEST_TITLE)] | None = Field(None, exclude_if=lambda text: text is None)
    statement: Annotated[str, Field(max_length=LONGEST_STATEMENT)] | None = Field(
        None, exclude_if=lambda text: text is None
    )
    interests: Interests = Interests()
    keywords: Keywords = Keywords()
    preferred_authors: list[Words] = []
    preferred_institutions: list[Words] = []
    constraints: Constraints = Constraints()
    feed: FeedOptions = FeedOptions()
    ranking: RankingOptions = RankingOptions()
    rewriting: RewritingOptions = RewritingOptions()

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not (self.interests.in_words or self.interests.papers or self.keywords.must_include):
            raise ValueError(
                "interests: name at least one interest under primary, secondary, exploratory or papers, or keywords"
            )
        return self


_reading = lru_cache(maxsize=4096)(read_statement)


def understood(content: ProfileContent) -> tuple[Interests, tuple[str, ...]]:
    """Return the interests as rankings use them, and notes on what was understood otherwise than it is written (W3).

    An exclusion inside an interest ("language models, not vision") becomes a topic to avoid. Without interests in words
    and liked papers, the preferred keywords are the interests. An interest in another language than English is named.
    """
    interests, notes = content.interests, list[str]()
    levels: dict[str, list[str]] = {"primary": [], "secondary": [], "exploratory": []}
    avoid, less = list(interests.avoid), list(interests.less)
    for level, wanted in levels.items():
        for text in getattr(interests, level):
            reading = _reading(text)
            if not reading.avoid:
                wanted.append(text)
                continue
            wanted += reading.wanted
            avoid += reading.avoid
            less += reading.less
            notes.append(f"“{text[:80]}” is read as an exclusion of {', '.join(reading.avoid)}")
    notes += language_notes([each for level in levels for each in getattr(interests, level)], content.statement)
    if not (any(levels.values()) or interests.papers):
        levels["primary"] = list(content.keywords.must_include)
        if not content.keywords.must_include:
            notes.append("nothing says what you want to read; name at least one topic, keyword or paper")
    distinct = {
        name: list(dict.fromkeys(topics)) for name, topics in (*levels.items(), ("avoid", avoid), ("less", less))
    }
    return interests.model_copy(update=distinct), tuple(notes)


def language_notes(topics: Sequence[str], statement: str | None = None) -> tuple[str, ...]:
    """Name in one sentence the topics that are not in English, which the embedding model cannot read (W4).

    `statement`: the text in which they are, if there is one; its language is theirs.
    """
    found = {topic: language for topic in topics if (language := language_within(topic, statement))}
    if not found:
        return ()
    named = [f"“{topic[:60]}”" for topic in list(found)[:3]]
    if len(found) > len(named):
        named[-1] += f" and {len(found) - len(named)} more"
    languages = " and ".join(dict.fromkeys(LANGUAGES.get(each, each) for each in found.values()))
    which, it = ("is", "it") if len(found) == 1 else ("are", "them")
    return (f"{', '.join(named)} {which} in {languages}, and papers are compared in English: write {it} in English",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A validated profile folder: its content, the ids already read, and the local PDFs by paper id."""

    name: str
    content: ProfileContent
    read_ids: frozenset[str] = frozenset()
    questions: tuple[Mapping[str, Any], ...] = ()
    pdf_names: tuple[str, ...] = ()
    path: Path | None = field(default=None, compare=False)

    @property
    def content_hash(self) -> str:
        """Hash of everything that can change a result: content, history, questions, PDF names (A1).

        Formatting, key order and defaults written out do not change it.
        """
        text = json.dumps(profile_to_mapping(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def profile_to_mapping(profile: Profile) -> dict[str, Any]:
    """Return everything that can change a result, as JSON values with one spelling; not the name or the path."""
    return {
        "content": profile.content.model_dump(mode="json", exclude={"title"}),
        "read": sorted(profile.read_ids),
        "questions": [dict(question) for question in profile.questions],
        "pdf": sorted(profile.pdf_names),
    }


def profile_from_mapping(name: str, record: Mapping[str, Any]) -> Profile:
    """Return the inverse of `profile_to_mapping`. Raises InvalidProfile."""
    return Profile(
        name=name,
        content=profile_content(record["content"], source=f"stored profile {name}"),
        read_ids=frozenset(record["read"]),
        questions=tuple(record["questions"]),
        pdf_names=tuple(record["pdf"]),
    )


def profile_content(record: object, *, source: str) -> ProfileContent:
    """Validate the content of `profile.json`. Raises InvalidProfile: one line with `source`, the key and what to do."""
    if not isinstance(record, dict):
        raise InvalidProfile(f"{source}: expected an object with the key interests, got {type(record).__name__}")
    try:
        return ProfileContent.model_validate_json(encodable(json.dumps(record, ensure_ascii=False)))
    except ValidationError as error:
        raise InvalidProfile(f"{source}: {first_fault(error)}") from None


def load_profile(folder: Path) -> Profile:
    """Read and validate `folder/`. Raises InvalidProfile naming the file and the key; reads nothing else."""
    name = folder.name
    if not PROFILE_NAME.fullmatch(name):
        raise InvalidProfile(
            f"profile folder {name!r}: name it with a-z, 0-9, _ and - only, starting with a letter or digit"
        )
    if is_broken_link(folder):
        raise InvalidProfile(f"{folder} is a link to nothing; bring back what it leads to, or remove it")
    file = folder / "profile.json"
    return Profile(
        name=name,
        content=profile_content(read_json(file), source=str(file)),
        read_ids=load_history(folder / "read_papers.json", missing_ok=True),
        questions=_load_questions(folder / "questions.json"),
        pdf_names=_pdf_names(folder / "pdf"),
        path=folder,
    )


def _pdf_names(folder: Path) -> tuple[str, ...]:
    if not is_present(folder):
        return ()
    try:
        return tuple(sorted(encodable(entry.name) for entry in folder.iterdir() if entry.name.endswith(".pdf")))
    except NotADirectoryError:
        return ()
    except OSError as error:
        raise InvalidProfile(f"{folder} cannot be listed: {error.strerror}") from None


def profile_folders(profiles_dir: Path) -> list[Path]:
    """Return the folders that contain a `profile.json`, by name, and those for which it cannot be determined.

    Characters of a name that are not UTF-8 are question marks: no page and no store can hold them, and `load_profile`
    refuses such a name anyway. Raises InvalidProfile if the folder of profiles itself cannot be listed.
    """
    try:
        entries = [entry for entry in profiles_dir.iterdir() if _may_hold_a_profile(entry)]
        return sorted(entry.with_name(encodable(entry.name)) for entry in entries)
    except FileNotFoundError:
        raise InvalidProfile(
            f"{profiles_dir} does not exist; `paper-assets profile new` makes a profile there"
        ) from None
    except OSError as error:
        raise InvalidProfile(f"{profiles_dir} cannot be listed: {error.strerror}") from None


def _may_hold_a_profile(folder: Path) -> bool:
    """Return whether a folder may contain a profile. A broken link may: its disk may be absent today, and a profile
    that cannot be read is not removed (A1).
    """
    return is_present(folder / "profile.json") or is_broken_link(folder)


def load_history(file: Path, *, missing_ok: bool) -> frozenset[str]:
    """Return the ids already read, without version: a JSON list of ids, or of objects with `paper_id`, or `{"read":
    [...]}`.
    """
    if missing_ok and not is_present(file):
        return frozenset()
    record = read_json(file)
    entries = record.get("read", record.get("papers")) if isinstance(record, dict) else record
    if not isinstance(entries, list):
        raise InvalidProfile(f'{file}: expected a list of paper ids like ["2501.12345"]')
    ids = [entry.get("paper_id") if isinstance(entry, dict) else entry for entry in entries]
    for position, paper_id in enumerate(ids):
        if not isinstance(paper_id, str):
            raise InvalidProfile(f"{file}: entry {position + 1} is not a paper id")
    return frozenset(unversioned(paper_id) for paper_id in ids if isinstance(paper_id, str))


def read_json(file: Path) -> object:
    """Return any JSON file of a profile, without control characters in its texts.

    Raises InvalidProfile naming the file and the line that is wrong, or a key that appears twice.
    """
    try:
        return _cleaned(small_files.read_json(file, unique_keys=True))
    except InvalidInput as fault:
        raise InvalidProfile(str(fault)) from None


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [_cleaned(entry) for entry in value]
    if isinstance(value, dict):
        return {without_controls(key): _cleaned(entry) for key, entry in value.items()}
    return value


def _load_questions(file: Path) -> tuple[Mapping[str, Any], ...]:
    if not is_present(file):
        return ()
    record = read_json(file)
    if not isinstance(record, list) or not all(isinstance(entry, dict) for entry in record):
        raise InvalidProfile(f"{file}: expected a list of plans")
    return tuple(record)
