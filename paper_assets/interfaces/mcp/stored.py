"""What the tools over stored results begin with: the warehouse, and the profile that is meant.

`only` are the profiles that are there for who asks, of whom there is one for each server; None: all of them. Whatever
else a name is, another's profile or nothing, it is answered in one way.
"""

from collections.abc import Set
from typing import TYPE_CHECKING

from paper_assets.errors import InvalidInput, NotComputed
from paper_assets.interfaces.mcp.calls import Calls
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
    from paper_assets.stores.summary import summary

    if name is not None:
        check_open(name, only)
        return name

    ranked = sorted(each for each in summary(warehouse).rankings if only is None or each in only)
    if not ranked:
        raise NotComputed("no profile has a ranking yet; run `paper-assets run` first")
    if len(ranked) > 1:
        raise InvalidInput(f"profile: say which, one of {', '.join(ranked)}")
    return ranked[0]
