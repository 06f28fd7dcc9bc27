"""Find the id prefixes of the fetched sources without importing the sources, for code that only reads stored days."""

from paper_assets.paper_id import ARXIV
from paper_assets.settings import Settings


def prefixes_of_fetched_sources(settings: Settings) -> tuple[str, ...]:
    """Return the id prefixes of the sources whose days are fetched, in their order of precedence.

    Raises InvalidInput as `sources_of_days` does.
    """
    if tuple(settings.sources) == (ARXIV,):  # the default, known without the code that fetches
        return (ARXIV,)
    from paper_assets.sources.table import sources_of_days  # imports requests and every source

    return tuple(source.prefix for source in sources_of_days(settings) if source.prefix)
