"""Tools for stored rankings: the lists, the reasons, and what changed in them (SPEC I1)."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from paper_assets.errors import InvalidInput, NotComputed, NothingEarlier, PaperNotFound
from paper_assets.interfaces.mcp.calls import MOST_CHARACTERS, paged, text_page
from paper_assets.interfaces.mcp.tool_set import (
    ADDS_A_FILE,
    READS,
    STORES,
    Day,
    GivenPaper,
    Offset,
    Profile,
    ToolSet,
    Words,
    day_or_none,
    local_path,
    served,
)
from paper_assets.paper_id import split_paper_id
from paper_assets.profile import ContrastiveType, InterestMode, Purpose, RankingMode
from paper_assets.progress import Progress

if TYPE_CHECKING:
    from paper_assets.pipeline.ranking_call import RankingFiles

_MOST_OF_A_LIST = 5_400  # characters of todays_ranking: at most 1,500 tokens of the large models' tokenizers
_ARXIV_PAGE = "https://arxiv.org/abs/{paper_id}"  # once for a list: it would be a sixth of its tokens
_MOST_REMOVED = 20  # removed papers in one answer; the others are counted
_WINDOW_DAYS = 7  # stored papers that are ranked where none are given


def _arxiv_page(paper: Mapping[str, Any]) -> str:
    return _ARXIV_PAGE.format(paper_id=paper["paper_id"])


class DeskTools(ToolSet):
    """The tools over stored rankings."""

    @served("Rank and filter papers", ADDS_A_FILE, asks_model=True)
    def rank_and_filter_papers(
        self,
        progress: Progress,
        papers: Annotated[
            list[GivenPaper] | None, Field(description="paper_id, title, abstract, authors.", max_length=2_000)
        ] = None,
        paper_ids: Annotated[list[Words] | None, Field(description="Or stored ids.", max_length=2_000)] = None,
        profile_path: Annotated[Words | None, Field(description="Name of a profile.")] = None,
        top_k: Annotated[int | None, Field(ge=1, le=1000, description="Length of the list.")] = None,
        purpose: Purpose | None = None,
        ranking_mode: RankingMode | None = None,
        include_contrastive: Annotated[
            bool | None, Field(description="Give the last place to a contrasting paper.")
        ] = None,
        contrastive_type: ContrastiveType | None = None,
        enable_llm_verification: Annotated[bool | None, Field(description="Let an LLM check doubtful papers.")] = None,
        interest_mode: InterestMode | None = None,
        history_path: Annotated[Words | None, Field(description="JSON of ids read.")] = None,
        local_pdf_dir: Annotated[Words | None, Field(description="PDF folder.")] = None,
        as_of: Annotated[Day, Field(description="YYYY-MM-DD, for age.")] = None,
        save: Annotated[bool, Field(description="As a file.")] = True,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Filter, score and order papers for a profile, explained. The daily list: todays_ranking.

        Without papers and paper_ids: the stored week up to as_of.
        """
        options = {
            "top_k": top_k,
            "purpose": purpose,
            "ranking_mode": ranking_mode,
            "include_contrastive": include_contrastive,
            "contrastive_type": contrastive_type,
            "enable_llm_verification": enable_llm_verification,
            "interest_mode": interest_mode,
        }

        if papers is not None and paper_ids is not None:
            raise InvalidInput("papers and paper_ids: give one of them")
        from paper_assets.interfaces.ranking_answers import not_fetched
        from paper_assets.pipeline.ranking_call import ranked
        from paper_assets.sources.source import seconds_from_now

        records, last_day = self._records(papers, paper_ids, day_or_none(as_of, "as_of"))
        files = self._files(profile_path, history_path, local_pdf_dir)
        unknown = not_fetched(self._warehouse, last_day) if papers is None and paper_ids is None else None
        if unknown:
            files = replace(files, warnings=(*files.warnings, unknown))
        left = seconds_from_now(self.calls.work_deadline, time.monotonic)

        def left_for_model() -> float:
            progress(0, None, "checking doubtful papers")
            return left()

        result = ranked(
            records,
            desk=self._desk(progress, deadline=left_for_model),  # what the model has answered by then is kept
            as_of=last_day,
            files=files,
            options=options,
            save=save and not offset,
        )
        return _ranking_answer(result, offset=offset)

    @served("Today's ranking", READS)
    def todays_ranking(
        self, _: Progress, profile: Profile = None, day: Day = None, offset: Offset = 0
    ) -> Mapping[str, Any]:
        """What to read today for a profile, best first: what each paper says, and why it is listed."""
        from paper_assets.interfaces.ranking_answers import brief_ranking
        from paper_assets.sources.table import page_of

        name = self._profile(profile)
        answer = brief_ranking(self._warehouse, name, self._list_day(name, day))
        papers, answer["more_likely"], answer["by_people"] = (
            [
                paper
                if page_of(paper["paper_id"]) == _arxiv_page(paper)
                else {**paper, "url": page_of(paper["paper_id"])}
                for paper in answer[name]
            ]
            for name in ("papers", "more_likely", "by_people")
        )
        del answer["papers"]
        return paged({**answer, "url": _ARXIV_PAGE}, "papers", papers, offset=offset, most=_MOST_OF_A_LIST)

    @served("Why a paper has its place", READS)
    def explain_rank(
        self,
        _: Progress,
        paper_id: Annotated[Words, Field(description="2501.12345")],
        profile: Profile = None,
        day: Day = None,
    ) -> Mapping[str, Any]:
        """Explain a paper's place in a ranking, or why it was removed."""
        from paper_assets.interfaces.ranking_answers import explanation

        known_as, name = str(split_paper_id(paper_id)[0]), self._profile(profile)
        return explanation(self._warehouse, name, known_as, day=self._list_day(name, day))

    @served("Rate a paper", STORES, if_allowed=lambda settings: settings.rating_over_mcp)
    def rate_paper(
        self,
        _: Progress,
        paper_id: Annotated[Words, Field(description="2501.12345")],
        rating: Annotated[Literal["worth", "later", "no", "undo"], Field(description="no: not relevant.")],
        profile: Profile = None,
    ) -> Mapping[str, Any]:
        """Store the reader's rating of a paper, from which rankings learn. Only on request."""
        from paper_assets.learning.ratings import rate

        name, now, folder = self._profile(profile), datetime.now(UTC), self.settings.profiles_dir
        return asdict(rate(self._warehouse, name, paper_id, rating, given_in="mcp", now=now, profiles_dir=folder))

    @served("A list for a reference manager", READS)
    def export_citations(
        self,
        _: Progress,
        profile: Profile = None,
        day: Day = None,
        rated: Annotated[Literal["worth", "later", "no"] | None, Field(description="Instead: rated so.")] = None,
        paper_ids: Annotated[list[Words] | None, Field(max_length=100, description="Instead: these.")] = None,
        style: Literal["bibtex", "ris", "csl-json", "markdown"] = "bibtex",
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Export citations of a ranking or papers."""
        from paper_assets.interfaces.ranking_answers import citations, citations_of

        if rated and not self.settings.rating_over_mcp:
            raise InvalidInput("rated: ratings are not open to assistants; PAPER_ASSETS_RATING_OVER_MCP=yes opens them")
        if paper_ids is not None:
            if profile or day or rated:
                raise InvalidInput("paper_ids: give either papers or a profile with its day or rating")
            text = citations_of(self._warehouse, paper_ids, style)
        else:
            name = self._profile(profile)
            of_day = day_or_none(day) if rated else self._list_day(name, day)
            text = citations(self._warehouse, name, style, day=of_day, rated=rated)
        if style == "csl-json":  # without the indentation, which costs a third of the tokens
            text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
        part = text_page(text, offset=offset, limit=MOST_CHARACTERS - 1_000)
        return {"text": part.items[0], "total": part.total, "next_offset": part.next_offset}

    @served("What changed in the ranking", READS)
    def what_changed(
        self,
        _: Progress,
        profile: Profile = None,
        day: Day = None,
        before: Annotated[Day, Field(description="Day to compare with.")] = None,
        edit: Annotated[bool, Field(description="Instead: before the last edit.")] = False,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """List the papers that entered, left or moved in a ranking, and why."""
        from paper_assets.interfaces.ranking_answers import list_changes

        name = self._profile(profile)
        last = self._list_day(name, day)
        try:
            listed = list_changes(self._warehouse, name, day=last, before=day_or_none(before, "before"), edit=edit)
        except NothingEarlier as first:  # on a first day the caller made no mistake
            nothing = {"profile": name, "day": f"{last}", "lineage": {}, "note": str(first)}
            return paged(nothing, "changes", [], offset=0)
        changes = [
            {
                "change": change,
                "paper_id": move.paper_id,
                "title": listed.titles.get(move.paper_id),
                "rank_before": move.before,
                "rank_after": move.after,
                "score_before": move.score_before,
                "score_after": move.score_after,
                "reason": move.reason,
            }
            for change in ("entered", "left", "moved")
            for move in getattr(listed.changes, change)
        ]
        rest: dict[str, Any] = {
            "profile": name,
            "note": None,
            "day": f"{listed.day}",
            "lineage": {name: list(pair) for name, pair in listed.changes.lineage.items()},
        }
        return paged(rest, "changes", changes, offset=offset)

    def _folders(self, *shared: Path) -> tuple[Path, ...]:
        """Return the folders below which a caller may name files: the desk's, or those of the caller's profiles."""
        profiles = self.settings.profiles_dir
        return (*shared, profiles) if self.only is None else tuple(profiles / name for name in sorted(self.only))

    def _files(self, profile_path: str | None, history_path: str | None, local_pdf_dir: str | None) -> "RankingFiles":
        """Return the files that a caller may use, with a warning for each that there is none, or not for them."""
        from paper_assets.pipeline.ranking_call import RankingFiles

        output, pdfs = self.settings.output_dir, self.settings.pdf_dir
        warnings: list[str] = []

        def usable(find: Callable[[], Path | None]) -> Path | None:
            try:
                return find()
            except InvalidInput as fault:
                warnings.append(f"{fault}; ranked without it")
                return None

        return RankingFiles(
            profile_path=usable(lambda: self._profile_folder(profile_path, argument="profile_path")),
            history_path=usable(lambda: local_path(history_path, "history_path", self._folders(output))),
            local_pdf_dir=usable(lambda: local_path(local_pdf_dir, "local_pdf_dir", self._folders(pdfs, output))),
            warnings=tuple(warnings),
        )

    def _records(
        self, papers: list[GivenPaper] | None, paper_ids: list[str] | None, day: date | None
    ) -> tuple[list[Any], date]:
        """Return the papers to rank, and the day from which their age counts."""
        from paper_assets.paper import paper_to_mapping, papers_from_table
        from paper_assets.stores.papers import latest_day, papers_between, papers_by_id

        today = datetime.now(UTC).date()
        if papers is not None:
            return list(papers), day or today

        if paper_ids is not None:
            ids = list(dict.fromkeys(str(split_paper_id(paper_id)[0]) for paper_id in paper_ids))
            stored = papers_from_table(papers_by_id(self._warehouse, ids))
            stored_ids = {paper.paper_id for paper in stored}
            if missing := [paper_id for paper_id in ids if paper_id not in stored_ids]:
                raise PaperNotFound(f"paper_ids: the desk has not stored {', '.join(missing[:10])}")
            return [paper_to_mapping(paper) for paper in stored], day or today

        last = day or latest_day(self._warehouse, until=today)
        if last is None:
            raise NotComputed("no papers are stored yet; give papers, or run `paper-assets fetch` first")
        first = max(last, date.min + timedelta(days=_WINDOW_DAYS)) - timedelta(days=_WINDOW_DAYS - 1)
        table = papers_between(self._warehouse, first, last)
        return [paper_to_mapping(paper) for paper in papers_from_table(table)], last


def _ranking_answer(result: Mapping[str, Any], *, offset: int) -> dict[str, Any]:
    """Bound a ranking for an answer: a page of the ranking, the removed papers counted, no path of a local PDF."""
    ranked = [_public_record(paper) for paper in result["ranked_papers"]]
    pick = result["contrastive_paper"]
    rest = {
        "success": result["success"],
        "error": result["error"],
        "summary": result["summary"],
        "contrastive_paper": pick and {name: pick[name] for name in ("rank", "paper_id", "title", "contrastive_info")},
        "comparison_notes": result["comparison_notes"][:_MOST_REMOVED],
        "filtered_by_reason": dict(
            Counter(paper["filter_reason"] for paper in result["filtered_papers"]).most_common()
        ),
        "filtered_papers": result["filtered_papers"][:_MOST_REMOVED],
        "output_path": result["output_path"],
        "generated_at": result["generated_at"],
    }
    return paged(rest, "ranked_papers", ranked, offset=offset)


def _public_record(paper: Mapping[str, Any]) -> dict[str, Any]:
    """Hide the path of a private PDF; only its existence is shown. Of the caller's record only the fields of a paper
    are returned: other keys can be of any length.
    """
    original = {name: value for name, value in paper["original_data"].items() if name in _paper_keys()}
    return {**paper, "local_status": {**paper["local_status"], "local_path": None}, "original_data": original}


@cache
def _paper_keys() -> frozenset[str]:
    """Return the keys of a paper's record."""
    from paper_assets.paper import Paper

    return frozenset(field.name for field in fields(Paper))
