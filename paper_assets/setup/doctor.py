"""Check everything that an installation needs, and say how to fix what is wrong.

To add a check, write a function that returns findings and add a line to `CHECKS`. No check changes anything; checks of
other hosts ask one small question.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from paper_assets.delivery.channels import MailServer, NotDelivered, check_server
from paper_assets.errors import (
    InvalidProfile,
    LLMConfigError,
    LLMError,
    LLMNotConfigured,
    ModelUnavailable,
    PaperAssetsError,
    RateLimited,
    SourceError,
    StoreBusy,
)
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm_config import check_month, llm_config
from paper_assets.paper_id import split_paper_id
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.settings import FilesBehind, Settings
from paper_assets.setup.language_model import try_model
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.source import Access
from paper_assets.stores.backups import backups, damaged_tables, time_of
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.warehouse import Warehouse

State = Literal["ok", "unused", "warning", "problem"]
_KNOWN_PAPER = "1706.03762"  # a paper that exists, requested from arXiv as a test
_GIGABYTE = 1_000_000_000
_LEAST_SPACE, _ENOUGH_SPACE = 1, 5  # gigabytes
_SECONDS = 20.0  # for each other host


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check; `fix` says what to do where it is a warning or a problem."""

    name: str
    state: State
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The installation to check; tests replace it by one with prepared faults."""

    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    dagster_home: Path
    wrong_settings: Mapping[str, str] = field(default_factory=dict)  # by variable why `settings` has its default
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    online: bool = True


def examine(installation: Installation) -> list[Finding]:
    """Run every check; one that fails unexpectedly is reported as a problem and does not stop the others."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings += check(installation)
        except Exception as error:
            findings.append(
                Finding(name=name, state="problem", detail=f"{type(error).__name__}: {error}"[:200], fix="report this")
            )
    return findings


def _settings(installation: Installation) -> list[Finding]:
    findings, environ = [], installation.environ
    for variable, reason in installation.wrong_settings.items():
        file = environ.file_of(variable) if isinstance(environ, FilesBehind) else None
        fix = f"correct {variable} in {file}" if file else f"correct or unset {variable}"
        findings.append(_problem("settings", reason, f"{fix}; no other command works until then"))
    return findings or [_ok("settings", "all values can be used")]


def _disk(installation: Installation) -> list[Finding]:
    folder = _existing(installation.settings.home)
    free = installation.free_bytes(folder) / _GIGABYTE
    detail = f"{free:.1f} GB free for {installation.settings.home}"
    fix = "free space, or set PAPER_ASSETS_HOME to another disk"
    if free < _LEAST_SPACE:
        return [_problem("disk", detail, fix)]
    return [_warning("disk", detail, fix)] if free < _ENOUGH_SPACE else [_ok("disk", detail)]


def _write_access(installation: Installation) -> list[Finding]:
    settings, findings = installation.settings, []
    for name, folder, variable in (
        ("data folder", settings.home, "PAPER_ASSETS_HOME"),
        ("profiles folder", settings.profiles_dir, "PAPER_ASSETS_PROFILES"),
        ("Dagster folder", installation.dagster_home, "DAGSTER_HOME"),
    ):
        try:
            with tempfile.TemporaryFile(dir=_existing(folder)):
                pass
            findings.append(_ok(name, str(folder)))
        except OSError as fault:
            fix = f"make it a folder that you may write, or set {variable}"
            findings.append(_problem(name, f"{folder} cannot be written: {fault.strerror}", fix))
    return findings


def _database(installation: Installation) -> list[Finding]:
    """Read every row: a damaged part may belong to a table that no command reads for weeks."""
    home, path = installation.settings.home, installation.settings.warehouse_path
    try:
        path.stat()
        warehouse = Warehouse(path, deadline=5.0)
        damaged = damaged_tables(warehouse)
        counts = {} if damaged else paper_counts(warehouse)
    except (FileNotFoundError, NotADirectoryError):
        return [_unused("database", "none yet; `paper-assets start --days 7` fetches papers")]
    except StoreBusy as fault:
        return [_problem("database", str(fault), "close other programs that use it")]
    except PermissionError as fault:
        return [_problem("database", f"{path}: {fault.strerror}", "check permissions, or set PAPER_ASSETS_HOME")]
    except PaperAssetsError as fault:
        return [_problem("database", str(fault), _REPAIR)]
    if damaged:
        return [_problem("database", f"{path} is damaged: {', '.join(damaged)} cannot be read", _REPAIR)]
    kept = backups(home)
    backup = f"{len(kept)}, the newest of {time_of(kept[0]):%Y-%m-%d}" if kept else "none; `paper-assets backup`"
    return [_ok("database", f"whole; {sum(counts.values()):,} papers of {len(counts)} days; backups: {backup}")]


