"""`rank_and_filter_papers` with files, backends and ranking options given by name, as tests like it."""

from dataclasses import fields
from typing import Any

from paper_assets.pipeline.ranking_call import RankingFiles, rank_and_filter_papers
from paper_assets.ranking.gatekeeper import Backends

_OF_THE_CALL = {"settings", "as_of", "now", "save", "progress"}


def called(papers: Any, **given: Any) -> dict[str, Any]:
    """Call with each name put where it belongs."""
    files = {each.name: given.pop(each.name) for each in fields(RankingFiles) if each.name in given}
    backends = {each.name: given.pop(each.name) for each in fields(Backends) if each.name in given}
    options = {name: given.pop(name) for name in list(given) if name not in _OF_THE_CALL}
    return rank_and_filter_papers(
        papers, files=RankingFiles(**files), backends=Backends(**backends), options=options, **given
    )
