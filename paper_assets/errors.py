"""Define the errors of the package, and what each means to a user (SPEC 8).

Every error has one line that names the file, key, id or option and says what to do. Interfaces print that line and
exit non-zero; an error that a user can cause never ends in a stack trace.
`code` is the name a program sees (SPEC I4).
"""

import errno
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

_log = logging.getLogger(__name__)
_LONGEST = 1_200  # characters of a message; a longer one repeats a long input

# Errors of the disk. The stores name their own files; these come from Dagster's databases (SQLite behind several
# layers) and from files that other libraries write.
_REFUSALS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO))
_OUT_OF_MEMORY = ("MemoryError", "OutOfMemoryException", "ArrowMemoryError")
_SQLITE = ("disk I/O error", "disk is full", "readonly database", "unable to open", "malformed", "not a database")


class PaperAssetsError(Exception):
    """Root of all errors that a user can cause or meet; its text is one line, ready to be shown.

    The line contains no control characters, even where it repeats an input, and the middle of a long line is left out.
    `variable`: the environment variable to change, if there is one; a form marks its field. `details`: for programs.
    """

    code = "INVALID_INPUT"
    details: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self, line: str = "", *, variable: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        if not line.isprintable():
            line = "".join(sign if sign.isprintable() else " " if sign.isspace() else "\ufffd" for sign in line)
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        super().__init__(line)
        self.variable = variable
        self.details = {**self.details, **(details or {})}


class InvalidInput(PaperAssetsError):
    """A file, key, option or record is not what it should be."""


class AmbiguousId(InvalidInput):
    """A shortened id matches several papers."""


class InvalidArxivId(InvalidInput):
    """The text is not an arXiv identifier."""

    code = "INVALID_ARXIV_ID"


class InvalidPaper(InvalidInput):
    """A paper record lacks a field or holds one of the wrong type (G2)."""


class InvalidProfile(InvalidInput):
    """A profile cannot be read or does not fit the schema (G1)."""


class PaperNotFound(PaperAssetsError):
    """No source and no store knows the paper. `details` name its id, if one was given, and what was searched."""

    code = "PAPER_NOT_FOUND"
    details = MappingProxyType({"arxiv_id": None, "searched_sources": ["desk"]})


class NotComputed(PaperAssetsError):
    """The requested asset has not been materialized yet."""


class NothingEarlier(NotComputed):
    """A ranking is the first of its kind: there is nothing to compare it with."""


class SourceError(PaperAssetsError):
    """A source outside the machine did not answer as expected."""

    code = "NETWORK_ERROR"


class NetworkError(SourceError):
    """No answer: name not found, connection refused, timeout, broken connection, or a server error."""


class RateLimited(SourceError):
    """The source asks us to slow down (406, 429, 503, or 'Rate exceeded.' with 200)."""

    code = "RATE_LIMIT"
    retry_after: float | None = None  # seconds that it asked for


class IncompleteFeed(SourceError):
    """The papers received are not as many as the feed announced; the day must be fetched again (S2)."""


class DoubtfulDay(SourceError):
    """A source has far fewer papers for a day than are stored; they are kept until a second answer confirms it (A6)."""


class PdfFetchFailed(SourceError):
    """A PDF gave no text: unavailable, not a PDF, too large, encrypted, damaged, or without a text layer (I7)."""

    code = "PDF_FETCH_FAILED"


class ModelUnavailable(PaperAssetsError):
    """A model cannot be loaded; keyword matching takes over where it can (G6)."""


class ClusterUnavailable(PaperAssetsError):
    """The Dask cluster cannot be used: unreachable, of another version, or lost; partial results are discarded (X4)."""


class LLMError(PaperAssetsError):
    """The language model gave no usable answer: unreachable, overloaded, cut off, refused or against the schema."""

    code = "LLM_ERROR"
    usage: object = None  # models.llm_config.Usage: what was spent before it failed


class LLMConfigError(LLMError):
    """The language model is not set up: no key, unknown provider or model, wrong address (I3)."""

    code = "LLM_CONFIG_ERROR"


class LLMNotConfigured(LLMConfigError):
    """No language model is set up, which is a choice and no fault: everything works without one."""


class LLMUnreachable(LLMError):
    """No attempt got an answer: unreachable, overloaded or too slow; another question would fail now too."""


class LLMRateLimited(LLMUnreachable):
    """The model's server asks us to slow down (429) for longer than we may wait."""

    code = "RATE_LIMIT"
    retry_after: float | None = None  # seconds that it asked for


class LLMBudgetReached(LLMError):
    """The calls or tokens allowed to this run are used up (G5)."""


class StoreError(PaperAssetsError):
    """A store on this machine cannot be used."""


class StoreBusy(StoreError):
    """Another process has the store open; the text names it."""


class StoreVersion(StoreError):
    """The database was written by an older or newer version of this project."""


class StoreUnwritable(StoreError):
    """The disk is full, or the folder is read-only or missing."""


class IndexUnusable(StoreError):
    """The vector index is missing, damaged or was left half-written; `sync` rebuilds it from the database."""


class UnexpectedError(PaperAssetsError):
    """An unforeseen failure in one paper, profile, day, question or rating."""


def disk_fault(error: BaseException) -> str | None:
    """Describe an error of the disk, the memory or a damaged database of Dagster; None for any other error."""
    for each in causes(error):
        if isinstance(each, sqlite3.Error) and any(sign in str(each) for sign in _SQLITE):
            return (
                f"Dagster's history in DAGSTER_HOME cannot be used: {each}; free space and check permissions; if it is "
                "damaged, `paper-assets reset --history` begins a new one, and papers and results stay"
            )
        if isinstance(each, OSError) and each.errno in _REFUSALS:
            return f"{each.filename or 'the disk'}: {each.strerror}; free space and check permissions, then try again"
        if type(each).__name__ in _OUT_OF_MEMORY:  # by name: neither library is imported where no command needs it
            return "the memory of this machine is not enough; close other programs, or do fewer days at once"
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, then what it was raised from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


@contextmanager
def failure_logged(name: str) -> Iterator[None]:
    """Continue after a failure in one profile, day or paper; an unexpected one is logged. Raises StoreError."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        named_error(error, name)


def named_error(error: Exception, name: str) -> PaperAssetsError:
    """Return a PaperAssetsError unchanged; log any other error with its traceback and return one line that names it.

    For the places that work through profiles, days or papers one after another: they report the line and continue.
    """
    if isinstance(error, PaperAssetsError):
        return error
    if reason := disk_fault(error):
        return StoreError(f"{name}: {reason}")
    _log.error("unexpected error in %s", name, exc_info=error)
    text = " ".join(str(error).split())[:200]
    kind = type(error).__name__
    return UnexpectedError(f"{name}: unexpected {kind}{f': {text}' if text else ''}; the log has the traceback")
