"""Send a digest by mail or to a webhook, each message once, as `options.py` read it from `delivery.json`.

Mail: port 465 uses TLS from the first byte; on any other port the connection is upgraded (STARTTLS) before anything is
sent, or the mail is not sent. Certificates are verified; SSL_CERT_FILE adds a private authority.

Webhook: one JSON object is posted to an https URL, which is a secret and appears in no message. Nothing is retried and
no redirect is followed, because both could deliver the message twice or to the wrong host. Plain http is accepted for
this machine only.

Each step also has a limit for its whole time, because a server can answer byte by byte.

A failure is either certain (`NotDelivered`, safe to retry) or unknown (`DeliveryUncertain`, retried only on request).
"""

import json
import smtplib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from paper_assets.digests.content import Digest
from paper_assets.digests.plain_text import in_letters, in_words, weekday
from paper_assets.errors import InvalidInput, SourceError
from paper_assets.retrying import limited
from paper_assets.sources.table import page_of


def secret(environ: Mapping[str, str], variable: str) -> str:
    """Return the value of a required variable. Raises InvalidInput, which names the variable only."""
    value = environ.get(variable, "").strip()
    if not value:
        raise InvalidInput(
            f"{variable} is not set; set it in the environment of paper-assets, or remove it from delivery.json"
        )
    return value


class NotDelivered(SourceError):
    """The server did not accept the message; it is safe to send it again."""


class DeliveryUncertain(SourceError):
    """The connection broke during sending; the message may have arrived, so it is not sent again automatically."""


_TLS_FROM_THE_START = 465
_MAIL_TIMEOUT = 60.0  # seconds to wait for data
_MAIL_LIMIT = 180.0  # seconds to connect and log in, and for each mail


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The SMTP server, the sender and the login. An empty `user` sends without logging in."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)


def digest_mail(*, subject: str, sender: str, to: str, text: str, html: str, identity: str, now: datetime) -> bytes:
    """Build the complete message to one recipient, who sees no other; `identity` is that of the profile and day."""
    mail = EmailMessage(policy=SMTP)
    mail["Subject"], mail["From"], mail["To"] = subject, sender, to
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{identity}.{sha256(to.encode()).hexdigest()[:12]}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    # A digest has no page to unsubscribe at: the mail asks who sends it.
    mail["List-Unsubscribe"] = f"<mailto:{parseaddr(sender)[1]}?subject={quote(f'Unsubscribe: {identity}')}>"
    mail.set_content(text, cte="quoted-printable")
    mail.add_alternative(html, subtype="html", cte="quoted-printable")
    return mail.as_bytes()


def send_mail(server: MailServer, mails: Sequence[tuple[str, bytes]], transmits: Callable[[], None]) -> int:
    """Send each recipient their mail over one connection; return how many the server refused (never all of them).

    `transmits` is called before the first mail is transmitted.

    Raises NotDelivered if no recipient has it, or DeliveryUncertain if the connection broke when one has it or may have
    it. Neither shows the password.
    """
    within = partial(limited, _MAIL_LIMIT)
    try:
        smtp = within(partial(_connect, server))
    except (smtplib.SMTPException, ssl.SSLError, OSError, ValueError) as fault:
        raise NotDelivered(f"{server.host}: {_reason(fault)}") from None
    refused: list[Exception] = []
    try:
        for place, (to, mail) in enumerate(mails):
            try:
                within(partial(_send_envelope, smtp, server, to))
            except smtplib.SMTPResponseException as fault:
                refused.append(fault)
                within(smtp.rset)
                continue
            except (smtplib.SMTPException, ssl.SSLError, OSError, ValueError) as fault:
                if place == len(refused):
                    raise NotDelivered(f"{server.host}: {_reason(fault)}") from None
                raise
            if place == len(refused):  # nothing has been transmitted
                transmits()
            try:
                code, answer = within(partial(smtp.data, mail))
                if code != 250:
                    refused.append(smtplib.SMTPDataError(code, answer))
            except smtplib.SMTPDataError as fault:
                refused.append(fault)
                within(smtp.rset)
    except (smtplib.SMTPException, ssl.SSLError, OSError, ValueError) as fault:
        late = isinstance(fault, TimeoutError)
        happened = f"gave no whole answer within {_MAIL_LIMIT:g} s" if late else "closed the connection"
        raise DeliveryUncertain(
            f"{server.host} {happened} while it received the mail ({type(fault).__name__})"
        ) from None
    finally:
        _close(smtp)
    if len(refused) == len(mails):
        raise NotDelivered(f"{server.host}: {_reason(refused[0])}")
    return len(refused)


