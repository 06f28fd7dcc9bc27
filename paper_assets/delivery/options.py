"""Read `delivery.json` of a profile: the channels on which its digest is sent.

    {"mail": {"to": ["ada@example.org"]}, "webhook": {"address_in": "PAPER_ASSETS_WEBHOOK_LAB"}}

The file is next to `profile.json` and is not part of the profile's content: it does not affect the ranking. Secrets,
such as a webhook's address, are in the environment and not in the file. Without the file the digest is not sent.
"""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from paper_assets.errors import InvalidProfile
from paper_assets.profile import read_json
from paper_assets.small_files import first_fault, is_present

MAIL, WEBHOOK = "mail", "webhook"
WEBHOOK_VARIABLE = re.compile(r"PAPER_ASSETS_WEBHOOK[A-Z0-9_]{0,60}")
_ADDRESS = r"^[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"
_MOST_RECIPIENTS = 20


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MailOptions(_Part):
    """The recipients of the digest; each gets a separate mail and sees no other address."""

    to: Annotated[
        list[Annotated[str, StringConstraints(pattern=_ADDRESS)]], Field(min_length=1, max_length=_MOST_RECIPIENTS)
    ]


class WebhookOptions(_Part):
    """The environment variable with the webhook's address, which is a secret."""

    address_in: Annotated[str, StringConstraints(pattern=f"^{WEBHOOK_VARIABLE.pattern}$")]


class DeliveryOptions(_Part):
    """The channels of a profile; a channel that is not listed is off."""

    mail: MailOptions | None = None
    webhook: WebhookOptions | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Return the names of the channels in use."""
        return tuple(name for name in (MAIL, WEBHOOK) if getattr(self, name))


def load_delivery(profiles_dir: Path, profile: str) -> DeliveryOptions:
    """Load the profile's `delivery.json`; empty options if there is none. Raises InvalidProfile naming file and key."""
    file = profiles_dir / profile / "delivery.json"
    if not is_present(file):
        return DeliveryOptions()
    try:
        return DeliveryOptions.model_validate(read_json(file))
    except ValidationError as error:
        raise InvalidProfile(f"{file}: {_first_fault(error)}") from None


def _first_fault(error: ValidationError) -> str:
    """Describe the error without the value, which may be a secret address in place of its variable's name."""
    fault: Any = error.errors(include_url=False)[0]
    if fault["type"] == "model_type":
        key = ".".join(str(part) for part in fault["loc"]) or "the file"
        return f'{key}: must be an object, such as {{"webhook": {{"address_in": "PAPER_ASSETS_WEBHOOK_LAB"}}}}'
    if fault["type"] != "string_pattern_mismatch":
        return first_fault(error)
    wanted = "an address like ada@example.org" if "to" in fault["loc"] else "a variable like PAPER_ASSETS_WEBHOOK_LAB"
    return f"{'.'.join(str(part) for part in fault['loc'])}: must be {wanted}"