_REPAIR = "`paper-assets repair` saves what can be read, `paper-assets restore FILE` brings back a backup"


def _profiles(installation: Installation) -> list[Finding]:
    folder = installation.settings.profiles_dir
    try:
        profiles = find_profiles(folder)
    except InvalidProfile as fault:
        if folder.exists():
            return [_problem("profiles", str(fault), "name a folder in PAPER_ASSETS_PROFILES, or unset it")]
        return [_warning("profiles", f"none yet in {folder}", "`paper-assets profile new` makes one")]
    faults = [_problem(f"profile {name}", line, "fix the file") for name, line in profiles.faults.items()]
    if not profiles.readable and not faults:
        return [_warning("profiles", f"none yet in {folder}", "`paper-assets profile new` makes one")]
    return [*faults, _ok("profiles", f"{len(profiles.readable)} valid")]


def _model(installation: Installation) -> list[Finding]:
    name = installation.settings.embedding_model
    try:
        load_embedder(name).encode(["paper"])
    except ModelUnavailable as fault:
        fix = "install the package again, or correct PAPER_ASSETS_EMBEDDING_MODEL; until then keywords are compared"
        return [_problem("embedding model", str(fault), fix)]
    return [_ok("embedding model", name)]


def _arxiv(installation: Installation) -> list[Finding]:
    access = Access(settings=_with_short_timeout(installation.settings), environ=installation.environ, patient=False)
    assert ARXIV.find is not None  # noqa: S101
    try:
        ARXIV.find(access, split_paper_id(_KNOWN_PAPER)[0], None)
    except RateLimited as fault:
        return [_warning("arXiv", str(fault), "wait; fetching continues when arXiv allows it")]
    except SourceError as fault:
        return [_problem("arXiv", str(fault), "check the network, the proxy and PAPER_ASSETS_ARXIV_URL")]
    return [_ok("arXiv", "answers")]


def _llm(installation: Installation) -> list[Finding]:
    try:
        config = llm_config(installation.environ)
    except LLMNotConfigured:
        return [_unused("language model", "not configured; everything works without one")]
    except LLMConfigError as fault:
        fix = "correct or unset that variable; without one, choose a model in the settings of the page or by `llm set`"
        return [_problem("language model", str(fault), fix)]
    if not installation.online:
        return []
    try:
        check_month(config)
    except LLMError as fault:
        return [_warning("language model", str(fault), "raise the limit, or wait for the next month")]
    try:
        used = try_model(installation.environ, installation.environ)
    except LLMError as fault:
        return [_problem("language model", str(fault), f"check the key, the model {config.model} and the address")]
    tokens = used.input_tokens + used.output_tokens
    return [_ok("language model", f"{config.named}, {config.model} answers; the test used {tokens} tokens")]


def _mail(installation: Installation) -> list[Finding]:
    settings = installation.settings
    if not settings.smtp_host:
        return [_unused("mail", "PAPER_ASSETS_SMTP_HOST is not set")]
    password = installation.environ.get("PAPER_ASSETS_SMTP_PASSWORD", "")
    server = MailServer(
        host=settings.smtp_host,
        port=settings.smtp_port,
        sender=settings.mail_from,
        user=settings.smtp_user,
        password=password,
    )
    if not settings.mail_from:
        return [_problem("mail", "no sender is set", "set PAPER_ASSETS_MAIL_FROM")]
    try:
        check_server(server, seconds=_SECONDS)
    except NotDelivered as fault:
        return [_problem("mail", str(fault), "check PAPER_ASSETS_SMTP_HOST, _PORT, _USER and _PASSWORD")]
    return [_ok("mail", f"{settings.smtp_host} accepts the connection{' and the login' if settings.smtp_user else ''}")]


def _online(check: Callable[[Installation], list[Finding]]) -> Callable[[Installation], list[Finding]]:
    return lambda installation: check(installation) if installation.online else []


CHECKS: Mapping[str, Callable[[Installation], list[Finding]]] = {
    "settings": _settings,
    "disk": _disk,
    "write access": _write_access,
    "database": _database,
    "profiles": _profiles,
    "embedding model": _model,
    "arXiv": _online(_arxiv),
    "language model": _llm,
    "mail": _online(_mail),
}


def _with_short_timeout(settings: Settings) -> Settings:
    return settings.model_copy(update={"request_timeout": min(settings.request_timeout, _SECONDS)})


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _ok(name: str, detail: str) -> Finding:
    return Finding(name=name, state="ok", detail=detail)


def _unused(name: str, detail: str) -> Finding:
    return Finding(name=name, state="unused", detail=detail)


def _warning(name: str, detail: str, fix: str) -> Finding:
    return Finding(name=name, state="warning", detail=detail, fix=fix)


def _problem(name: str, detail: str, fix: str) -> Finding:
    return Finding(name=name, state="problem", detail=detail, fix=fix)
