"""Serve the page on the loopback interface until it is stopped."""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping

import uvicorn

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.page.desk import Desk
from paper_assets.settings import Settings
from paper_assets.stores.locks import make_private_folder

HOST = "127.0.0.1"
_SHUTDOWN_SECONDS = 2  # for requests in progress


def serve(settings: Settings, environ: Mapping[str, str], *, port: int, say: Callable[[str], None]) -> None:
    """Serve the desk until Ctrl-C or SIGTERM; its address goes to `say`. Port 0 takes a free port.

    Raises InvalidInput if the port is in use.
    """
    desk = Desk(settings=settings, environ=environ, token=form_token_of(settings))
    logging.basicConfig(level=logging.WARNING)
    listener = open_listener(HOST, port)
    say(f"the desk is open at http://{HOST}:{listener.getsockname()[1]}/  (Ctrl-C stops it)")
    config = uvicorn.Config(
        build_app(desk),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        lifespan="off",
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])
    # A thread may still wait for a language model or a store; ending it leaves nothing half-written.
    os._exit(0)


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free port. Raises InvalidInput."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # before the address is printed, so that it can be opened at once
    except (OSError, OverflowError) as fault:
        listener.close()
        reason = fault.strerror if isinstance(fault, OSError) else "invalid port"
        raise InvalidInput(
            f"port {port} of {host} cannot be used ({reason}); stop the program that uses it, or choose another --port"
        ) from None
    return listener


def form_token_of(settings: Settings) -> str:
    """Return the token of the forms, kept in a private file so that open pages survive a restart of the desk."""
    file = settings.home / "desk.token"
    try:
        make_private_folder(settings.home)
        if not file.exists():
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as new:
                new.write(secrets.token_urlsafe(32))
        return file.read_text(encoding="utf-8").strip() or secrets.token_urlsafe(32)
    except FileExistsError:  # another desk created it first
        return form_token_of(settings)
    except OSError as fault:
        raise InvalidInput(
            f"{file} cannot be used: {fault.strerror}; check permissions or set PAPER_ASSETS_HOME"
        ) from None
