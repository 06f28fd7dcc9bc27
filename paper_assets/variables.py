"""How the text of an environment variable becomes the value of a setting: one type for each kind of value."""

import math
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from paper_assets.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a value must be, for the message about one that is not."""

    words: str


def _absolute(path: Path, info: ValidationInfo) -> Path:
    """A relative path is taken from the working directory, which is the context."""
    if info.context is None:
        return path
    try:
        return Path(info.context / path.expanduser()).absolute()
    except RuntimeError:
        raise ValueError("no such user") from None


def _listed(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _day(value: object) -> object:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _whole(value: object) -> object:
    if not isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return int(number)


_SECONDS = Wanted("a number of seconds from 0")

Folder = Annotated[Path, AfterValidator(_absolute), Field(validate_default=True), Wanted("a folder")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), _SECONDS]
WholeSeconds = Annotated[int, BeforeValidator(_whole), Field(ge=0), _SECONDS]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False), Wanted("a number above 0")]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]  # comma separated
Port = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=65_535), Wanted("a port from 1 to 65535")]
MailAddress = Annotated[
    str, Field(pattern=r"^([!-?A-~]{1,64}@[A-Za-z0-9][A-Za-z0-9.-]{0,251})?$"), Wanted("a mail address")
]
Address = Annotated[str, AfterValidator(lambda text: text.rstrip("/"))]
ClusterAddress = Annotated[
    str,
    AfterValidator(lambda text: text.rstrip("/")),
    Field(pattern=r"^((tcp|tls)://[A-Za-z0-9.:\[\]-]{1,253}:[0-9]{1,5}/?)?$"),
    Wanted("an address like tcp://host:8786"),
]
ServerAddress = Annotated[
    str,
    AfterValidator(lambda text: text.rstrip("/")),
    Field(pattern=r"^(https?://[A-Za-z0-9.:\[\]-]{1,253}/?)?$"),
    Wanted("an address like http://host:8000"),
]
Switch = Annotated[bool, Wanted("on or off")]
Day = Annotated[date, BeforeValidator(_day), Wanted("a day like 2025-01-01")]


def changed_config(defaults: Config, text: str, *, given_as: str) -> Config:
    """`defaults` with the fields that `text` names: `passes=92, asks=86`; true and false for a switch.

    Raises InvalidInput with `given_as` and the entry.
    """
    kinds = {field.name: type(getattr(defaults, field.name)) for field in fields(defaults)}
    chosen: dict[str, object] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in kinds:
            raise InvalidInput(f"{given_as}: {name[:40]!r} is unknown; use {', '.join(kinds)}")
        kind = kinds[name]
        try:
            chosen[name] = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
        except (ValueError, KeyError):
            wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
            raise InvalidInput(f"{given_as}: {name} must be {wanted}, got {value[:40]!r}") from None
    try:
        return replace(defaults, **chosen)
    except InvalidInput as fault:
        raise InvalidInput(f"{given_as}: {str(fault).removeprefix('rewriting: ')}") from None
