"""Find the id prefixes and calendars of the fetched sources without the code that fetches, to read stored days."""

from paper_assets import announcements
from paper_assets.announcements import Calendar
from paper_assets.paper_id import ARXIV
from paper_assets.settings import Settings


def calendars_of_sources(settings: Settings) -> dict[str, Calendar]:
    """Return when the sources whose days are fetched announce papers, by id prefix in their order of precedence.

    Raises InvalidInput as `sources_of_days` does.
    """
    if tuple(settings.sources) == (ARXIV,):  # the default
        return {ARXIV: announcements.arxiv}
    from paper_assets.sources.table import sources_of_days  # imports requests and every source

    return {source.prefix: source.announces for source in sources_of_days(settings) if source.prefix}


def prefixes_of_fetched_sources(settings: Settings) -> tuple[str, ...]:
    """Return the id prefixes of the sources whose days are fetched, in their order of precedence."""
    return tuple(calendars_of_sources(settings))
