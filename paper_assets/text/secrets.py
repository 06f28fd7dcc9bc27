"""Hide keys, tokens and passwords, in whole or in part, as written or encoded on the way.

Servers repeat keys in their errors, often the first or last part of one; so of a long key every part of six characters
or more is hidden. Short secrets and those made of words are hidden only as a whole: their parts are ordinary words.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN = "***"

_SHORTEST = 8  # characters; shorter ones ("none", "ollama") are placeholders, and words of ordinary text
_PART = 6  # characters of a key that are hidden anywhere
_SHORTEST_WITH_PARTS = 16
_FOR_ADDRESSES = str.maketrans("+/", "-_")
_NAMES_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|WEBHOOK")
_NAMES_AN_ADDRESS = re.compile(r"_(?:URL|PROXY|POSTGRES)$")


class Secrets:
    """The secret values of the environment, and how to hide them in texts.

    Hidden are keys, tokens and passwords, and the user, password and query of a URL.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        hidden = {value.strip() for name, value in environ.items() if _NAMES_A_SECRET.search(name.upper())}
        for name, value in environ.items():
            if _NAMES_AN_ADDRESS.search(name.upper()):
                hidden.update(_secrets_of(value.strip()))
        long_enough = sorted(value for value in hidden if len(value) >= _SHORTEST)
        longest_first = sorted({form for value in long_enough for form in _as_written(value)}, key=len, reverse=True)
        self._whole = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        in_parts = [form for value in long_enough if _looks_random(value) for form in _as_written(value)]
        self._ends = frozenset(end for form in in_parts for end in (form[:_PART], form[-_PART:]))
        self._parts = frozenset(form[at : at + _PART] for form in in_parts for at in range(len(form) - _PART + 1))

    def hide(self, text: str) -> str:
        """Replace secrets by asterisks."""
        if self._whole is None:
            return text
        return self.without_keys(self._whole.sub(HIDDEN, text))

    def hide_within(self, value: Any) -> Any:
        """Hide secrets in the texts and names of a JSON value; other values are kept, so that it stays valid JSON."""
        if isinstance(value, dict):
            return {self.hide(name): self.hide_within(entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self.hide_within(entry) for entry in value]
        return self.hide(value) if isinstance(value, str) else value

    def without_keys(self, text: str) -> str:
        """Hide only values that look random, in whole or in part, so that no ordinary word is mistaken for one."""
        if not self._parts:
            return text
        kept, at, shown_from = [], 0, 0
        while at <= len(text) - _PART:
            if text[at : at + _PART] not in self._parts:
                at += 1
                continue
            ends = at + _PART
            while text[ends - _PART + 1 : ends + 1] in self._parts and ends < len(text):
                ends += 1
            piece = text[at:ends]
            # A word from the middle of a key may be an ordinary word elsewhere; the end of a key is hardly ever one.
            if not piece.isalpha() or piece[:_PART] in self._ends or piece[-_PART:] in self._ends:
                kept += [text[shown_from:at], HIDDEN]
                shown_from = ends
            at = ends
        return "".join([*kept, text[shown_from:]]) if kept else text


@cache
def hiding(key: str | None) -> Secrets:
    """Return a function that hides one key."""
    return Secrets({"KEY": key} if key else {})


def _looks_random(secret: str) -> bool:
    return (
        len(secret) >= _SHORTEST_WITH_PARTS
        and any(sign.isdigit() for sign in secret)
        and any(sign.isalpha() for sign in secret)
    )


def _as_written(secret: str) -> set[str]:
    """Return the secret as it is, as JSON, Python and URLs write it, and within a base64 text."""
    plain = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    return {*plain, quote(secret, safe=""), *_in_base64(secret.encode("utf-8", "replace"))}


def _in_base64(secret: bytes) -> Iterable[str]:
    """Return the secret in base64, and what all base64 texts that contain it share, for each of its three offsets."""
    for before, unsure in ((0, 0), (1, 2), (2, 3)):
        whole = base64.b64encode(bytes(before) + secret).decode().rstrip("=")
        sure = whole[unsure : len(whole) - bool((before + len(secret)) % 3)]
        if len(sure) >= _SHORTEST:
            yield sure
            yield sure.translate(_FOR_ADDRESSES)
    yield (alone := base64.b64encode(secret).decode())
    yield alone.translate(_FOR_ADDRESSES)


def _secrets_of(address: str) -> set[str]:
    """Return user, password and query values of a URL, encoded and decoded."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        meant = {value for _, value in parse_qsl(parts.query)}
    except ValueError:  # not a URL, so nothing can be requested from it
        return set()
    userinfo = parts.netloc.rpartition("@")[0]
    of_query = (pair.partition("=")[2] for pair in parts.query.split("&"))
    written = {userinfo, *userinfo.split(":", 1), parts.query, *of_query}
    return meant | written | {unquote(text) for text in written}
