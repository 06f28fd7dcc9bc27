"""Draft a profile: check what a reader entered and turn it into the content of `profile.json`.

The page's form, the questions at a terminal and the command's options all end in a `ProfileDraft`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from paper_assets.errors import InvalidArxivId, InvalidInput
from paper_assets.paper_id import split_arxiv_address, split_arxiv_id, split_paper_id
from paper_assets.profile import LONGEST_TITLE, PROFILE_NAME, ProfileContent, profile_content
from paper_assets.setup.categories import categories_by_name, check_category, excluded_categories
from paper_assets.text.numbers import count_of
from paper_assets.text.statements import Reading, read_statement

LONGEST_NAME = 60
_LONGEST_INTEREST = 1_000
_LONGEST_ADDRESS = 2_000
_MOST_REFERENCES = 5_000  # of one text
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:)?(10\.\d{4,9}/[^\s\"<>]+)", re.IGNORECASE)
_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
# A DOI in the address of a publisher's page, without the name of the view that may follow it.
_DOI_IN_ADDRESS = re.compile(
    r"(?:https?://)?[\w-]+(?:\.[\w-]+)+/\S*?(?<![\w.])(10\.\d{4,9}/[^\s\"<>?#&]+?)"
    r"(?:\.pdf|/(?:abstract|epdf|full|html|meta|pdf))?/?(?:[?#&]\S*)?",
    re.IGNORECASE,
)
_PREPRINT_VERSION = re.compile(r"(10\.(?:1101|64898)/[\d.]+)v\d.*", re.IGNORECASE)  # of bioRxiv and medRxiv
_SEPARATORS = re.compile(r"[\s,;|]+")
_AROUND = "()[]{}<>\"'`.:"  # brackets, quotation marks and punctuation around an id
_FILLERS = frozenset(("", "arxiv", "arxiv:", "doi", "doi:", "and", "-", "–", "*", "•", "preprint"))

_BESIDE_AN_ID = re.compile(r"\W*|[\[(]?\d{1,3}[\]).:]?|\[[a-z-]+(\.[a-z-]+)?\]", re.IGNORECASE)  # "2)", "[cs.CL]"
_LINK = re.compile(r"https?://|\bwww\.|\b[\w-]+(?:\.[\w-]+)+/", re.IGNORECASE)
_CITATION = re.compile(r"[“”\"]|\bet al\b|(?<![\d./])(19|20)\d\d(?![\d.]*\d)")  # its other words are not a mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class LikedWork:
    """A paper that the reader likes: its id in the stored form (`doi:…` for a DOI), or its title and abstract."""

    paper_id: str | None = None
    title: str = ""
    abstract: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDraft:
    """The answers from which a profile is made. Empty fields are left out of its file."""

    name: str
    title: str = ""
    interests: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    exploratory: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    papers: tuple[LikedWork, ...] = ()
    categories: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    exclude_keywords: tuple[str, ...] = ()
    exclude_categories: tuple[str, ...] = ()
    statement: str | None = None

    @property
    def in_words(self) -> tuple[str, ...]:
        """The interests in words, the main ones first."""
        return (*self.interests, *self.secondary, *self.exploratory)


def with_reading(draft: ProfileDraft, reading: Reading, *, statement: str | None = None) -> ProfileDraft:
    """Add what a text was understood to say to a draft, and the text itself as its statement."""
    return replace(
        draft,
        interests=_joined(draft.interests, reading.primary),
        secondary=_joined(draft.secondary, reading.secondary),
        exploratory=_joined(draft.exploratory, reading.exploratory),
        avoid=_joined(draft.avoid, [topic for topic in reading.avoid if topic not in reading.less]),
        less=_joined(draft.less, reading.less),
        authors=_joined(draft.authors, reading.authors),
        categories=_joined(draft.categories, reading.categories),
        exclude_categories=_joined(draft.exclude_categories, reading.exclude_categories),
        statement=draft.statement if statement is None else statement,
    )


def with_exclusions_read(draft: ProfileDraft) -> tuple[ProfileDraft, tuple[str, ...]]:
    """Move exclusions inside interests ("language models, not vision") to what the draft avoids, with notes on them."""
    notes, levels = list[str](), dict[str, Any]()
    for level in ("interests", "secondary", "exploratory"):
        levels[level] = ()
        for text in getattr(draft, level):
            reading = read_statement(text, categories=categories_by_name())
            excludes = bool(reading.avoid or reading.exclude_categories)
            levels[level] = _joined(levels[level], reading.wanted if excludes else [text])
            if excludes:
                notes.append(reading_note(text, reading))
                unwanted = replace(reading, primary=(), secondary=(), exploratory=(), authors=(), categories=())
                draft = with_reading(draft, unwanted)
    return replace(draft, **levels), tuple(notes)


def reading_note(text: str, reading: Reading) -> str:
    """Say how a text with exclusions was understood."""
    wanted = "; ".join(reading.wanted) or "nothing"
    unwanted = "; ".join(dict.fromkeys((*reading.avoid, *reading.exclude_categories)))
    return f"“{text[:80]}” was read as: looking for {wanted}; not {unwanted}"


def _joined(held: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*held, *more)))


@dataclass(frozen=True, slots=True)
class References:
    """The papers that a pasted text names, and its lines that name none. `ignored`: words beside the ids of a line."""

    ids: tuple[str, ...]
    unreadable: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def read_references(text: str) -> References:
    """Find arXiv ids, DOIs and links in a text in any form: one a line, separated by commas, inside a citation."""
    ids: dict[str, None] = {}
    unreadable: list[str] = []
    ignored: list[str] = []
    for line in text.splitlines():
        named = {token: _reference(token) for token in _SEPARATORS.split(line.strip())}
        found = [paper_id for paper_id in named.values() if paper_id]
        left = [token for token, paper_id in named.items() if not paper_id and token.casefold() not in _FILLERS]
        ids |= dict.fromkeys(found)
        if not found and left:
            unreadable.append(" ".join(line.split())[:120])
        elif not _CITATION.search(line) and (words := [token for token in left if not _BESIDE_AN_ID.fullmatch(token)]):
            ignored.append(" ".join(words)[:120])
        if len(ids) > _MOST_REFERENCES:
            raise InvalidInput(f"too many papers: at most {_MOST_REFERENCES:,} ids at a time; import a library instead")
    return References(tuple(ids), tuple(unreadable), tuple(ignored))


def ignored_note(ignored: Sequence[str]) -> str | None:
    """Say which words beside the ids of papers were not understood; None if there are none."""
    if not ignored:
        return None
    more = f" and {count_of(len(ignored) - 3, 'line')} more" if len(ignored) > 3 else ""
    return f"not understood beside the ids of papers: {', '.join(f'“{words}”' for words in ignored[:3])}{more}"


def unreadable_note(line: str) -> str:
    """Say why a line names no paper, and what to paste instead."""
    if _LINK.search(line):
        return f"{line!r} is a link without an arXiv id or DOI; paste the DOI that its page shows, or leave it out"
    return f"{line!r} names no paper: it has no arXiv id or DOI; give one, such as 1706.03762, or leave it out"


def check_name(text: str, *, taken: Collection[str] = ()) -> str:
    """Return a valid name for a profile. Raises InvalidInput with a name that would be valid, if there is one."""
    name = text.strip()
    if not PROFILE_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        proposed = proposed_name(name, taken=taken)
        hint = f"; for example {proposed}" if proposed else ""
        raise InvalidInput(
            f"{name[:60]!r} cannot be the name of a profile: use a-z, 0-9, - and _, "
            f"at most {LONGEST_NAME} characters{hint}"
        )
    if name in taken:
        raise InvalidInput(
            f"there is already a profile {name!r}; choose another name, for example {free_name(name, taken)}"
        )
    return name


def named(text: str, *, taken: Collection[str] = ()) -> tuple[str, str]:
    """Return the name of the folder of a new profile, and its title ("" if that is the same).

    A name that is valid is taken as it is; from any other words, in any script, the folder's name is derived. Raises
    InvalidInput if the name is taken or the title too long.
    """
    title = " ".join(text.split())
    if PROFILE_NAME.fullmatch(title) and len(title) <= LONGEST_NAME:
        return check_name(title, taken=taken), ""
    if len(title) > LONGEST_TITLE:
        raise InvalidInput(f"a profile's name may have {LONGEST_TITLE} characters; this one has {len(title)}")
    return proposed_name(title, taken=taken) or free_name("my-papers", taken), title


def proposed_name(text: str, *, taken: Collection[str] = ()) -> str:
    """Return a free name made from a title or an interest; empty if the text has no letter or digit of a-z, 0-9."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer) > LONGEST_NAME - 20 and name:
            break
        name = longer
    return free_name(name[:LONGEST_NAME], taken) if name else ""


