"""Run Dagster's daemon as `make dev` starts it: the same with less idle work (dagster_internals.py).

    python -m paper_assets.defs.daemon run

takes the options of `dagster-daemon`.
"""

from paper_assets.defs.dagster_internals import run_daemon

if __name__ == "__main__":
    run_daemon()
