"""The calls from Python: `from paper_assets import rank_and_filter_papers` (docs/python.md).

Each works on the desk of this process: the settings, stores and models that the command line uses. The command line
and MCP make the same calls with another `desk`. Stores and models are opened when a call needs them.
"""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.terminal import environment, read_settings
from paper_assets.interfaces.values import parse_day
from paper_assets.profile import ContrastiveType, InterestMode, Purpose, RankingMode

if TYPE_CHECKING:
    from paper_assets.pipeline.workspace import Workspace
    from paper_assets.rewriting.best_practices import Archive
    from paper_assets.rewriting.loop import OptimizerState
    from paper_assets.rewriting.policy import Decision, Done, Level
    from paper_assets.stores.best_practices import BestPractice
    from paper_assets.stores.rewrites import NewItem

P = ParamSpec("P")
T = TypeVar("T")


def own_desk() -> "Workspace":
    """Return the desk of this process: its settings, stores and models. Raises InvalidInput for a wrong setting."""
    from paper_assets.pipeline.workspace import open_workspace

    return open_workspace(read_settings(), environment(), clock=lambda: datetime.now(UTC))


def _knowing_what_is_given(function: Callable[P, T]) -> Callable[P, T]:
    """Pass the names of the arguments that the caller gave as `_given`: a profile's values come between these and the
    defaults.
    """
    signature = inspect.signature(function)
    shown = signature.replace(parameters=[each for each in signature.parameters.values() if each.name != "_given"])

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        named["_given"] = frozenset(shown.bind(*arguments, **named).arguments)
        return function(*arguments, **named)

    call.__signature__ = shown  # type: ignore[attr-defined]
    return call


