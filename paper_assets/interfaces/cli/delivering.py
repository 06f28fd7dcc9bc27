"""The command that sends a digest by hand: to try the settings, or after a delivery of which nobody knows."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, NotComputed, PaperAssetsError
from paper_assets.interfaces.cli.arguments import AsJson, read_settings
from paper_assets.interfaces.cli.terminal import print_json, print_table
from paper_assets.interfaces.days import parse_day
from paper_assets.pipeline.deliveries import deliver as send
from paper_assets.pipeline.digests import parcel
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.stores.rankings import latest_ranking_day


def deliver(
    profile: str,
    day: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day; default: the newest.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what was sent before, or may have been.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a profile's digest where its delivery.json says; each goes out once."""
    workspace = open_workspace(read_settings(), os.environ, clock=lambda: datetime.now(UTC))
    wanted = parse_day(day, "--day") if day else latest_ranking_day(workspace.warehouse, profile)
    if wanted is None:
        raise NotComputed(f"no ranking for profile {profile[:60]!r}; run `paper-assets run --profile PROFILE` first")
    found = parcel(workspace.warehouse, profile, wanted, settings=workspace.settings)
    tried = send(workspace, found, again=again)
    if not tried:
        raise InvalidInput(f"{profile}: nothing to send, it has no delivery.json that names a channel")
    shown = [
        {"channel": each.channel, "state": "unknown" if each.state == "sending" else each.state, "reason": each.reason}
        for each in tried
    ]
    if as_json:
        print_json({"profile": profile, "day": wanted, "deliveries": shown})
    else:
        rows = [(each["channel"], each["state"], each["reason"] or "") for each in shown]
        print_table(f"{profile}, {wanted}", ["channel", "state", "reason"], rows)
    lost = [each for each in shown if each["state"] != "sent"]
    if lost:
        raise PaperAssetsError(f"{profile}, {wanted}: {lost[0]['channel']} {lost[0]['state']}: {lost[0]['reason']}")
