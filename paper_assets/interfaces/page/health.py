"""Health: what is missing, late or broken, the last runs, what the language model took; each with its mend (V7)."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.days_to_mend import days_to_mend
from paper_assets.interfaces.page.desk import Desk, desk_of, page, person_of
from paper_assets.models.llm_budget import Usage, cost
from paper_assets.models.llm_config import llm_config
from paper_assets.pipeline.health import health

_MOST_RUNS = 12


def show(request: Request) -> Response:
    desk = desk_of(request)
    if person_of(request):  # it is about all profiles, and for who keeps the desk
        raise HTTPException(404)
    found = health(desk.workspace)
    try:
        runs, no_runs = _runs(desk), None
    except PaperAssetsError as fault:
        runs, no_runs = [], str(fault)
    spent = Usage(
        calls=sum(each.calls for each in found.use),
        input_tokens=sum(each.input_tokens for each in found.use),
        output_tokens=sum(each.output_tokens for each in found.use),
    )
    return page(
        request,
        "health.html.jinja",
        health=found,
        mend=days_to_mend(found.troubles),
        runs=runs,
        no_runs=no_runs,
        spent=spent,
        price=_price(desk, spent),
        home=desk.settings.home,
    )


def _runs(desk: Desk) -> list[object]:
    """The last runs of the Dagster instance that this desk belongs to."""
    from paper_assets.defs.run_history import latest_runs  # Dagster: two seconds, and only this view wants it

    folder = Path(desk.environ.get("DAGSTER_HOME") or Path.cwd() / "dagster_home")
    return list(latest_runs(folder, most=_MOST_RUNS)) if (folder / "storage").is_dir() else []


def _price(desk: Desk, spent: Usage) -> float | None:
    try:
        return cost(llm_config(desk.environ), spent)
    except PaperAssetsError:
        return None
