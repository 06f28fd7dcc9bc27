"""Make readers out of authors: what an author wrote first is the profile, what they wrote next predicts what follows.

Many people share a name, so an author is a name and the papers under it that are connected by other names: two papers
are the same person's if they share another author, directly or through further papers. Authors most of whose papers
belong to a reader with more of them are left out. The author's own name is removed from the papers, because it would
give the answer away.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from paper_assets.paper import Paper


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorReader:
    """An author: `liked`, the first papers, for the profile; `earlier` papers to rate; `later` ones to find.

    `split` is the day of the first later paper.
    """

    name: str
    liked: tuple[Paper, ...]
    earlier: tuple[Paper, ...]
    later: tuple[Paper, ...]
    split: date


def author_readers(papers: Sequence[Paper], *, least: int = 6, liked: int = 2) -> list[AuthorReader]:
    """Return the authors of at least `least` papers, those with most first; half of the papers not liked are later."""
    by_name: dict[str, list[Paper]] = defaultdict(list)
    for paper in papers:
        if paper.day:
            for name in dict.fromkeys(paper.authors):
                by_name[name].append(paper)
    own = {name: _same_person(name, works) for name, works in by_name.items() if len(works) >= least}
    found: list[AuthorReader] = []
    taken: list[set[str]] = []
    for name in sorted(own, key=lambda each: (-len(own[each]), each)):
        ids = {paper.paper_id for paper in own[name]}
        if len(ids) < least or any(2 * len(ids & other) > len(ids) for other in taken):
            continue
        taken.append(ids)
        if reader := _reader(name, own[name], liked=liked):
            found.append(reader)
    return found


def without_name(papers: Sequence[Paper], name: str) -> Iterator[Paper]:
    """Yield the papers without the name among their authors."""
    for paper in papers:
        yield replace(paper, authors=tuple(each for each in paper.authors if each != name) or ("Unknown",))


def _reader(name: str, works: Sequence[Paper], *, liked: int) -> AuthorReader | None:
    rest = works[liked:]
    days = [paper.day or date.min for paper in rest]
    split = days[len(rest) // 2]
    earlier = tuple(paper for paper, day in zip(rest, days, strict=True) if day < split)
    later = tuple(paper for paper, day in zip(rest, days, strict=True) if day >= split)
    return (
        AuthorReader(name=name, liked=tuple(works[:liked]), earlier=earlier, later=later, split=split)
        if earlier
        else None
    )


def _same_person(name: str, works: Sequence[Paper]) -> list[Paper]:
    """Return the largest group of papers that are connected by other authors, the oldest first."""
    groups: list[tuple[set[str], list[Paper]]] = []
    for paper in works:
        names, members = set(paper.authors) - {name}, [paper]
        apart = []
        for others, group in groups:
            if names & others:
                names, members = names | others, members + group
            else:
                apart.append((others, group))
        groups = [*apart, (names, members)]
    largest = max((members for _, members in groups), key=len)
    return sorted(largest, key=lambda paper: (paper.day or date.min, paper.paper_id))
