"""`make dev`: Dagster's daemon made frugal, and its page behind our door.

    python -m paper_assets.defs.dev -w workspace.yaml

takes the options of `dagster dev`. That command starts daemon and page as processes of their own, and this one has ours
started instead (`defs/daemon.py`, `interfaces/graph_page.py`).
"""

import os
import signal
from pathlib import Path
from typing import Any

from paper_assets.defs.instance import open_instance
from paper_assets.stores.locks import make_files_private

_OURS = {"dagster_webserver": "paper_assets.interfaces.graph_page", "dagster._daemon": "paper_assets.defs.daemon"}


def main() -> None:
    """Run daemon and page until somebody ends them."""
    from dagster._cli import dev  # the folder's modules are read by every run, which needs no command line

    make_files_private()  # the daemon's runs too
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what a script puts behind `&`
        # Dagster has SIGTERM do what SIGINT does; nobody could end it then.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    start = dev.open_ipc_subprocess

    def start_ours(parts: list[str], **options: Any) -> Any:
        return start([_OURS.get(part, part) for part in parts], **options)

    dev.open_ipc_subprocess = start_ours  # type: ignore[assignment]
    if home := os.environ.get("DAGSTER_HOME"):
        with open_instance(Path(home)):  # writes the settings of this project where there are none
            pass
    dev.dev_command()


if __name__ == "__main__":
    main()
