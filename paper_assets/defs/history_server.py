"""Dagster's runs, events and schedules on a PostgreSQL server instead of files (SPEC X4).

Belongs here: the lines of dagster.yaml that say so, and what is wrong with them or the server in one line. The address
stands in PAPER_ASSETS_POSTGRES and nowhere else: dagster.yaml names the variable.
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
# Runs, events and schedules on PostgreSQL; its address, with the password, stands in the variable alone.
storage:
  postgres:
    postgres_url:
      env: {VARIABLE}
"""


def is_named(environ: Mapping[str, str]) -> bool:
    """Whether a server is to keep the history."""
    return bool(environ.get(VARIABLE, "").strip())


def new_settings(settings: bytes, environ: Mapping[str, str]) -> bytes:
    """This project's dagster.yaml, with the server's lines where one is named."""
    return settings + _STORAGE.encode() if is_named(environ) else settings


def check_server(file: Path, environ: Mapping[str, str]) -> None:
    """Whether dagster.yaml and the environment say the same. Raises InvalidInput; the address is never repeated."""
    written = file.read_text(encoding="utf-8", errors="replace")
    asks, elsewhere = VARIABLE in written, "\nstorage:" in f"\n{written}"
    if asks and not is_named(environ):
        raise InvalidInput(
            f"{file} keeps Dagster's history on PostgreSQL; set {VARIABLE} to "
            f"{_SCHEME}user:password@host/database, or remove that file to keep the history in files"
        )
    if not is_named(environ):
        return
    if not environ[VARIABLE].strip().startswith(_SCHEME):
        raise InvalidInput(f"{VARIABLE} must be an address like {_SCHEME}user:password@host/database")
    if not asks and not elsewhere:
        raise InvalidInput(
            f"{VARIABLE} is set, but {file} keeps Dagster's history in files; remove that file to have it written anew "
            "(the old history stays in its folder, unread), or unset the variable"
        )
    if find_spec("dagster_postgres") is None:
        raise InvalidInput(f'{VARIABLE} is set, but dagster-postgres is missing; pip install "paper-assets[postgres]"')


def reach_server(environ: Mapping[str, str]) -> None:
    """Raises StoreError where the server of the environment does not let us in: Dagster itself would try five times and
    write each of them down.
    """
    if not is_named(environ):
        return
    import sqlalchemy

    with server_explained(environ):
        engine = sqlalchemy.create_engine(environ[VARIABLE].strip(), connect_args={"connect_timeout": _CONNECT})
        try:
            engine.connect().close()
        finally:
            engine.dispose()


@contextmanager
def server_explained(environ: Mapping[str, str]) -> Iterator[None]:
    """Say in one line, without the address, what the server does not do. Raises StoreError."""
    try:
        yield
    except Exception as fault:
        said = _said_by_server(fault) if is_named(environ) else None
        if said is None:
            raise
        raise StoreError(
            f"the PostgreSQL server of {VARIABLE} failed: {without_address(said, environ)}; "
            "see that it runs and that user, password and database exist"
        ) from None


def _said_by_server(fault: BaseException) -> str | None:
    """What a server's driver said, behind an exception; None if it is another's."""
    from sqlalchemy.exc import DBAPIError  # Dagster has imported it by now

    found: BaseException | None = fault
    while found is not None:
        if isinstance(found, DBAPIError) and type(found.orig).__module__.startswith("psycopg"):
            return str(found.orig)
        found = found.__cause__
    return None


def without_address(text: str, environ: Mapping[str, str]) -> str:
    """The text in one line, cut, without user and password."""
    line = " ".join(text.split())
    return Secrets({"POSTGRES_URL": environ.get(VARIABLE, "")}).hide(line if len(line) <= 300 else f"{line[:300]} …")


def forget_everything(instance: dg.DagsterInstance) -> None:
    """Remove the history that a server keeps, partitions of profiles included."""
    for name in ("profile",):
        for key in instance.get_dynamic_partitions(name):
            instance.delete_dynamic_partition(name, key)
    instance.wipe()
    if instance.schedule_storage:
        instance.schedule_storage.wipe()
