"""Rank papers in one call: read the profile and its files, rank, save the result.

The ranking itself is in `ranking/gatekeeper.py`. The Dagster assets do not use this module; they read from the stores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput, PaperAssetsError, StoreUnwritable
from paper_assets.pipeline.profiles import load_valid_profile
from paper_assets.profile import Profile, load_history
from paper_assets.progress import Progress, ignore_progress
from paper_assets.ranking.gatekeeper import Backends, rank_papers, ranking_options
from paper_assets.ranking.result import Reader, failed_result
from paper_assets.settings import Settings
from paper_assets.small_files import is_folder, is_present
from paper_assets.sources.pdf_files import pdf_files
from paper_assets.stores.ranking_files import save_ranking

_LONGEST_PATH = 120  # characters of a path in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFiles:
    """The files of one call. A relative path is looked up in the output folder (PDFs: the PDF folder), then in
    `working_dir`.

    Attributes:
        profile_path: a profile's folder or its profile.json; None ranks by recency and practicality alone.
        history_path: JSON list of ids already read; default: the profile's own.
        local_pdf_dir: folder of PDF files; default: the profile's `pdf/`.
    """

    profile_path: str | Path | None = None
    history_path: str | Path | None = None
    local_pdf_dir: str | Path | None = None
    working_dir: Path | None = None


NO_FILES = RankingFiles()
NO_BACKENDS = Backends()


def rank_and_filter_papers(
    papers: Sequence[Mapping[str, Any]], *, now: datetime, options: Mapping[str, Any] | None = None, **call: Any
) -> dict[str, Any]:
    """Call `ranked`; invalid input does not raise: `success` is then False and `error` is one line."""
    try:
        return ranked(papers, now=now, options=options, **call)
    except PaperAssetsError as error:
        count = len(papers) if isinstance(papers, Sequence) else 0
        return failed_result(str(error), input_count=count, options=dict(options or {}), now=now)


def ranked(
    papers: Sequence[Mapping[str, Any]],
    *,
    settings: Settings,
    as_of: date,
    now: datetime,
    files: RankingFiles = NO_FILES,
    options: Mapping[str, Any] | None = None,
    backends: Backends = NO_BACKENDS,
    save: bool = True,
    progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Filter, score and order the papers for a profile.

    Args:
        papers: records with paper_id, title, abstract and authors.
        settings: folders and scoring configuration.
        as_of: day from which the age of a paper counts.
        now: time of the result and of its file name.
        files: profile, history and PDFs.
        options: ranking options by name (fields of `RankingOptions`) that override the profile's; None: not given.
        backends: embedder, store of known papers, verifier.
        save: write the result to the rankings folder.
        progress: called before the result is saved; may raise, and then nothing is saved.

    Raises PaperAssetsError.
    """
    reader = _reader(files, settings)
    chosen = ranking_options(reader.profile, dict(options or {}))
    result = rank_papers(papers, reader, chosen, scoring=settings.scoring, as_of=as_of, now=now, backends=backends)
    if save:
        progress(0, None, "saving")
        name = reader.profile.name if reader.profile else None
        try:
            result["output_path"] = str(save_ranking(settings.rankings_dir, name, result, now=now))
        except StoreUnwritable as error:  # a full disk must not cost the answer
            result["summary"]["warnings"].append(str(error))
    return result


def _reader(files: RankingFiles, settings: Settings) -> Reader:
    profile = _profile(_existing(files.profile_path, settings.output_dir, files.working_dir))
    history = _existing(files.history_path, settings.output_dir, files.working_dir)
    pdf_dir = _existing(files.local_pdf_dir, settings.pdf_dir, files.working_dir)
    if pdf_dir is not None and not is_folder(pdf_dir):
        raise InvalidInput(f"local_pdf_dir: {pdf_dir} is not a folder")
    if pdf_dir is None and profile and profile.path:
        pdf_dir = profile.path / "pdf"
    own_history = profile.read_ids if profile else frozenset()
    return Reader(
        profile=profile,
        profile_used=None if files.profile_path is None else str(files.profile_path),
        read_ids=load_history(history, missing_ok=False) if history else own_history,
        pdf_dir=pdf_dir,
        pdf_names=pdf_files(pdf_dir) if pdf_dir else (),
    )


def _existing(path: str | Path | None, first: Path, second: Path | None) -> Path | None:
    """Resolve a path against the first of the two folders that has it; an absolute path stays as it is."""
    if path is None:
        return None
    try:
        places = [base / Path(path).expanduser() for base in (first, second) if base is not None]
    except RuntimeError:
        raise InvalidInput(f"{str(path)[:60]!r}: no such user") from None
    return next((place for place in places if is_present(place)), places[0])


def _profile(file: Path | None) -> Profile | None:
    """Load the profile of a folder or profile.json. Raises InvalidInput if it is missing, InvalidProfile if broken."""
    if file is None:
        return None
    folder = file.parent if file.name == "profile.json" else file
    if not is_present(folder / "profile.json"):
        shown = str(file) if len(str(file)) <= _LONGEST_PATH else f"…{str(file)[-_LONGEST_PATH:]}"
        raise InvalidInput(f"profile_path: no profile at {shown}; give a profile's folder or its profile.json")
    return load_valid_profile(folder)
