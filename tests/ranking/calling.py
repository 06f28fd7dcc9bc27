"""`rank_and_filter_papers` with files, backends and ranking options given by name, as tests like it."""

from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paper_assets.pipeline.ranking_call import RankingFiles, rank_and_filter_papers
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.progress import Progress, ignore_progress
from paper_assets.ranking.gatekeeper import Backends
from paper_assets.settings import Settings

_OF_THE_CALL = {"as_of", "save"}


def called(
    papers: Any,
    *,
    settings: Settings,
    now: datetime,
    progress: Progress = ignore_progress,
    working_dir: Path | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Call with each name put where it belongs."""
    files = {each.name: given.pop(each.name) for each in fields(RankingFiles) if each.name in given}
    files["folders"] = (working_dir,) if working_dir else ()
    backends = {each.name: given.pop(each.name) for each in fields(Backends) if each.name in given}
    options = {name: given.pop(name) for name in list(given) if name not in _OF_THE_CALL}
    return rank_and_filter_papers(
        papers,
        desk=replace(open_workspace(settings, {}, clock=lambda: now), progress=progress),
        files=RankingFiles(**files),
        backends=Backends(**backends),
        options=options,
        **given,
    )
