"""Rank papers in one call: read the profile and its files, rank, save the result.

Python, the command line and MCP make this call. The ranking itself is in `ranking/gatekeeper.py`. The Dagster assets do
not use this module; they read from the stores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput, PaperAssetsError, StoreUnwritable
from paper_assets.models.embedder import known_name, load_embedder
from paper_assets.pipeline.profiles import load_valid_profile
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile, load_history
from paper_assets.progress import Progress, ignore_progress
from paper_assets.ranking.gatekeeper import Backends, Embed, rank_papers, ranking_options
from paper_assets.ranking.result import Reader, failed_result
from paper_assets.settings import Settings
from paper_assets.small_files import is_folder, is_present
from paper_assets.sources.pdf_files import pdf_files
from paper_assets.stores.embeddings import remembered_vectors
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.ranking_files import save_ranking
from paper_assets.stores.warehouse import Warehouse

_LONGEST_PATH = 120  # characters of a path in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFiles:
    """The files of one call. A relative path is looked up in the output folder (PDFs: the PDF folder), then in
    `folders`.

    Attributes:
        profile_path: a profile's folder or its profile.json; None ranks by recency and practicality alone.
        history_path: JSON list of ids already read; None: the profile's own, else `history/read_papers.json`.
        local_pdf_dir: folder of PDF files; None: the profile's `pdf/`, else `pdf/`.
        required: a path with nothing there is an error; otherwise the result has a warning.
        warnings: about paths that were given and are not used.
    """

    profile_path: str | Path | None = None
    history_path: str | Path | None = None
    local_pdf_dir: str | Path | None = None
    folders: tuple[Path, ...] = ()
    required: bool = False
    warnings: tuple[str, ...] = ()


NO_FILES = RankingFiles()


def rank_and_filter_papers(
    papers: Sequence[Mapping[str, Any]], *, desk: Workspace, options: Mapping[str, Any] | None = None, **call: Any
) -> dict[str, Any]:
    """Call `ranked`; invalid input does not raise: `success` is then False and `error` is one line."""
    try:
        return ranked(papers, desk=desk, options=options, **call)
    except PaperAssetsError as error:
        count = len(papers) if isinstance(papers, Sequence) else 0
        return failed_result(str(error), input_count=count, options=dict(options or {}), now=desk.clock())


def ranked(
    papers: Sequence[Mapping[str, Any]],
    *,
    desk: Workspace,
    as_of: date | None = None,
    files: RankingFiles = NO_FILES,
    options: Mapping[str, Any] | None = None,
    backends: Backends | None = None,
    save: bool = True,
) -> dict[str, Any]:
    """Filter, score and order the papers for a profile.

    Args:
        papers: records with paper_id, title, abstract and authors.
        desk: settings, stores and models. Its `progress` may raise, and then nothing is saved.
        as_of: day from which the age of a paper counts; None: today.
        files: profile, history and PDFs.
        options: ranking options by name (fields of `RankingOptions`) that override the profile's; None: not given.
        backends: embedder, store of known papers, verifier; None: those of the desk.
        save: write the result to the rankings folder.

    Raises PaperAssetsError.
    """
    settings, now = desk.settings, desk.clock()
    reader, warnings = _reader(files, settings)
    result = rank_papers(
        papers,
        reader,
        ranking_options(reader.profile, dict(options or {})),
        scoring=settings.scoring,
        as_of=as_of or now.date(),
        now=now,
        backends=backends or desk_backends(desk),
    )
    result["summary"]["warnings"] = [*warnings, *result["summary"]["warnings"]]
    if save:
        desk.progress(0, None, "saving")
        name = reader.profile.name if reader.profile else None
        try:
            result["output_path"] = str(save_ranking(settings.rankings_dir, name, result, now=now))
        except StoreUnwritable as error:  # a full disk must not cost the answer
            result["summary"]["warnings"].append(str(error))
    return result


def desk_backends(desk: Workspace) -> Backends:
    """Return what a ranking asks: the desk's warehouse, its embedding model and its language model."""
    return Backends(
        embed=remembering_embedder(desk.settings, desk.warehouse, progress=desk.progress),
        model=known_name(desk.settings.embedding_model),
        find_papers=lambda ids: papers_by_id(desk.warehouse, ids),
        verifier=desk.load_verifier(),
    )


def remembering_embedder(settings: Settings, warehouse: Warehouse, *, progress: Progress = ignore_progress) -> Embed:
    """Return a function from texts to unit vectors (n, d). It reads known vectors from the warehouse and loads the
    model on first use.
    """

    def encode(new: list[str]) -> Any:
        return load_embedder(settings.embedding_model).encode(new)

    def embed(texts: list[str]) -> Any:
        progress(0, None, f"embedding {len(texts)} texts")
        name = known_name(settings.embedding_model) or load_embedder(settings.embedding_model).name
        vectors = remembered_vectors(warehouse, texts, model=name, encode=encode)
        progress(0, None, "scoring")
        return vectors

    return embed


def _reader(files: RankingFiles, settings: Settings) -> tuple[Reader, list[str]]:
    """Return the reader with what is at the paths, and a warning for each path with nothing there."""
    warnings = list(files.warnings)

    def existing(option: str, default: str | None, first: Path) -> Path | None:
        given = getattr(files, option)
        places = _places(default if given is None else given, (first, *files.folders))
        found = next((place for place in places if is_present(_file_of(place, option))), None)
        if given is None or found:
            return found
        what = "no profile (a folder with profile.json)" if option == "profile_path" else "nothing"
        fault = f"{option}: {what} is at {' or '.join(map(_shown, places))}"
        if files.required:
            raise InvalidInput(f"{fault}; correct the path")
        warnings.append(f"{fault}; ranked without it")
        return None

    profile = _profile(existing("profile_path", None, settings.output_dir))
    history = existing("history_path", "history/read_papers.json", settings.output_dir)
    if files.history_path is None and profile and profile.read_ids:
        history = None
    pdf_dir = existing("local_pdf_dir", "pdf", settings.pdf_dir)
    if files.local_pdf_dir is None and profile and profile.path and is_present(profile.path / "pdf"):
        pdf_dir = profile.path / "pdf"
    if pdf_dir is not None and not is_folder(pdf_dir):
        raise InvalidInput(f"local_pdf_dir: {pdf_dir} is not a folder")
    reader = Reader(
        profile=profile,
        profile_used=str(files.profile_path) if profile else None,
        read_ids=load_history(history, missing_ok=False) if history else profile.read_ids if profile else frozenset(),
        pdf_dir=pdf_dir,
        pdf_names=pdf_files(pdf_dir) if pdf_dir else (),
    )
    return reader, warnings


def _places(path: str | Path | None, folders: Sequence[Path]) -> list[Path]:
    """Return where the path may be: below each of the folders; an absolute path stays as it is."""
    if path is None:
        return []
    try:
        return list(dict.fromkeys(folder / Path(path).expanduser() for folder in folders))
    except RuntimeError:
        raise InvalidInput(f"{str(path)[:60]!r}: no such user") from None


def _file_of(place: Path, option: str) -> Path:
    return place / "profile.json" if option == "profile_path" and place.name != "profile.json" else place


def _shown(path: Path) -> str:
    return str(path) if len(str(path)) <= _LONGEST_PATH else f"…{str(path)[-_LONGEST_PATH:]}"


def _profile(path: Path | None) -> Profile | None:
    """Load the profile of a folder or profile.json. Raises InvalidProfile."""
    return load_valid_profile(path.parent if path.name == "profile.json" else path) if path else None
