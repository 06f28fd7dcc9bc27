"""Run the desk every day: `up` and `service`."""

import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, PaperAssetsError, StoreUnwritable
from paper_assets.interfaces.cli.terminal import command_group, dagster_home, read_settings, say, warn
from paper_assets.interfaces.supervisor import backup_service, desk_service, graph_service, keep_up
from paper_assets.setup.fetch_hours import cron_in_utc
from paper_assets.setup.service_files import (
    LABEL,
    NAME,
    WORKFLOW_PATH,
    github_workflow,
    launchd_agent,
    launchd_path,
    systemd_path,
    systemd_unit,
)
from paper_assets.small_files import write_file

service = command_group(
    "service", "Run `paper-assets up` after every login, or fetch and rank on GitHub every morning."
)
_KEPT = ("PAPER_ASSETS_", "OUTPUT_DIR", "PDF_DIR")  # settings that a service needs; keys stay out of its file
_SECRETS = ("KEY", "PASSWORD", "TOKEN", "SECRET")

Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the desk.")]
GraphPort = Annotated[int, typer.Option(min=1, max=65535, help="Port of Dagster's UI.")]


def up(
    port: Port = 8787,
    graph_port: GraphPort = 3000,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show everything that goes into the log.")] = False,
) -> None:
    """Run Dagster's daemon and UI and the desk together, and restart those that die. Ctrl-C ends all of them.

    A backup is made every day, and the last seven are kept. Errors, warnings and addresses are shown; everything is in
    `up.log` in the data folder.
    """
    settings = read_settings()
    graph = f"http://127.0.0.1:{graph_port}"  # where the desk's Health leads
    environ = {**os.environ, "DAGSTER_HOME": str(dagster_home().absolute()), "PAPER_ASSETS_GRAPH": graph}
    services = [graph_service("-p", str(graph_port)), desk_service(port), backup_service()]
    sys.exit(keep_up(services, settings.home, environ, say=say, verbose=verbose))


@service.command()
def install(port: Port = 8787, graph_port: GraphPort = 3000) -> None:
    """Install the service for your user and start it. Prints the file that it wrote.

    It is a unit of systemd on Linux and an agent of launchd on macOS.
    """
    command = [*_program(), "up", "--port", str(port), "--graph-port", str(graph_port)]
    file, content = _file(command)
    _write(file, content)
    say(f"wrote {file}")
    for start_command in _start_commands(file):
        _ask_system(start_command)
    left_out = sorted(name for name in os.environ if name.startswith(_KEPT) and _is_secret(name))
    if left_out:
        warn(f"note: {', '.join(left_out)} is not in the file; set it where your login session reads its environment")


@service.command()
def status() -> None:
    """Show whether the service is installed and running."""
    file = _path()
    if not file.exists():
        say(f"not installed: there is no {file}; `paper-assets service install` writes it")
        raise typer.Exit(3)
    say(f"installed: {file}")
    mac = platform.system() == "Darwin"
    query = ["launchctl", "list", LABEL] if mac else ["systemctl", "--user", "is-active", f"{NAME}.service"]
    done = _system(query)
    if done is None:
        return warn(f"note: {query[0]} is not available here, so whether it runs is unknown")
    say("running" if done.returncode == 0 else f"not running: {(done.stdout or done.stderr).strip() or 'unknown'}")
    if done.returncode:
        raise typer.Exit(1)


@service.command()
def remove() -> None:
    """Stop the service and remove its file. Papers, profiles and settings are kept."""
    file = _path()
    if not file.exists():
        return say(f"nothing to remove: there is no {file}")
    mac = platform.system() == "Darwin"
    _ask_system(
        ["launchctl", "unload", str(file)] if mac else ["systemctl", "--user", "disable", "--now", f"{NAME}.service"]
    )
    file.unlink()
    say(f"removed {file}")


@service.command(name="github-actions")
def github_actions(
    package: Annotated[str, typer.Option(help="What pip installs: a version, a wheel or an address.")] = "paper-assets",
    days: Annotated[
        int,
        typer.Option(
            min=1, max=30, help="Newest days to fetch each time, for the papers that arXiv announces late too."
        ),
    ] = 7,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing workflow.")] = False,
) -> None:
    """Write a GitHub workflow that fetches, ranks, sends and publishes the digests every morning.

    It runs at the hours of the daily fetch.
    """
    if '"' in package or "\n" in package or "$" in package:
        raise InvalidInput("--package must be a requirement that pip accepts, without quotation marks or $")
    minute, hour, cron_days = cron_in_utc(read_settings(), datetime.now(UTC))
    text = github_workflow(package=package, minute=minute, hour=hour, weekdays=cron_days, days=days)
    file = Path.cwd() / WORKFLOW_PATH
    if file.exists() and not replace:
        raise InvalidInput(f"{file} exists; --replace overwrites it")
    _write(file, text.encode())
    say(
        f"wrote {file}\nNext: commit it with your profiles/ folder, and choose GitHub Actions as the source of Pages "
        "in the repository's settings."
    )


def _program() -> list[str]:
    """Return the command that runs this installation, by absolute paths."""
    script = Path(sys.executable).with_name("paper-assets")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-c", "from paper_assets.interfaces.cli.app import program; program()"]


def _file(command: list[str]) -> tuple[Path, bytes]:
    settings = read_settings()
    variables = {name: value for name, value in os.environ.items() if name.startswith(_KEPT) and not _is_secret(name)}
    environment = {
        **variables,
        "PAPER_ASSETS_HOME": str(settings.home),
        "PAPER_ASSETS_PROFILES": str(settings.profiles_dir),
        "DAGSTER_HOME": str(dagster_home().absolute()),
    }
    settings.home.mkdir(parents=True, exist_ok=True)
    if platform.system() == "Darwin":
        log = settings.home / "service.log"
        return _path(), launchd_agent(command, environment, folder=settings.home, log=log)
    return _path(), systemd_unit(command, environment, folder=settings.home).encode()


def _is_secret(name: str) -> bool:
    return any(word in name for word in _SECRETS)


def _path() -> Path:
    system = platform.system()
    if system == "Darwin":
        return launchd_path(Path.home())
    if system == "Linux":
        return systemd_path(Path.home(), os.environ.get("XDG_CONFIG_HOME", ""))
    raise InvalidInput(f"services are supported on Linux and macOS, not on {system}; run `paper-assets up` instead")


def _start_commands(file: Path) -> list[list[str]]:
    if platform.system() == "Darwin":
        return [["launchctl", "unload", str(file)], ["launchctl", "load", str(file)]]
    return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", "--now", f"{NAME}.service"]]


def _ask_system(command: list[str]) -> None:
    """Run a system command and report the result; where it is missing, say what the user can do."""
    done = _system(command)
    if done is None:
        warn(f"note: {command[0]} is not available here; run this yourself: {' '.join(command)}")
    elif done.returncode and command[1] != "unload":
        reason = (done.stderr or done.stdout).strip().splitlines()
        warn(f"note: {' '.join(command)} failed: {reason[0] if reason else f'exit code {done.returncode}'}")
    else:
        say(f"ran {' '.join(command)}")


def _system(command: list[str]) -> "subprocess.CompletedProcess[str] | None":
    if shutil.which(command[0]) is None:
        return None
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise PaperAssetsError(f"{' '.join(command)} did not answer: {fault}") from None


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)
    except OSError as fault:
        raise StoreUnwritable(f"{file} cannot be written: {fault.strerror}; check permissions") from None