def check_server(server: MailServer, *, seconds: float = _MAIL_LIMIT) -> None:
    """Connect and log in without sending anything. Raises NotDelivered with the reason."""
    try:
        _close(limited(seconds, partial(_connect, server)))
    except (smtplib.SMTPException, ssl.SSLError, OSError, ValueError) as fault:
        raise NotDelivered(f"{server.host}: {_reason(fault)}") from None


def _connect(server: MailServer) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.port == _TLS_FROM_THE_START:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=_MAIL_TIMEOUT, context=context)
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=_MAIL_TIMEOUT)
    try:
        if server.port != _TLS_FROM_THE_START:
            smtp.starttls(context=context)
        smtp.ehlo_or_helo_if_needed()
        if server.user:
            smtp.login(server.user, server.password)
    except BaseException:
        smtp.close()
        raise
    return smtp


def _close(smtp: smtplib.SMTP) -> None:
    """Close the connection, also while a late call reads from it: it holds the lock that a plain close waits for."""
    if (sock := smtp.sock) is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    smtp.close()


def _send_envelope(smtp: smtplib.SMTP, server: MailServer, to: str) -> None:
    code, answer = smtp.mail(server.sender)
    if code != 250:
        raise smtplib.SMTPSenderRefused(code, answer, server.sender)
    code, answer = smtp.rcpt(to)
    if code not in (250, 251):
        raise smtplib.SMTPResponseException(code, answer)


def _reason(fault: Exception) -> str:
    """Describe a failure; a server's reply is cut, and no exception is shown in full because it may contain a name."""
    if isinstance(fault, smtplib.SMTPAuthenticationError):
        return f"it rejected the user name or the password ({fault.smtp_code})"
    if isinstance(fault, smtplib.SMTPNotSupportedError):
        return "it does not offer TLS or a way to log in; the mail was not sent"
    if isinstance(fault, smtplib.SMTPResponseException):
        error = fault.smtp_error
        text = error.decode(errors="replace") if isinstance(error, bytes) else str(error)
        return f"it rejected the mail ({fault.smtp_code} {' '.join(text.split())[:120]})"
    if isinstance(fault, ssl.SSLError):
        return "its certificate could not be verified; for a private server set SSL_CERT_FILE"
    if isinstance(fault, TimeoutError):
        return "it gave no whole answer in time"
    return f"it cannot be reached, or it closed the connection ({type(fault).__name__})"


_CONNECT_TIMEOUT = 10.0  # seconds to connect, for each address of the host
_WEBHOOK_TIMEOUT = 30.0  # seconds to wait for data
_WEBHOOK_LIMIT = 60.0  # seconds for everything; longer than the timeouts, whose outcome is more certain
_THIS_MACHINE = frozenset(("127.0.0.1", "localhost", "::1"))
_NOT_PROCESSED = frozenset((429, 503))  # statuses that say that nothing was processed


