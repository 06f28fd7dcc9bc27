"""Decide which profiles and files a caller may name."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from paper_assets.errors import InvalidInput, NotComputed
from paper_assets.interfaces.mcp.calls import Calls
from paper_assets.profile import PROFILE_NAME, profile_folders
from paper_assets.settings import Settings

if TYPE_CHECKING:
    from paper_assets.stores.warehouse import Warehouse


def open_warehouse(calls: Calls, settings: Settings) -> "Warehouse":
    """The warehouse; who finds it held waits no longer than a call may."""
    from paper_assets.stores.warehouse import Warehouse

    return Warehouse(settings.warehouse_path, deadline=calls.store_deadline(settings))


def check_open(name: str, only: Set[str] | None) -> None:
    """Raises InvalidInput for a profile that is not there for who asks."""
    if only is not None and name not in only:
        raise InvalidInput(f"profile: there is none named {name[:60]!r}; list_profiles names them")


def profile_meant(warehouse: "Warehouse", name: str | None, only: Set[str] | None = None) -> str:
    """The name as given, or of the only profile with a ranking. Raises NotComputed, InvalidInput."""
    from paper_assets.stores.papers import summary

    if name is not None:
        check_open(name, only)
        return name

    ranked = sorted(each for each in summary(warehouse).rankings if only is None or each in only)
    if not ranked:
        raise NotComputed("no profile has a ranking yet; run `paper-assets run` first")
    if len(ranked) > 1:
        raise InvalidInput(f"profile: say which, one of {', '.join(ranked)}")
    return ranked[0]


def profile_folder(
    given: str | None, settings: Settings, only: Set[str] | None = None, *, argument: str = "profile"
) -> Path | None:
    """The folder of a profile (one of `only`) given by name or by a path in their folder.

    Raises InvalidInput, which names the `argument`.
    """
    if given is None:
        return None
    name = given.strip()
    by_name = PROFILE_NAME.fullmatch(name)
    folder = settings.profiles_dir / name if by_name else _inside(name, (settings.profiles_dir,))
    if folder is not None and folder.name == "profile.json":
        folder = folder.parent
    theirs = only is None or (by_name and name in only)
    if folder is None or not theirs or not _holds_a_profile(folder):
        names = [each.name for each in profile_folders(settings.profiles_dir) if only is None or each.name in only]
        known = ", ".join(names[:20])
        raise InvalidInput(f"{argument}: no such profile; use the name of one: {known or 'there are none yet'}")
    return folder


def _holds_a_profile(folder: Path) -> bool:
    try:
        return (folder / "profile.json").is_file()
    except OSError:  # a name too long for any file
        return False


def local_path(given: str | None, option: str, folders: Sequence[Path]) -> Path | None:
    """The file or folder that is meant, below one of `folders`. Raises InvalidInput if there is none."""
    if given is None:
        return None
    found = _inside(given.strip(), folders)
    if found is None:
        places = " or ".join(dict.fromkeys(str(folder) for folder in folders))
        raise InvalidInput(f"{option}: nothing of that name below {places}")
    return found


def _inside(text: str, folders: Sequence[Path]) -> Path | None:
    """Return the existing place that `text` names, absolute or relative to a folder, if it is really below one."""
    try:
        roots = [folder.resolve() for folder in folders]
        for root in roots:
            place = (root / Path(text)).resolve()
            if any(place.is_relative_to(allowed) for allowed in roots) and place.exists():
                return place
    except (OSError, ValueError, RuntimeError):  # too long, a NUL byte, links in a circle
        return None
    return None
