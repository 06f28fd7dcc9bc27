"""A digest by mail: one message over TLS, given to the server once (SPEC Z3).

Port 465 speaks TLS from the first byte; on any other the connection is turned to TLS (STARTTLS) before anything is
said, or the mail is not sent. Certificates are checked; a server of one's own is trusted through SSL_CERT_FILE.
"""

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from paper_assets.delivery.outcome import MayBeTaken, NotTaken

_TLS_FROM_THE_START = 465
_SECONDS = 60.0  # for each word of the conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mail is handed in, and as whom. `user` "" hands it in without a name."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)


def digest_mail(
    *, subject: str, sender: str, to: Sequence[str], text: str, html: str, identity: str, now: datetime
) -> bytes:
    """The whole message as it goes over the wire; `identity` is the same for the same profile and day."""
    mail = EmailMessage(policy=SMTP)
    mail["Subject"], mail["From"], mail["To"] = subject, sender, ", ".join(to)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{identity}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text, cte="quoted-printable")
    mail.add_alternative(html, subtype="html", cte="quoted-printable")
    return mail.as_bytes()


def send_mail(server: MailServer, to: Sequence[str], mail: bytes) -> int:
    """Hand the mail in; how many of the recipients the server refused, fewer than all.

    Raises NotTaken, and MayBeTaken where the line broke after the text was sent. Neither shows the password.
    """
    smtp: smtplib.SMTP | None = None
    try:
        smtp = _connected(server)
        refused = _addressed(smtp, server, to)
    except (smtplib.SMTPException, ssl.SSLError, OSError, ValueError) as fault:
        if smtp is not None:
            smtp.close()
        raise NotTaken(f"{server.host}: {_said(fault)}") from None
    try:
        code, answer = smtp.data(mail)
    except smtplib.SMTPDataError as fault:
        raise NotTaken(f"{server.host}: {_said(fault)}") from None
    except (smtplib.SMTPException, ssl.SSLError, OSError) as fault:
        raise MayBeTaken(f"{server.host} broke off while it took the mail ({type(fault).__name__})") from None
    finally:
        smtp.close()
    if code != 250:
        raise NotTaken(f"{server.host}: {_said(smtplib.SMTPDataError(code, answer))}")
    return refused


def _connected(server: MailServer) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.port == _TLS_FROM_THE_START:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=_SECONDS, context=context)
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=_SECONDS)
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


def _addressed(smtp: smtplib.SMTP, server: MailServer, to: Sequence[str]) -> int:
    code, answer = smtp.mail(server.sender)
    if code != 250:
        raise smtplib.SMTPSenderRefused(code, answer, server.sender)
    answers = [smtp.rcpt(recipient) for recipient in to]
    refused = [each for each in answers if each[0] not in (250, 251)]
    if len(refused) == len(to):
        raise smtplib.SMTPResponseException(*refused[0])
    return len(refused)


def _said(fault: Exception) -> str:
    """What went wrong, in words; a server's own words are cut, and no exception is shown whole: it may hold a name."""
    if isinstance(fault, smtplib.SMTPAuthenticationError):
        return f"it does not accept the user or the password ({fault.smtp_code})"
    if isinstance(fault, smtplib.SMTPNotSupportedError):
        return "it offers no TLS, or no way to log in; the mail was not sent"
    if isinstance(fault, smtplib.SMTPResponseException):
        error = fault.smtp_error
        text = error.decode(errors="replace") if isinstance(error, bytes) else str(error)
        return f"it refused the mail ({fault.smtp_code} {' '.join(text.split())[:120]})"
    if isinstance(fault, ssl.SSLError):
        return "its certificate was not accepted; for a server of your own set SSL_CERT_FILE"
    return f"it cannot be reached or broke off ({type(fault).__name__})"
