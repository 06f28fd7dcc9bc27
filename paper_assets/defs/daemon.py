"""Dagster's daemon as `make dev` starts it (`defs/dev.py`): the same, for less while nothing happens.

    python -m paper_assets.defs.daemon run

takes the options of `dagster-daemon`.
"""

from dagster._daemon.cli import main as dagster_daemon

from paper_assets.defs.frugal_dagster import wait_cheaply


def main() -> None:
    """Run the daemon until somebody ends it."""
    wait_cheaply()
    dagster_daemon()


if __name__ == "__main__":
    main()
