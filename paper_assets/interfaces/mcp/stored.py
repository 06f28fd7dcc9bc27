"""What the tools over stored results begin with: the warehouse, and the profile that is meant."""

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


def profile_meant(warehouse: "Warehouse", name: str | None) -> str:
    """The name as given, or of the only profile with a ranking. Raises NotComputed, InvalidInput."""
    from paper_assets.stores.summary import summary

    if name is not None:
        return name

    ranked = sorted(summary(warehouse).rankings)
    if not ranked:
        raise NotComputed("no profile has a ranking yet; run `paper-assets run` first")
    if len(ranked) > 1:
        raise InvalidInput(f"profile: say which, one of {', '.join(ranked)}")
    return ranked[0]
