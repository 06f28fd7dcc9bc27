"""Dagster's development services, with this project's daemon and UI in place of Dagster's.

    python -m paper_assets.defs.services -w workspace.yaml

takes the options of `dagster dev`. `interfaces/supervisor.py` starts it and ends it. `dagster dev` runs daemon and UI
as processes; this module replaces their commands (`daemon.py`, `interfaces/graph_page.py`).
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paper_assets.defs.abandoned_runs import fail_abandoned_runs
from paper_assets.defs.dagster_internals import forget_future_ticks, notice_failures, run_dev
from paper_assets.defs.instance import open_instance
from paper_assets.errors import PaperAssetsError, StoreBusy
from paper_assets.locks import store_lock
from paper_assets.small_files import make_files_private

_OURS = {"dagster_webserver": "paper_assets.interfaces.graph_page", "dagster._daemon": "paper_assets.defs.daemon"}

# Options that name what to load, or that load nothing.
_TARGETS = (
    "-w",
    "--workspace",
    "--empty-workspace",
    "-m",
    "--module",
    "-f",
    "--python-file",
    "--package-name",
    "--help",
)
_CLOCK_TOLERANCE = 60.0  # seconds
_SERVICES = ".services"  # in DAGSTER_HOME; its lock is held by one `make dev`


def main() -> None:
    """Run the code server, the daemon and the UI."""
    make_files_private()  # inherited by the daemon's runs
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts `command &` of a script so
        # Dagster handles SIGTERM as SIGINT, so that neither would end it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not any(argument.startswith(_TARGETS) for argument in sys.argv[1:]):
        sys.argv += ["-w", str(Path(__file__).with_name("workspace.yaml"))]
    try:
        with _only_services(Path(os.environ["DAGSTER_HOME"])):
            run_dev(_OURS)
    except PaperAssetsError as error:
        sys.exit(f"{error}")


@contextmanager
def _only_services(dagster_home: Path) -> Iterator[None]:
    """Prepare the history and keep other services away from it: two daemons would start each run twice.

    Raises PaperAssetsError.
    """
    with ExitStack() as held:
        with open_instance(dagster_home) as instance:  # writes the settings of this project where there are none
            try:
                held.enter_context(store_lock(dagster_home / _SERVICES, deadline=0))
            except StoreBusy:
                raise StoreBusy(
                    f"{dagster_home} is in use by another `make dev`; stop that one, or set DAGSTER_HOME and "
                    "PAPER_ASSETS_HOME to other folders"
                ) from None
            notice_failures(instance)
            fail_abandoned_runs(instance, never_start=True)
            forget_future_ticks(instance, now=time.time() + _CLOCK_TOLERANCE)
        yield


if __name__ == "__main__":
    main()
