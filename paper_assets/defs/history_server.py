"""Dagster's runs, events and schedules on a PostgreSQL server instead of files (SPEC X4).

Belongs here: its lines in dagster.yaml, and one line for each error in them or of the server. The address is only in
PAPER_ASSETS_POSTGRES: dagster.yaml names the variable.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import dagster as dg

from paper_assets.errors import InvalidInput, StoreError
from paper_assets.text.secrets import Secrets

VARIABLE = "PAPER_ASSETS_POSTGRES"
# With its driver: without one SQLAlchemy 2.1 takes another than the one that comes with dagster-postgres.
_SCHEME = "postgresql+psycopg2://"
_CONNECT = 10  # seconds
_STORAGE = f"""
# Runs, events and schedules on PostgreSQL; the address with the password is only in the variable.
storage:
  postgres:
    postgres_url:
      env: {VARIABLE}
"""


def uses_server(environ: Mapping[str, str]) -> bool:
    """Return whether a server keeps the history."""
    return bool(environ.get(VARIABLE, "").strip())


def new_settings(settings: bytes, environ: Mapping[str, str]) -> bytes:
    """Return this project's dagster.yaml, with the lines of the server if one is configured."""
    return settings + _STORAGE.encode() if uses_server(environ) else settings


def check_server(file: Path, environ: Mapping[str, str]) -> None:
    """Check that dagster.yaml and the environment agree. Raises InvalidInput, without the address."""
    written = file.read_text(encoding="utf-8", errors="replace")
    asks, elsewhere = VARIABLE in written, "\nstorage:" in f"\n{written}"
    if asks and not uses_server(environ):
        raise InvalidInput(
            f"{file} keeps Dagster's history on PostgreSQL; set {VARIABLE} to "
            f"{_SCHEME}user:password@host/database, or remove that file to keep the history in files"
        )
    if not uses_server(environ):
        return
    if not environ[VARIABLE].strip().startswith(_SCHEME):
        raise InvalidInput(f"{VARIABLE} must be an address like {_SCHEME}user:password@host/database")
    if not asks and not elsewhere:
        raise InvalidInput(
            f"{VARIABLE} is set, but {file} keeps Dagster's history in files; remove that file to have it rewritten "
            "(the old history stays in its folder, unread), or unset the variable"
        )
    if find_spec("dagster_postgres") is None:
        raise InvalidInput(f'{VARIABLE} is set, but dagster-postgres is missing; pip install "paper-assets[postgres]"')


def check_connection(environ: Mapping[str, str]) -> None:
    """Connect once, because Dagster would retry five times and log each. Raises StoreError."""
    if not uses_server(environ):
        return
    import sqlalchemy

    with server_errors_explained(environ):
        engine = sqlalchemy.create_engine(environ[VARIABLE].strip(), connect_args={"connect_timeout": _CONNECT})
        try:
            engine.connect().close()
        finally:
            engine.dispose()


@contextmanager
def server_errors_explained(environ: Mapping[str, str]) -> Iterator[None]:
    """Turn errors of the server into one line without the address. Raises StoreError."""
    try:
        yield
    except Exception as fault:
        said = _said_by_server(fault) if uses_server(environ) else None
        if said is None:
            raise
        raise StoreError(
            f"the PostgreSQL server of {VARIABLE} failed: {without_address(said, environ)}; "
            "see that it runs and that user, password and database exist"
        ) from None


def _said_by_server(fault: BaseException) -> str | None:
    """Return the message of the server's driver that caused an exception, if there is one."""
    from sqlalchemy.exc import DBAPIError  # Dagster has imported it by now

    found: BaseException | None = fault
    while found is not None:
        if isinstance(found, DBAPIError) and type(found.orig).__module__.startswith("psycopg"):
            return str(found.orig)
        found = found.__cause__
    return None


def without_address(text: str, environ: Mapping[str, str]) -> str:
    """Return the text in one line, cut, without user and password."""
    line = " ".join(text.split())
    return Secrets({"POSTGRES_URL": environ.get(VARIABLE, "")}).hide(line if len(line) <= 300 else f"{line[:300]} …")


def delete_server_history(instance: dg.DagsterInstance) -> None:
    """Delete the history on a server, including the partitions of profiles."""
    for name in ("profile",):
        for key in instance.get_dynamic_partitions(name):
            instance.delete_dynamic_partition(name, key)
    instance.wipe()
    if instance.schedule_storage:
        instance.schedule_storage.wipe()
