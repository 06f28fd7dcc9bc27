"""Best practices: what later rewrites learn from, read beside its original, removed where it teaches ill (SPEC V4)."""

from collections import Counter
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.versions import LEVELS_IN_WORDS
from paper_assets.errors import InvalidInput
from paper_assets.interfaces.page.desk import desk_of, page, person_of, profile_of, then
from paper_assets.rewriting.best_practices import archive_of
from paper_assets.rewriting.best_practices import remove as remove_from
from paper_assets.rewriting.policy import LEVELS
from paper_assets.stores.best_practices import BestPractice, best_practice, best_practices, no_such_practice
from paper_assets.stores.rewrite_outcomes import attempts_by_examples
from paper_assets.stores.rewrite_sets import papers_asked_for

_MOST = 200


def listed(request: Request) -> Response:
    desk, _, asked = desk_of(request), profile_of(request), request.query_params
    collection = desk.settings.archive
    level = asked.get("level") if asked.get("level") in LEVELS else None
    score = asked.get("score", "")
    if score and not (score.isascii() and score.isdigit() and len(score) < 4):
        raise InvalidInput(f"the least score must be a number from 0 to 100, got {score[:20]!r}")
    keyword = asked.get("keyword", "").strip()[:100]
    found = best_practices(
        desk.warehouse, collection, level=level, min_score=int(score) if score else None, keyword=keyword or None
    )
    kept = _own(request, best_practices(desk.warehouse, collection))
    found = _own(request, found)
    categories = [name for name, _ in Counter(each.category or "unknown" for each in kept).most_common(6)]
    spread = Counter((each.target_level, each.category or "unknown") for each in kept)
    return page(
        request,
        "practices.html.jinja",
        found=found[:_MOST],
        count=len(found),
        kept=len(kept),
        asked={"level": level, "score": score, "keyword": keyword},
        levels=LEVELS_IN_WORDS,
        categories=categories,
        spread=spread,
        with_and_without={} if person_of(request) else attempts_by_examples(desk.warehouse),
        collection=collection,
    )


def show(request: Request) -> Response:
    found = _practice(request)
    asks = request.query_params.get("remove") == "ask"
    return page(request, "practice.html.jinja", practice=found, levels=LEVELS_IN_WORDS, asks=asks)


def remove(request: Request) -> Response:
    """Remove one, which its page has asked once more."""
    desk, profile, identifier = desk_of(request), profile_of(request), str(request.path_params["identifier"])
    if request.state.form.get("sure") != "yes":
        raise InvalidInput("a best practice is removed from its own page, which asks once more")
    _practice(request)
    archive = archive_of(desk.settings, desk.for_writing, desk.workspace.vector_index, desk.workspace.embedder())
    left = remove_from(archive, identifier)
    note = f"Removed, but {left}." if left else "The best practice is removed."
    return then(request, f"/p/{profile}/practices", note)


def _practice(request: Request) -> BestPractice:
    """The best practice of the address. Raises InvalidInput, PaperNotFound."""
    profile_of(request)
    collection, identifier = desk_of(request).settings.archive, str(request.path_params["identifier"])
    found = best_practice(desk_of(request).warehouse, collection, identifier)
    if not _own(request, [found]):
        raise no_such_practice(collection, identifier)
    return found


def _own(request: Request, practices: Sequence[BestPractice]) -> list[BestPractice]:
    """In a lab, of the archive what rewrites of the person's profiles brought; all of it on a desk of one's own."""
    person = person_of(request)
    if person is None:
        return list(practices)
    asked = papers_asked_for(desk_of(request).warehouse, person.profiles)
    return [each for each in practices if (each.paper_id, each.target_level) in asked]
