"""What the tools share: how one is served, their arguments, the stores of a call, and what it may name.

To add a tool, write a method with `@served` in a class of a `*_tools.py`: every public method of such a class is
served, and one without `@served` stops the server.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from paper_assets.errors import InvalidInput, ModelUnavailable, NotComputed
from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.interfaces.values import parse_day
from paper_assets.profile import PROFILE_NAME, profile_folders
from paper_assets.progress import Progress
from paper_assets.settings import Settings

if TYPE_CHECKING:
    from paper_assets.models.embedder import Embedder
    from paper_assets.pipeline.workspace import Workspace
    from paper_assets.retrieval.search import Corpus
    from paper_assets.stores.warehouse import Warehouse

READS_OUTSIDE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=True)
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
# Tools that store what they find or pay a language model; a repeated call does neither again.
STORES_OR_PAYS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
STORES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS_A_FILE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)

# A model's work continues after the call that asked for it, so that one without a GPU or with long reasoning can
# finish.
PATIENCE_WITH_MODELS = {"PAPER_ASSETS_LLM_TIMEOUT": "600", "PAPER_ASSETS_LLM_DEADLINE": "900"}

# Arguments with a clear name have no description: next_offset is in the answer, and the error for a missing profile
# names the existing ones.
Offset = Annotated[int, Field(ge=0)]
Day = Annotated[str | None, Field(description="YYYY-MM-DD, or newest.", max_length=40)]
Profile = Annotated[str | None, Field(max_length=200)]
Words = Annotated[str, Field(max_length=10_000)]


class PaperRecord(TypedDict, total=False):
    """A paper as search_papers and fetch_paper give it; keys that are not a paper's are ignored."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    paper_id: str
    title: str
    abstract: str
    authors: list[Any]
    published: str | None
    categories: list[str]
    content: str | None


# A host's model has seen such a record before it gives one: its keys need not be repeated in every conversation.
GivenPaper = Annotated[PaperRecord, WithJsonSchema({"type": "object"})]