def split_lines(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return the distinct lines of one or more texts, without blanks around them and without empty ones."""
    lines = (line for text in ([texts] if isinstance(texts, str) else texts) for line in text.splitlines())
    return tuple(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip()))


def draft_record(draft: ProfileDraft) -> dict[str, Any]:
    """Return what to write into `profile.json`. Raises InvalidInput, InvalidProfile."""
    for text in (*draft.in_words, *draft.avoid, *draft.less):
        if len(text) > _LONGEST_INTEREST:
            raise InvalidInput(
                f"an interest may have {_LONGEST_INTEREST:,} characters: {text[:40]!r}… has {len(text):,}"
            )
    if not (draft.in_words or draft.papers or draft.keywords):
        raise InvalidInput("describe at least one interest or keyword, or name a paper that you like")
    return added_to_record({}, draft)


def draft_content(draft: ProfileDraft) -> ProfileContent:
    """Return the validated content of the draft. Raises InvalidInput, InvalidProfile."""
    return profile_content(draft_record(draft), source="the new profile")


def added_to_record(record: Mapping[str, Any], draft: ProfileDraft) -> dict[str, Any]:
    """Return a profile's record with the answers of the draft added to it; nothing is removed."""
    edited = deepcopy(dict(record))
    if draft.title:
        edited["title"] = draft.title
    if draft.statement:
        edited["statement"] = draft.statement
    edited.setdefault("interests", {})
    excluded = [code for text in draft.exclude_categories for code in excluded_categories(text)]
    for path, values in (
        ("interests.primary", draft.interests),
        ("interests.secondary", draft.secondary),
        ("interests.exploratory", draft.exploratory),
        ("interests.avoid", draft.avoid),
        ("interests.less", draft.less),
        ("interests.papers", [_liked(work) for work in draft.papers]),
        ("keywords.must_include", draft.keywords),
        ("keywords.exclude.hard", draft.exclude_keywords),
        ("preferred_authors", draft.authors),
        ("feed.categories", list(map(check_category, draft.categories))),
        ("feed.exclude_categories", excluded),
    ):
        _add(edited, path, values)
    return edited


def _add(record: dict[str, Any], path: str, values: Sequence[Any]) -> None:
    """Add the values that the list at this path of a record does not hold yet."""
    *parts, key = path.split(".")
    part = record
    for name in parts if values else ():
        part[name] = part.get(name) or {}
        part = part[name]
    held = part.get(key) or []
    if new := [value for at, value in enumerate(values) if value not in (*held, *values[:at])]:
        part[key] = [*held, *new]


def _liked(work: LikedWork) -> object:
    if work.title:
        return _filled({"paper_id": work.paper_id, "title": work.title[:1000], "abstract": work.abstract[:20_000]})
    return work.paper_id


def _filled(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value}


def _reference(token: str) -> str | None:
    """Return the stored form of the id that a token holds, or None."""
    bare = token.strip().lstrip("([{<\"'`").rstrip(_AROUND)
    doi = _DOI.fullmatch(bare)
    if not doi and len(bare) <= _LONGEST_ADDRESS:
        doi = _DOI_IN_ADDRESS.fullmatch(bare)
    if doi and (of_arxiv := _ARXIV_DOI.fullmatch(doi[1])):
        bare, doi = of_arxiv[1], None
    if doi:
        return f"doi:{(_PREPRINT_VERSION.fullmatch(doi[1]) or doi)[1].lower()}"
    try:
        address = split_arxiv_address(bare if "://" in bare else f"https://{bare}")
        if address:
            return address[0]
    except InvalidArxivId:
        return None
    try:
        return split_arxiv_id(bare)[0]
    except InvalidArxivId:
        pass
    if ":" not in bare:
        return None
    from paper_assets.sources.table import source_of  # imports every source

    return str(split_paper_id(bare)[0]) if source_of(bare) else None


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, or its first free numbered form."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name[: LONGEST_NAME - 5]}-{number}", number + 1
    return free
