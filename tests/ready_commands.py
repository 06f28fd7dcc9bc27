"""Do once what every command would do again: imported by the process from which `forked_commands` forks commands.

Nothing here starts a thread, and nothing that is read differs between commands: modules that take long to import,
templates, tables, the embedding model, and the migrations of Dagster's history.
"""

from importlib import import_module
from importlib.resources import files

from paper_assets.interfaces.cli.process import importing

_MODULES = (
    "chromadb.api.rust",
    "dagster._core.run_coordinator",
    "dagster._core.scheduler",
    "dagster._core.storage.fs_io_manager",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.workspace.context",
    "latex2mathml.converter",
    "paper_assets.interfaces.cli.app",
    "paper_assets.interfaces.cli.ask",
    "paper_assets.interfaces.cli.find",
    "paper_assets.interfaces.cli.rewriting",
    "paper_assets.interfaces.cli.run",
    "paper_assets.interfaces.page.app",
    "paper_assets.interfaces.ranking_answers",
    "paper_assets.pipeline.health",
    "paper_assets.pipeline.steps",
    "rich.progress",
    "sqlalchemy.dialects.sqlite",
    "tqdm",
    "tests.dagster_migrations",
    "upath.implementations.local",
    "watchdog.observers",
)


def _prepare() -> None:
    for name in _MODULES:
        import_module(name)
    from paper_assets.delivery.channels import message_of
    from paper_assets.digests.html import html_page
    from paper_assets.digests.markdown import markdown_page
    from paper_assets.interfaces.page.display import templates
    from paper_assets.models.embedder import load_embedder
    from paper_assets.profile import profile_content, understood
    from paper_assets.ranking.calibration import standard_calibration
    from paper_assets.ranking.traits import standard_taxonomy
    from tests.desk import GRAPHS
    from tests.digests.invented import digest, paper

    of_one = digest(paper())
    html_page(of_one), markdown_page(of_one), message_of(of_one)
    for template in (files("paper_assets.interfaces.page") / "templates").iterdir():
        templates().get_template(template.name)
    understood(profile_content(GRAPHS, source="tests"))
    standard_calibration(), standard_taxonomy(), load_embedder()


with importing():  # then no fork searches, and thereby copies, what was made here
    _prepare()
