"""The papers of a day from every source that has days: what one source fails to give holds up no other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date

from paper_assets.errors import RateLimited, SourceError
from paper_assets.paper import Paper
from paper_assets.sources.access import Access
from paper_assets.sources.source import PapersOfDay, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfPapers:
    """The papers of a day by the name of their source, and why a source gave none."""

    papers: dict[str, list[Paper]] = field(default_factory=dict)
    failures: dict[str, SourceError] = field(default_factory=dict)

    @property
    def failure(self) -> SourceError | None:
        """The first failure: the day is not whole, and has to be fetched again."""
        return next(iter(self.failures.values()), None)


@contextmanager
def open_days(sources: Sequence[Source], access: Access) -> Iterator[Callable[[date], DayOfPapers]]:
    """What fetches one day after another. A source that has asked us to slow down is asked for no further day."""
    slowed: dict[str, SourceError] = {}
    with ExitStack() as stack:
        listings: dict[str, PapersOfDay] = {
            source.name: stack.enter_context(source.open_days(access)) for source in sources if source.open_days
        }

        def fetch(day: date) -> DayOfPapers:
            found = DayOfPapers(failures=dict(slowed))
            for name, papers_of_day in listings.items():
                if name in slowed:
                    continue
                try:
                    found.papers[name] = papers_of_day(day)
                except SourceError as failure:
                    found.failures[name] = failure
                    if isinstance(failure, RateLimited):
                        slowed[name] = failure
            return found

        yield fetch