def served(
    title: str, hints: ToolAnnotations, *, if_allowed: Callable[[Settings], bool] = lambda _: True, **bounds: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Serve a method as a tool of its name, where the settings allow it.

    A plain method is the work of a call: it takes a `progress` first, and `bounds` are those of `Calls.answer`. One
    that is async answers the call itself.
    """

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        tool = method if inspect.iscoroutinefunction(method) else _as_call(method, bounds)
        tool.__dict__["served"] = title, hints, if_allowed
        return tool

    return mark


def _as_call(method: Callable[..., Mapping[str, Any]], bounds: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a tool that runs the method in a thread; it takes the call's context instead of `progress`."""

    @wraps(method)
    async def tool(self: "ToolSet", ctx: Context, *arguments: Any, **named: Any) -> CallToolResult:
        work = lambda progress: method(self, progress, *arguments, **named)  # noqa: E731
        return await self.calls.answer(ctx, method.__name__, work, **bounds)

    own, _, *given = inspect.signature(method).parameters.values()
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
    tool.__signature__ = inspect.Signature([own, context, *given], return_annotation=CallToolResult)  # type: ignore[attr-defined]
    tool.__annotations__ = {"ctx": Context, **{each.name: each.annotation for each in given}, "return": CallToolResult}
    return tool


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """Tools over the stores of this desk."""

    calls: Calls
    settings: Settings
    environ: Mapping[str, str] = field(default_factory=dict)  # configures the language model, if any (I3)
    only: Set[str] | None = None  # the profiles that the person may use; None: all

    def tools(self) -> Iterator[tuple[Callable[..., Any], str, ToolAnnotations]]:
        """Return the tools in the order in which they are written, each with its title and hints."""
        for name, method in vars(type(self)).items():
            if callable(method) and not name.startswith("_"):
                if "served" not in method.__dict__:
                    raise TypeError(f"{type(self).__name__}.{name} is public: mark it with @served, or begin it with _")
                title, hints, if_allowed = method.__dict__["served"]
                if if_allowed(self.settings):
                    yield getattr(self, name), title, hints

    @property
    def _warehouse(self) -> "Warehouse":
        """The warehouse; it waits for another process no longer than a call may."""
        from paper_assets.stores.warehouse import Warehouse

        return Warehouse(self.settings.warehouse_path, deadline=self.calls.store_deadline(self.settings))

    @property
    def _patient(self) -> dict[str, str]:
        """The environment for work that continues after the call."""
        return {**PATIENCE_WITH_MODELS, **self.environ}

    def _desk(
        self,
        progress: Progress,
        *,
        environ: Mapping[str, str] | None = None,
        deadline: Callable[[], float | None] = lambda: None,
    ) -> "Workspace":
        """Return what the calls from Python take: settings, stores and models, with the limits of a call.

        `deadline`: the seconds left for a question to the language model, None for its own limit.
        """
        from paper_assets.pipeline.workspace import open_workspace

        desk = open_workspace(
            self.settings,
            self.environ if environ is None else environ,
            clock=lambda: datetime.now(UTC),
            store_deadline=self.calls.store_deadline(self.settings),
            deadline=deadline,
        )
        return replace(desk, progress=progress)

    def _corpus(self) -> "Corpus":
        from paper_assets.retrieval.search import open_corpus

        return open_corpus(self.settings, self._warehouse, embedder_or_none(self.settings))

    def _check_exists(self, warehouse: "Warehouse", name: str) -> None:
        """Raise InvalidInput for a profile that does not exist, or not for this caller."""
        from paper_assets.learning.ratings import is_profile

        check_open(name, self.only)
        if not is_profile(warehouse, name, self.settings.profiles_dir):
            raise _no_such_profile(name)

    def _profile(self, name: str | None) -> str:
        """Return the name as given, or that of the only profile with a ranking. Raises NotComputed, InvalidInput."""
        from paper_assets.stores.papers import summary

        warehouse = self._warehouse
        if name is not None:
            self._check_exists(warehouse, name)
            return name
        ranked = sorted(profile for profile in summary(warehouse).rankings if self.only is None or profile in self.only)
        if not ranked:
            raise NotComputed("no profile has a ranking yet; run `paper-assets run` first")
        if len(ranked) > 1:
            raise InvalidInput(f"profile: name one of {', '.join(ranked)}")
        return ranked[0]

    def _list_day(self, profile: str, day: str | None) -> date:
        """Return the day of the requested list. Raises InvalidInput, NotComputed."""
        from paper_assets.interfaces.ranking_answers import list_day

        return list_day(self._warehouse, profile, day_or_none(day), settings=self.settings)

    def _profile_folder(self, text: str | None, *, argument: str = "profile") -> Path | None:
        """Return the folder of a profile of the caller, by name or by a path in their folder.

        Raises InvalidInput, which names the `argument`.
        """
        if text is None:
            return None
        name, only, profiles_dir = text.strip(), self.only, self.settings.profiles_dir
        by_name = PROFILE_NAME.fullmatch(name)
        folder = profiles_dir / name if by_name else _inside(name, (profiles_dir,))
        if folder is not None and folder.name == "profile.json":
            folder = folder.parent
        permitted = only is None or (by_name and name in only)
        if folder is None or not permitted or not _has_a_profile(folder):
            names = [each.name for each in profile_folders(profiles_dir) if only is None or each.name in only]
            listed = ", ".join(names[:20]) or "there are none yet"
            raise InvalidInput(f"{argument}: no such profile; use the name of one: {listed}")
        return folder


def day_or_none(text: str | None, argument: str = "day") -> date | None:
    """Return a day given as YYYY-MM-DD, None if it is not given. Raises InvalidInput."""
    return parse_day(text, argument) if text else None


def embedder_or_none(settings: Settings) -> "Embedder | None":
    """Load the model; without one only words are compared, which an answer reports."""
    from paper_assets.models.embedder import load_embedder

    try:
        return load_embedder(settings.embedding_model)
    except ModelUnavailable:
        return None


def check_open(name: str, only: Set[str] | None) -> None:
    """Raise InvalidInput for a profile that is not one of `only`."""
    if only is not None and name not in only:
        raise _no_such_profile(name)


def _no_such_profile(name: str) -> InvalidInput:
    return InvalidInput(f"profile: there is none named {name[:60]!r}; list_profiles names them")


def _has_a_profile(folder: Path) -> bool:
    try:
        return (folder / "profile.json").is_file()
    except OSError:  # a name too long for any file
        return False


def local_path(text: str | None, option: str, folders: Sequence[Path]) -> Path | None:
    """Return the named file or folder below one of `folders`. Raises InvalidInput if there is none."""
    if text is None:
        return None
    path = _inside(text.strip(), folders)
    if path is None:
        places = " or ".join(dict.fromkeys(str(folder) for folder in folders))
        raise InvalidInput(f"{option}: nothing of that name below {places}")
    return path


def _inside(text: str, folders: Sequence[Path]) -> Path | None:
    """Return the existing path that `text` names, absolute or relative to a folder, if it is really below one."""
    try:
        roots = [folder.resolve() for folder in folders]
        for root in roots:
            path = (root / Path(text)).resolve()
            if any(path.is_relative_to(allowed) for allowed in roots) and path.exists():
                return path
    except (OSError, ValueError, RuntimeError):  # too long, a NUL byte, links in a circle
        return None
    return None
