"""Send digests by mail and to a webhook, each once per profile and day, as configured in `delivery.json` (Z3).

A digest is sent at most once. The outbox is set to `sending` before the text is transmitted, so a process that is
killed while it transmits leaves a delivery with unknown outcome; the check `digests_were_sent` reports it and only a
person sends it again. The next run sends what certainly failed or was cut off earlier. Only a profile's newest day is
sent, and nothing older than a week: a backfill sends nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from paper_assets.delivery.channels import (
    DeliveryUncertain,
    MailServer,
    digest_mail,
    message_of,
    post_webhook,
    secret,
    send_mail,
)
from paper_assets.delivery.options import MAIL, WEBHOOK, DeliveryOptions, load_delivery
from paper_assets.digests.content import Digest
from paper_assets.errors import InvalidInput, InvalidProfile, named_error
from paper_assets.pipeline.staleness import SENT_WITHIN
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.deliveries import Delivery, State, claim, deliveries, note

_PASSWORD = "PAPER_ASSETS_SMTP_PASSWORD"  # noqa: S105  # the variable's name


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingDigest:
    """A digest with its pages, and the URL at which the desk shows it."""

    digest: Digest
    html: str
    text: str
    desk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """Why a digest was not, or may not have been, delivered; `unknown` ones are not sent again automatically."""

    profile: str
    day: date | None
    channel: str
    reason: str
    unknown: bool = False

    def __str__(self) -> str:
        again = f"; `paper-assets deliver {self.profile} --day {self.day} --again` sends it once more"
        place = f"{self.profile}{f' {self.day}' if self.day else ''} {self.channel}"
        return f"{place}: {self.reason}{again if self.unknown else ''}"


def deliver(workspace: Workspace, outgoing: OutgoingDigest, *, again: bool = False) -> list[Delivery]:
    """Send the digest on every channel of its profile that has not had it; return the state of each channel.

    `again`: also where the outcome is unknown, or, if it is known for every channel, where it was sent. A failure is
    recorded, not raised. Raises InvalidProfile for an unreadable `delivery.json`, StoreError.
    """
    digest, warehouse = outgoing.digest, workspace.warehouse
    options = load_delivery(workspace.settings.profiles_dir, digest.profile)
    ways: dict[str, Callable[[Workspace, DeliveryOptions, OutgoingDigest, Callable[[], None]], str | None]] = {
        MAIL: _mail,
        WEBHOOK: _webhook,
    }

    def record(channel: str, state: State, reason: str | None) -> None:
        note(warehouse, digest.profile, digest.day, channel, state, reason, now=workspace.clock())

    before = {
        each.channel: each.state
        for each in deliveries(warehouse, [digest.profile], since=digest.day)
        if each.day == digest.day and each.channel in options.channels
    }
    unknown = "sending" in before.values()
    for channel in options.channels:
        repeat = again and not (unknown and before.get(channel) == "sent")
        if not claim(warehouse, digest.profile, digest.day, channel, now=workspace.clock(), again=repeat):
            continue
        state: State = "sent"
        try:
            reason = ways[channel](workspace, options, outgoing, partial(record, channel, "sending", None))
        except DeliveryUncertain as fault:
            state, reason = "sending", str(fault)
        except Exception as fault:
            state, reason = "failed", str(named_error(fault, f"{channel} of {digest.profile}"))
        record(channel, state, reason)
    found = deliveries(warehouse, [digest.profile], since=digest.day)
    return [each for each in found if each.day == digest.day and each.channel in options.channels]


def undelivered(workspace: Workspace, profiles: Iterable[str]) -> list[Undelivered]:
    """List what was not, or may not have been, delivered of the last week's digests of these profiles, by channel."""
    names = sorted(set(profiles))
    channels: dict[str, Sequence[str]] = {}
    found: list[Undelivered] = []
    for name in names:
        try:
            channels[name] = load_delivery(workspace.settings.profiles_dir, name).channels
        except InvalidProfile as fault:
            found.append(Undelivered(profile=name, day=None, channel="delivery.json", reason=str(fault)))
    if not any(channels.values()):
        return found
    for each in deliveries(workspace.warehouse, names, since=workspace.clock().date() - SENT_WITHIN):
        if each.state in ("sent", "claimed") or each.channel not in channels.get(each.profile, ()):
            continue
        unknown = each.state == "sending"
        reason = f"it is unknown whether it arrived ({each.reason or 'cut off'})" if unknown else each.reason
        found.append(
            Undelivered(
                profile=each.profile, day=each.day, channel=each.channel, reason=reason or "failed", unknown=unknown
            )
        )
    return found


def _mail(
    workspace: Workspace, options: DeliveryOptions, outgoing: OutgoingDigest, transmits: Callable[[], None]
) -> str | None:
    settings, environ, digest = workspace.settings, workspace.access.environ, outgoing.digest
    if options.mail is None or not settings.smtp_host or not settings.mail_from:
        raise InvalidInput("mail needs PAPER_ASSETS_SMTP_HOST and PAPER_ASSETS_MAIL_FROM; set them, or take it out")
    to = options.mail.to
    mails = [
        (
            recipient,
            digest_mail(
                subject=message_of(digest).subject,
                sender=settings.mail_from,
                to=recipient,
                text=outgoing.text,
                html=outgoing.html,
                identity=f"digest.{digest.profile}.{digest.day}",
                now=workspace.clock(),
            ),
        )
        for recipient in to
    ]
    server = MailServer(
        host=settings.smtp_host,
        port=settings.smtp_port,
        sender=settings.mail_from,
        user=settings.smtp_user,
        password=secret(environ, _PASSWORD) if settings.smtp_user else "",
    )
    refused = send_mail(server, mails, transmits)
    return f"{refused} of {len(to)} recipients refused by {server.host}" if refused else None


def _webhook(
    workspace: Workspace, options: DeliveryOptions, outgoing: OutgoingDigest, transmits: Callable[[], None]
) -> None:
    if options.webhook is not None:
        variable = options.webhook.address_in
        address = secret(workspace.access.environ, variable)
        transmits()
        post_webhook(address, message_of(outgoing.digest, desk=outgoing.desk).payload, variable=variable)