def post_webhook(address: str, payload: dict[str, Any], *, variable: str) -> None:
    """Post the object. Errors show `variable`, the name of the environment variable, never the address itself.

    Raises NotDelivered; DeliveryUncertain without an answer or after a server error; InvalidInput for a bad address.
    """
    _check_address(address, variable)
    post = partial(
        requests.post,
        address,
        data=json.dumps(payload, ensure_ascii=False).encode(),
        headers={"Content-Type": "application/json; charset=utf-8", "User-Agent": "paper_assets"},
        timeout=(_CONNECT_TIMEOUT, _WEBHOOK_TIMEOUT),
        allow_redirects=False,
        stream=True,  # the body of the answer is not read
    )
    try:
        answer = limited(_WEBHOOK_LIMIT, post)
        answer.close()
    except (requests.exceptions.SSLError, requests.exceptions.ConnectTimeout, requests.exceptions.ProxyError) as fault:
        raise NotDelivered(f"{variable}: it cannot be reached securely ({type(fault).__name__})") from None
    except requests.ConnectionError as fault:
        if _never_connected(fault):
            raise NotDelivered(f"{variable}: it cannot be reached") from None
        raise DeliveryUncertain(f"{variable}: it closed the connection before it answered") from None
    except requests.Timeout:
        raise DeliveryUncertain(f"{variable}: it did not answer within {_WEBHOOK_TIMEOUT:g} s") from None
    except TimeoutError:
        raise DeliveryUncertain(f"{variable}: it gave no whole answer within {_WEBHOOK_LIMIT:g} s") from None
    except (requests.RequestException, ValueError):
        raise InvalidInput(f"{variable} is not a valid https address") from None
    status = answer.status_code
    if status >= 500 and status not in _NOT_PROCESSED:
        raise DeliveryUncertain(f"{variable}: it answered HTTP {status}, an error on its side")
    if not 200 <= status < 300:
        raise NotDelivered(
            f"{variable}: it answered HTTP {status}" + ("; redirects are not followed" if status < 400 else "")
        )


def _check_address(address: str, variable: str) -> None:
    try:
        parts = urlsplit(address)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)
    except ValueError:
        safe = False
    if not safe or not parts.hostname or not address.isprintable():
        raise InvalidInput(f"{variable} must be an https address (http for this machine only)")


def _never_connected(fault: requests.ConnectionError) -> bool:
    """Return whether no connection was made: refused, or an unknown host name."""
    reason = getattr(fault.args[0], "reason", None) if fault.args else None
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError")


# Slack, Mattermost and similar services show the JSON's `text`; `title` and `message` are for services that need them
# separately (ntfy's templates); the other keys are for programs. Titles are untrusted: characters that would mention
# people or create links in such a service are replaced by similar-looking ones.
_LONGEST_TITLE, _LONGEST_TEXT = 160, 3_000  # characters; ntfy cuts a message at 4,096 bytes
_WITHOUT_MARKUP = str.maketrans(
    {"<": "‹", ">": "›", "@": "＠", "[": "(", "]": ")", "`": "'", "*": "∗", "_": " ", "|": "/"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The message for one profile and day. `payload` is the webhook's JSON object (docs/operations.md)."""

    subject: str
    payload: dict[str, Any]


def message_of(digest: Digest, *, desk: str | None = None) -> Message:
    """Build the message of a digest; `desk` is the address of the same day on the review page."""
    count = len(digest.entries)
    subject = (
        f"{digest.profile}, {weekday(digest.day)}, {in_words(digest.day)}: "
        f"{in_letters(count)} paper{'' if count == 1 else 's'}"
    )
    papers = [
        {
            "rank": each.rank,
            "paper_id": each.paper_id,
            "title": each.title,
            "url": page_of(each.paper_id),
            "score": each.score,
        }
        for each in digest.entries
    ]
    lines = [
        f"{each['rank']}. {_without_markup(str(each['title']))}" + (f"\n{each['url']}" if each["url"] else "")
        for each in papers
    ]
    text = "\n".join(lines)
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT].rpartition("\n")[0] + "\n…"
    return Message(
        subject=subject,
        payload={
            "text": f"{subject}\n{text}",
            "title": subject,
            "message": text,
            "profile": digest.profile,
            "day": digest.day.isoformat(),
            "papers": papers,
            "desk": desk,
        },
    )


def _without_markup(title: str) -> str:
    title = " ".join(title.translate(_WITHOUT_MARKUP).split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
