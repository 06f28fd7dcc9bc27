"""A real mail server and a real webhook on 127.0.0.1: TLS with a certificate made on the spot, a user, a mailbox."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

USER, PASSWORD = "ada", "correct-horse-battery"


@dataclass
class Mailbox:
    """What the server has taken, and what it does instead: `answer` to the text, or `breaks` off after it."""

    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    answer: str = "250 taken"
    breaks: bool = False
    refused: set[str] = field(default_factory=set)
    port: int = 0
    authority: Path = Path()

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answer.startswith("250"):
            mail = message_from_bytes(envelope.content, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.recipients.append(list(envelope.rcpt_tos))
        if self.breaks:
            server.transport.abort()
            await asyncio.sleep(0)
        return self.answer


class _AnyPort(Controller):
    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # port 0 has become one that is free
        super()._trigger_server()


def _accepted(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
    right = isinstance(given, LoginPassword) and given == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


@contextmanager
def mail_server(folder: Path, *, tls: bool = True) -> Iterator[Mailbox]:
    """A running server for "localhost" that speaks STARTTLS; `authority` is the file to trust."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    box = Mailbox(authority=folder / "authority.pem")
    authority.cert_pem.write_to_path(str(box.authority))
    controller = _AnyPort(
        box,
        hostname="127.0.0.1",
        port=0,
        tls_context=context if tls else None,
        require_starttls=tls,
        auth_required=tls,
        auth_require_tls=True,
        authenticator=_accepted,
    )
    controller.start()
    box.port = controller.port
    try:
        yield box
    finally:
        controller.stop(no_assert=True)


@contextmanager
def dripping_mail_server(answered: bytes) -> Iterator[int]:
    """The port of a server that sends these replies at once, and then one that does not end, byte by byte."""
    stopping = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):  # the client disconnects
            connection.sendall(answered + b"250-")
            while not stopping.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stopping.set()
            thread.join()
