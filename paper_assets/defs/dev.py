"""`make dev`: Dagster's daemon and UI, of which no process outlives the command (A4).

    python -m paper_assets.defs.dev

takes the options of `dagster dev`; without one that names a workspace it loads this package, installed or in a
checkout. All processes form one group (process_group.py), runs included. Runs that were in progress are recorded as
failed, now or at the next start, and the next daemon tries them again.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

from paper_assets.defs.process_group import guard_group, supervise
from paper_assets.installation import default_folder

_GUARD = "--guard"  # argument of the process that ends the group if this one is killed


def main() -> None:
    """Run the services until one of them fails or this process has to end."""
    if sys.argv[1:] == [_GUARD]:
        guard_group(_record_ended_runs)
        os._exit(0)
    this = [sys.executable, "-m", "paper_assets.defs.dev"]
    os.environ.setdefault(
        "DAGSTER_HOME", str(default_folder(os.environ, Path.cwd()) / "dagster_home")
    )  # as every command does
    services = [sys.executable, "-m", "paper_assets.defs.services", *sys.argv[1:]]
    status = supervise(services, guard=[*this, _GUARD], afterwards=_record_ended_runs)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # without waiting for a thread that still imports Dagster


def _record_ended_runs(services_ended: Event) -> None:
    """Record the runs that ended with the services as failed.

    A history that cannot be opened stays as it is: the next start records what this one could not.
    """
    from paper_assets.defs.abandoned_runs import fail_abandoned_runs
    from paper_assets.defs.instance import open_instance

    services_ended.wait()
    home = os.environ.get("DAGSTER_HOME")
    if home and Path(home).is_dir():
        with suppress(Exception), open_instance(Path(home)) as instance:
            fail_abandoned_runs(instance, never_start=True)


if __name__ == "__main__":
    main()
