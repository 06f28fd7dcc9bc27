"""A digest to a webhook: one JSON object, posted once, to an https address that stays secret (SPEC Z3).

No try is repeated here and no redirect followed: the message would be posted twice, or to somebody else. Plain http is
for this machine only.
"""

import json
from typing import Any
from urllib.parse import urlsplit

import requests

from paper_assets.delivery.outcome import MayBeTaken, NotTaken
from paper_assets.errors import InvalidInput

_SECONDS = 30.0  # to connect, and to wait for the answer
_THIS_MACHINE = frozenset(("127.0.0.1", "localhost", "::1"))
_NOT_BEGUN = frozenset((429, 503))  # of the answers from 500 on, those that say that nothing was done


def post_webhook(address: str, payload: dict[str, Any], *, variable: str) -> None:
    """Post the object. `variable` is what the address is called in errors, which never show it.

    Raises NotTaken, MayBeTaken where no answer came or one that leaves it open, InvalidInput for what is no address.
    """
    _check(address, variable)
    try:
        answer = requests.post(
            address,
            data=json.dumps(payload, ensure_ascii=False).encode(),
            headers={"Content-Type": "application/json; charset=utf-8", "User-Agent": "paper_assets"},
            timeout=_SECONDS,
            allow_redirects=False,
            stream=True,  # what it says is not read
        )
        answer.close()
    except (requests.exceptions.SSLError, requests.exceptions.ConnectTimeout, requests.exceptions.ProxyError) as fault:
        raise NotTaken(f"{variable}: it cannot be reached safely ({type(fault).__name__})") from None
    except requests.ConnectionError as fault:
        if _refused(fault):
            raise NotTaken(f"{variable}: it cannot be reached") from None
        raise MayBeTaken(f"{variable}: it broke off before it answered") from None
    except requests.Timeout:
        raise MayBeTaken(f"{variable}: it gave no answer within {_SECONDS:g} s") from None
    except (requests.RequestException, ValueError):
        raise InvalidInput(f"{variable} is not an https address that can be asked") from None
    status = answer.status_code
    if status >= 500 and status not in _NOT_BEGUN:
        raise MayBeTaken(f"{variable}: it answered HTTP {status}, an error on its side")
    if not 200 <= status < 300:
        raise NotTaken(
            f"{variable}: it answered HTTP {status}" + ("; redirects are not followed" if status < 400 else "")
        )


def _check(address: str, variable: str) -> None:
    try:
        parts = urlsplit(address)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)
    except ValueError:
        safe = False
    if not safe or not parts.hostname or not address.isprintable():
        raise InvalidInput(f"{variable} must hold an https address (http for this machine only)")


def _refused(fault: requests.ConnectionError) -> bool:
    """Whether the connection was never made: refused, or no such name."""
    reason = getattr(fault.args[0], "reason", None) if fault.args else None
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError")
