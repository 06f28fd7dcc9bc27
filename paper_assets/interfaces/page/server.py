"""Serving the page on the loopback until somebody ends it."""

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
from paper_assets.stores.private import make_private_folder

HOST = "127.0.0.1"
_SECONDS_TO_END = 2  # for answers under way


def serve(settings: Settings, environ: Mapping[str, str], *, port: int, say: Callable[[str], None]) -> None:
    """Serve the desk until Ctrl-C or SIGTERM; `say` hears its address. Port 0 takes a free one.

    Raises InvalidInput if the port is taken.
    """
    desk = Desk(settings=settings, environ=environ, token=form_token_of(settings))
    logging.basicConfig(level=logging.WARNING)
    listener = open_listener(HOST, port)
    say(f"the desk is open at http://{HOST}:{listener.getsockname()[1]}/  (Ctrl-C ends it)")
    config = uvicorn.Config(
        build_app(desk),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_END,
        lifespan="off",
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])
    # A thread may still wait for a language model or a store; nothing of it is half-written that a kill would spoil.
    os._exit(0)


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. Raises InvalidInput."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # before the address is said, so that who reads it can come at once
    except (OSError, OverflowError) as fault:
        listener.close()
        reason = fault.strerror if isinstance(fault, OSError) else "no such port"
        raise InvalidInput(
            f"port {port} of {host} cannot be used ({reason}); another desk may be open there, or name another --port"
        ) from None
    return listener


def form_token_of(settings: Settings) -> str:
    """What the forms carry: kept beside the data, for its user alone, so that a page outlives a restart of the desk."""
    file = settings.home / "desk.token"
    try:
        make_private_folder(settings.home)
        if not file.exists():
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as new:
                new.write(secrets.token_urlsafe(32))
        return file.read_text(encoding="utf-8").strip() or secrets.token_urlsafe(32)
    except FileExistsError:  # another desk was faster
        return form_token_of(settings)
    except OSError as fault:
        raise InvalidInput(
            f"{file} cannot be used: {fault.strerror}; check permissions or set PAPER_ASSETS_HOME"
        ) from None
