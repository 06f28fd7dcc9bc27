"""Serve Dagster's page behind a guard; its web server accepts changes from any site and any host name.

    python -m paper_assets.interfaces.graph_page -w workspace.yaml

takes the options of `dagster-webserver`; `make dev` starts it this way (`defs/services.py`).
"""

import dagster_webserver.app
from dagster_webserver.cli import cli
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware

from paper_assets.defs.dagster_internals import keep_engines
from paper_assets.interfaces.server_guard import LocalOnly


class GuardedWebserver(DagsterWebserver):
    """Dagster's web server; every request passes the guard first, websockets too."""

    def build_middleware(self) -> list[Middleware]:
        return [Middleware(LocalOnly), *super().build_middleware()]


def main() -> None:
    """Serve until the process is ended."""
    keep_engines()
    dagster_webserver.app.DagsterWebserver = GuardedWebserver  # type: ignore[misc]  # what its own command makes
    cli(auto_envvar_prefix="DAGSTER_WEBSERVER")


if __name__ == "__main__":
    main()
