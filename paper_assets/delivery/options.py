"""`delivery.json` of a profile: who gets its digest, and how (SPEC Z3). Without the file nobody does.

    {"mail": {"to": ["ada@example.org"]}, "webhook": {"address_in": "PAPER_ASSETS_WEBHOOK_LAB"}}

It stands beside `profile.json` and is no part of the profile's content: where a digest goes changes no ranking. What is
secret, a webhook's address among it, is not in the file but in the environment.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.profile import read_json
from paper_assets.small_files import lies_there
from paper_assets.validation import first_fault

MAIL, WEBHOOK = "mail", "webhook"
WEBHOOK_VARIABLE = re.compile(r"PAPER_ASSETS_WEBHOOK[A-Z0-9_]{0,60}")
_ADDRESS = r"^[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"
_MOST_RECIPIENTS = 20


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MailOptions(_Part):
    """To whom the digest is mailed; everybody sees the others."""

    to: Annotated[
        list[Annotated[str, StringConstraints(pattern=_ADDRESS)]], Field(min_length=1, max_length=_MOST_RECIPIENTS)
    ]


class WebhookOptions(_Part):
    """The environment variable that holds the webhook's address, which is a secret."""

    address_in: Annotated[str, StringConstraints(pattern=f"^{WEBHOOK_VARIABLE.pattern}$")]


class DeliveryOptions(_Part):
    """The channels of a profile, each off unless it is named."""

    mail: MailOptions | None = None
    webhook: WebhookOptions | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(name for name in (MAIL, WEBHOOK) if getattr(self, name))


def load_delivery(profiles_dir: Path, profile: str) -> DeliveryOptions:
    """What the profile's `delivery.json` says; nothing without one. Raises InvalidProfile naming file and key."""
    file = profiles_dir / profile / "delivery.json"
    if not lies_there(file):
        return DeliveryOptions()
    try:
        return DeliveryOptions.model_validate(read_json(file))
    except ValidationError as error:
        raise InvalidProfile(f"{file}: {_first_fault(error)}") from None


def secret(environ: Mapping[str, str], variable: str) -> str:
    """The value of a variable that must be set. Raises InvalidInput, which names the variable only."""
    value = environ.get(variable, "").strip()
    if not value:
        raise InvalidInput(f"{variable} is not set; set it where paper-assets runs, or take it out of delivery.json")
    return value


def _first_fault(error: ValidationError) -> str:
    """The fault without the value: somebody may have written a webhook's address where its variable's name belongs."""
    fault: Any = error.errors(include_url=False)[0]
    if fault["type"] != "string_pattern_mismatch":
        return first_fault(error)
    wanted = "an address like ada@example.org" if "to" in fault["loc"] else "a variable like PAPER_ASSETS_WEBHOOK_LAB"
    return f"{'.'.join(str(part) for part in fault['loc'])}: must be {wanted}"
