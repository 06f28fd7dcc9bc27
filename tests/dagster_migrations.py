"""Read Dagster's forty migrations once in a process; Dagster reads them again for the history of each run."""

from alembic.config import Config
from alembic.script import ScriptDirectory

_migrations: dict[str | None, ScriptDirectory] = {}
_read = ScriptDirectory.from_config


def _read_once(config: Config) -> ScriptDirectory:
    folder = config.get_main_option("script_location")
    if folder not in _migrations:
        _migrations[folder] = _read(config)
    return _migrations[folder]


ScriptDirectory.from_config = _read_once