@_knowing_what_is_given
def rank_and_filter_papers(
    papers: Sequence[Mapping[str, Any]],
    top_k: int = 5,
    profile_path: str | Path | None = "config/profile.json",
    purpose: Purpose = "general",
    ranking_mode: RankingMode = "balanced",
    include_contrastive: bool = False,
    contrastive_type: ContrastiveType = "method",
    history_path: str | Path | None = "history/read_papers.json",
    local_pdf_dir: str | Path | None = "pdf/",
    enable_llm_verification: bool = True,
    *,
    interest_mode: InterestMode = "hybrid",
    as_of: date | str | None = None,
    save: bool = True,
    desk: "Workspace | None" = None,
    _given: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Filter, score and order papers for a profile, with the reasons. Never raises for a wrong input.

    An option that is not given is the one of the profile's `ranking`, else the default. A relative path is looked up in
    the folder OUTPUT_DIR (PDFs: PDF_DIR), the working folder and the folder of the profiles; where nothing is at a path
    that was given, the call continues without it, with a line in `summary.warnings`.

    Args:
        papers: dicts with paper_id (or arxiv_id), title, abstract, authors; optional: published (or published_date),
            categories, pdf_url, github_url, affiliations.
        top_k: most papers to return.
        profile_path: a profile's folder, its name or its profile.json; None: recency and practicality alone count.
        purpose: general, literature_review, implementation or idea_generation.
        ranking_mode: balanced, novelty, practicality or diversity.
        include_contrastive: give the last place to a paper that contrasts with the others.
        contrastive_type: method, assumption or domain.
        history_path: JSON list of ids already read; not given: the profile's own, else the default.
        local_pdf_dir: folder of PDFs already downloaded; not given: the profile's own, else the default.
        enable_llm_verification: let the configured language model check papers of doubtful relevance.
        interest_mode: how relevance is computed; "seed" keeps the numbers of the original formula.
        as_of: day from which age counts, as a date or YYYY-MM-DD; None: today (UTC).
        save: write the result to OUTPUT_DIR/rankings.
        desk: settings, stores and models to use; None: those of this process.

    Returns:
        success, error, summary, ranked_papers, filtered_papers, contrastive_paper, comparison_notes, output_path and
        generated_at. For a wrong input `success` is False and `error` is one line.
    """
    from paper_assets.pipeline import ranking_call

    options = {
        "top_k": top_k,
        "purpose": purpose,
        "ranking_mode": ranking_mode,
        "include_contrastive": include_contrastive,
        "contrastive_type": contrastive_type,
        "enable_llm_verification": enable_llm_verification,
        "interest_mode": interest_mode,
    }
    desk = desk or own_desk()
    return ranking_call.rank_and_filter_papers(
        papers,
        desk=desk,
        as_of=_day(as_of),
        files=ranking_call.RankingFiles(
            profile_path=profile_path,
            history_path=history_path if "history_path" in _given else None,
            local_pdf_dir=local_pdf_dir if "local_pdf_dir" in _given else None,
            folders=(Path.cwd(), desk.settings.profiles_dir),
        ),
        options={name: value for name, value in options.items() if name in _given},
        save=save,
    )


def retrieve_balanced(
    plan: Mapping[str, Any],
    *,
    profile: str | None = None,
    as_of: date | str | None = None,
    desk: "Workspace | None" = None,
) -> dict[str, Any]:
    """Find as many documents for each side of a question, under the same conditions.

    Args:
        plan: rewritten_question; optional: question, parameters {k_per_side=2}, filters {sides (or party),
            side_field, startdate, enddate, topic_id}, data_type, generation_required (docs/evidence.md).
        profile: whose categories are the sides of a plan without sides, and whose private documents are searched too.
        as_of: ignore documents after this day.
        desk: settings, stores and models to use; None: those of this process.

    Returns:
        question, notes, stance and sides: [{side, documents: [{page_content, metadata, score}], filter,
        shortfall, error, warnings, …}]; for `filters.party` also documents_by_party: [{party, documents}].

    Raises InvalidInput for a wrong plan, InvalidProfile, StoreError.
    """
    return answer_plan(plan, balanced=True, profile=profile, as_of=as_of, desk=desk or own_desk())


def retrieve_standard(
    plan: Mapping[str, Any],
    *,
    profile: str | None = None,
    as_of: date | str | None = None,
    desk: "Workspace | None" = None,
) -> dict[str, Any]:
    """Find the k documents that answer a question best, whatever their side.

    Args and errors are those of `retrieve_balanced`; `parameters.k` is 10 by default. Returns the same with one side,
    and its `documents` beside it.
    """
    return answer_plan(plan, balanced=False, profile=profile, as_of=as_of, desk=desk or own_desk())


def answer_plan(
    record: object,
    *,
    balanced: bool,
    desk: "Workspace",
    profile: str | None = None,
    as_of: date | str | None = None,
    private: bool = True,
    source: str = "the plan",
) -> dict[str, Any]:
    """Answer one plan, in sentences if it asks for that. `private`: search the profile's own documents too.

    Raises InvalidInput, InvalidProfile, StoreError.
    """
    from paper_assets.pipeline.profiles import load_valid_profile
    from paper_assets.pipeline.retrievals import answer_to, import_own_pdfs
    from paper_assets.retrieval.findings import Caller
    from paper_assets.retrieval.plan import categories_of, parse_plan

    asking = load_valid_profile(desk.settings.profiles_dir / profile) if profile is not None else None
    sides = categories_of(asking, desk.settings)
    plan = parse_plan(record, source=source, default_sides=sides, config=desk.settings.retrieval)
    caller = Caller(owner=profile if private else None, as_of=_day(as_of))
    embedder = desk.embedder()
    faults = import_own_pdfs(desk.warehouse, asking, [plan], embedder=embedder) if asking and private else ()
    answer = answer_to(desk, plan, caller=caller, embedder=embedder, balanced=balanced)
    return {**answer, "notes": [*answer["notes"], *(f"left out: {fault}" for fault in faults)]}


def retrieve_best_practices(
    original_text: str, target_level: "Level", n: int = 3, *, desk: "Workspace | None" = None
) -> "list[BestPractice]":
    """Find rewrites worth imitating, as examples for rewriting a text.

    Args:
        original_text: the text to rewrite.
        target_level: public, student or expert; rewrites of other levels are returned only if this one has none.
        n: most rewrites to return.
        desk: settings, stores and models to use; None: those of this process.

    Returns:
        The most relevant by meaning and words with a score of 92 or more, best score first. Each has id, text,
        original_text, score, target_level, keywords, made_at, model_version, paper_id and category.

    Raises InvalidInput for an unknown level or n below 1, StoreError.
    """
    from paper_assets.rewriting import best_practices

    if n < 1:
        raise InvalidInput(f"n must be 1 or more, got {n}")
    return best_practices.retrieve_best_practices(_archive(desk or own_desk()), original_text, _level(target_level), n)


def archive_best_practice(result: Mapping[str, Any], *, desk: "Workspace | None" = None) -> dict[str, str | None]:
    """Keep a rewrite as an example for later ones, if it is good enough.

    Args:
        result: text, original_text, score (0 to 100) and target_level; optional: title, keywords (a list, or words
            separated by commas), timestamp (ISO 8601), model_version, paper_id, category, language (two letters).
        desk: settings, stores and models to use; None: those of this process.

    Returns:
        id: of the stored rewrite, None if it was refused. refused: the reason, such as a score below 95, a text that
        the gate holds back, or an original like a stored one. note: what is still to be done.

    Raises InvalidInput naming a key that is missing or wrong, StoreError.
    """
    from paper_assets.paper import parse_instant
    from paper_assets.rewriting.best_practices import archive_rewrite
    from paper_assets.stores.rewrites import Attempt

    if not isinstance(result, Mapping):
        raise InvalidInput("result must be an object with text, original_text, score and target_level")
    desk, score, keywords = desk or own_desk(), result.get("score"), result.get("keywords") or ()
    for name in ("text", "original_text"):
        if not isinstance(result.get(name), str) or not result[name].strip():
            raise InvalidInput(f"result: {name} must be a text")
    if not isinstance(score, int) or isinstance(score, bool) or not 0 <= score <= 100:
        raise InvalidInput(f"result: score must be a whole number from 0 to 100, got {str(score)[:40]!r}")
    try:
        made_at = parse_instant(str(result["timestamp"])) if result.get("timestamp") else desk.clock()
    except ValueError:
        raise InvalidInput(f"result: timestamp must be like 2026-03-01T12:00, got {result['timestamp']!r}") from None
    done = archive_rewrite(
        _archive(desk),
        _item(result["original_text"], _level(result.get("target_level")), result),
        Attempt(
            attempt=1,
            text=result["text"],
            keywords=tuple(keywords.split(",") if isinstance(keywords, str) else map(str, keywords)),
            score=score,
            critique="",
            unsupported=(),
            examples=(),
            model=str(result.get("model_version") or "unknown"),
            input_tokens=0,
            output_tokens=0,
            made_at=made_at,
        ),
        shown=(),
    )
    return {"id": done.id, "refused": done.refused, "note": done.note}


def generate_with_critic_loop(
    original_text: str,
    target_level: "Level",
    *,
    title: str = "",
    paper_id: str | None = None,
    language: str | None = None,
    desk: "Workspace | None" = None,
) -> "Generator[OptimizerState, Decision | None, Done]":
    """Rewrite a text for a level by actor and critic, one attempt at a time.

    `next()` writes the next attempt and yields its state. While `decision_required` is true, `send("accept")` keeps the
    attempt and `send("retry")` asks for another. Every attempt is stored: the same call made again continues.

    Args:
        original_text: the text to rewrite.
        target_level: public, student or expert.
        title: of the text; names and numbers in it count as supported.
        paper_id: the paper that it is from, if any.
        language: two letters, the language of the rewrite; None: that of the text.
        desk: settings, stores and models to use; None: those of this process.

    Yields:
        OptimizerState: attempt, max_retries, current_score, current_text, feedback, status (PASS, FAIL or WAIT_CONFIRM)
        and decision_required.

    Raises InvalidInput for an unknown level, an empty text or a decision that nothing waits for; LLMError without a
    language model or an answer of it; StoreError.
    """
    from paper_assets.rewriting.loop import rewriting
    from paper_assets.stores.rewrite_progress import open_items

    desk = desk or own_desk()
    if not original_text.strip():
        raise InvalidInput("original_text is empty")
    given = {"title": title, "paper_id": paper_id, "language": language}
    item = _item(original_text, _level(target_level), given)
    open_items(desk.warehouse, [item], now=desk.clock())
    return rewriting(desk.warehouse, desk.load_writer(desk), item.item)


def _archive(desk: "Workspace") -> "Archive":
    from paper_assets.rewriting.best_practices import archive_of

    return archive_of(desk.settings, desk.warehouse, desk.vector_index, desk.embedder())


def _item(text: str, level: "Level", given: Mapping[str, Any]) -> "NewItem":
    """Return the task of rewriting a text of a paper, or of no paper."""
    from paper_assets.paper import Paper
    from paper_assets.rewriting.writing import new_item

    paper = Paper(
        paper_id=str(given.get("paper_id") or f"text:{sha256(text.encode()).hexdigest()[:16]}"),
        title=str(given.get("title") or ""),
        abstract=text,
        authors=(),
        primary_category=given.get("category"),
    )
    return new_item(paper, level, language=given.get("language"))


def _level(text: object) -> "Level":
    from paper_assets.rewriting.policy import LEVELS

    known = next((level for level in LEVELS if level == text), None)
    if known is None:
        raise InvalidInput(f"target_level must be one of {', '.join(LEVELS)}, got {str(text)[:40]!r}")
    return known


def _day(given: date | str | None) -> date | None:
    return parse_day(given, "as_of") if isinstance(given, str) else given
