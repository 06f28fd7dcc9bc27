"""Tools for profiles, digests, rewrites and best practices (SPEC I9)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from paper_assets.errors import named_error
from paper_assets.interfaces.mcp.calls import paged, text_page
from paper_assets.interfaces.mcp.tool_set import READS, ToolSet, day_or_none, served
from paper_assets.interfaces.mcp.tool_types import Day, Offset, Profile, Words
from paper_assets.progress import Progress

if TYPE_CHECKING:
    from paper_assets.stores.rewrites import RewriteItem

_MOST_OF_A_DIGEST = 5_000  # characters of a page: at most 1,500 tokens of the large models' tokenizers
Level = Literal["public", "student", "expert"]


class ProductTools(ToolSet):
    """The tools over profiles, digests, rewrites and best practices."""

    @served("Research profiles", READS)
    async def list_profiles(self, ctx: Context, offset: Offset = 0) -> CallToolResult:
        """List the research profiles and what each has."""
        from paper_assets.interfaces.mcp.resources import newest_digest
        from paper_assets.pipeline.profiles import find_profiles
        from paper_assets.pipeline.rewrites import waiting_by_profile
        from paper_assets.stores.papers import summary

        def work(_: Progress) -> Mapping[str, Any]:
            warehouse, folders = self._warehouse, find_profiles(self.settings.profiles_dir)
            ranked = summary(warehouse).last_ranking
            waiting = waiting_by_profile(warehouse, config=self.settings.rewriting)
            profiles = []
            for name in sorted(folders.readable.keys() | folders.faults.keys() | ranked.keys()):
                if self.only is not None and name not in self.only:
                    continue
                loaded, last, digest = folders.readable.get(name), ranked.get(name), newest_digest(self.settings, name)
                profiles.append(
                    {
                        "name": name,
                        "interests": loaded and loaded.content.interests.model_dump(mode="json", exclude={"papers"}),
                        "liked_papers": len(loaded.content.interests.papers) if loaded else 0,
                        "last_ranking": last and f"{last}",
                        "last_digest": digest and f"{digest}",
                        "rewrites_waiting": waiting.get(name, 0),
                        "error": folders.faults.get(name),
                    }
                )
            return paged({}, "profiles", profiles, offset=offset)

        return await self.calls.answer(ctx, "list_profiles", work)

    @served("A day's digest", READS)
    async def read_digest(
        self, ctx: Context, profile: Profile = None, day: Day = None, offset: Offset = 0
    ) -> CallToolResult:
        """Read the page of a day: ranking, contrast, evidence, rewrites."""
        from paper_assets.interfaces.mcp.resources import digest_text

        def work(_: Progress) -> Mapping[str, Any]:
            name = self._profile(profile)
            read, text = digest_text(self.settings, name, day_or_none(day))
            part = text_page(text, offset=offset, limit=_MOST_OF_A_DIGEST)
            return {
                "profile": name,
                "day": f"{read}",
                "text": part.items[0],
                "total": part.total,
                "next_offset": part.next_offset,
            }

        return await self.calls.answer(ctx, "read_digest", work, most=None)

    @served("Rewrites for other readers", READS)
    async def list_rewrites(
        self,
        ctx: Context,
        profile: Profile = None,
        day: Annotated[Day, Field(description="YYYY-MM-DD, or all.")] = None,
        level: Level | None = None,
        offset: Offset = 0,
    ) -> CallToolResult:
        """List abstracts rewritten for other readers: score, standing, best text."""
        from paper_assets.stores.rewrites import rewrites_of

        def work(_: Progress) -> Mapping[str, Any]:
            warehouse = self._warehouse
            name = self._profile(profile)
            items = rewrites_of(warehouse, profile=name, day=day_or_none(day))
            records = [self._rewrite(item) for item in items if level in (None, item.target_level)]
            return paged({"profile": name}, "rewrites", records, offset=offset)

        return await self.calls.answer(ctx, "list_rewrites", work)

    @served("Rewrites worth imitating", READS)
    async def best_practices(
        self,
        ctx: Context,
        level: Level | None = None,
        keyword: Annotated[Words | None, Field(description="Part of a keyword.")] = None,
        offset: Offset = 0,
    ) -> CallToolResult:
        """List rewrites worth imitating, beside their originals."""
        from paper_assets.stores.best_practices import best_practices
        from paper_assets.stores.rewrites import papers_with_requests

        def work(_: Progress) -> Mapping[str, Any]:
            warehouse = self._warehouse
            requested = None if self.only is None else papers_with_requests(warehouse, self.only)
            practices = [
                {
                    "id": practice.id,
                    "paper_id": practice.paper_id,
                    "level": practice.target_level,
                    "score": practice.score,
                    "category": practice.category,
                    "keywords": list(practice.keywords),
                    "text": practice.text,
                    "original_text": practice.original_text,
                }
                for practice in best_practices(warehouse, self.settings.archive, level=level, keyword=keyword)
                if requested is None or (practice.paper_id, practice.target_level) in requested
            ]
            return paged({}, "practices", practices, offset=offset)

        return await self.calls.answer(ctx, "best_practices", work)

    def _rewrite(self, item: "RewriteItem") -> dict[str, Any]:
        from paper_assets.rewriting.gate import unsettled
        from paper_assets.rewriting.loop import state_of, status_in_words

        config = self.settings.rewriting
        try:
            state, stands = state_of(item, config=config), status_in_words(item, config=config)
            attempt = state and item.attempts[state.attempt - 1]
            unchecked = unsettled(item, attempt) if attempt else None
        except Exception as error:  # of one rewrite; the others are listed
            state, unchecked = None, None
            stands = f"{named_error(error, f'the rewrite of {item.paper_id} for {item.target_level}')}"
        return {
            "item": item.item,
            "paper_id": item.paper_id,
            "title": item.title,
            "level": item.target_level,
            "standing": stands,
            "score": state and state.current_score,
            "attempts": len(item.attempts),
            "text": state and state.current_text,
            "feedback": state and state.feedback,
            "unchecked": unchecked,
        }
