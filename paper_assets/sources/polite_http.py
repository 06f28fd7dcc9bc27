"""Polite HTTP: a requests session that waits its turn, gives up in time and says in one line what went wrong (SPEC S2).

Every request of the machine to one source passes its gate (`request_gate`). A refusal or a failure is tried again a few
times, further and further apart, until a deadline; what is then raised is one line without address, header or key.
"""

import email.utils
import time
from collections.abc import Callable
from datetime import UTC
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.exceptions import HTTPError

from paper_assets.errors import InvalidInput, NetworkError, RateLimited, SourceError
from paper_assets.sources.request_gate import LONGEST_HOLD, RequestGate, come_back

_SLOW_DOWN = frozenset((406, 429, 503))
_SLOW_DOWN_BODY = b"rate exceeded"  # arXiv sends it with status 200 too
_TRIES = 4
_FIRST_PAUSE = 2  # intervals before the second try, doubled for each further one
_DEADLINE = 300.0  # seconds for one request with its waits; a longer Retry-After is the caller's to plan
MOST_BYTES = 64_000_000  # a page of 1,000 papers has about 2.5 MB


class AnswerTooLarge(NetworkError):
    """More than this project takes from one answer; asking again would not make it smaller."""


def polite_session(
    *,
    gate: Path,
    interval: float,
    timeout: float,
    contact: str | None = None,
    deadline: float = _DEADLINE,
    most_bytes: int = MOST_BYTES,
    transport: BaseAdapter | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> requests.Session:
    """A session for one source; every request (redirects too) passes the gate. Use it through `ask`.

    gate: folder shared by all processes that ask this source. interval: seconds between two requests. timeout: seconds
    to connect, to wait for data, and for one whole answer. contact: added to the User-Agent. deadline: seconds for one
    request with all its waits and tries. transport: what sends one request; default: requests' own. clock, sleep: the
    time in seconds since 1970, and a wait; replaced in tests.
    Raises InvalidInput if contact cannot stand in a header.
    """
    if contact is not None and not (contact.isascii() and contact.isprintable()):
        raise InvalidInput("PAPER_ASSETS_CONTACT must be one line of plain ASCII, such as an e-mail address")
    session = requests.Session()
    session.max_redirects = 5
    session.headers["User-Agent"] = f"paper_assets/{version('paper-assets')}" + (f" (+{contact})" if contact else "")
    adapter = _PoliteAdapter(
        transport or HTTPAdapter(),
        gate=RequestGate(gate, interval=interval, clock=clock, sleep=sleep),
        timeout=timeout,
        deadline=deadline,
        most_bytes=most_bytes,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, cast("BaseAdapter", adapter))
    return session


def ask(session: requests.Session, method: str, url: str, **options: Any) -> requests.Response:
    """The answer to one request, whatever its status below 500.

    Raises RateLimited, NetworkError, or InvalidInput for a gate folder that cannot be used; nothing of requests' own.
    The texts name the host only: an address, a header or a proxy may carry a key.
    """
    try:
        return session.request(method, url, **options)
    except requests.TooManyRedirects:
        raise NetworkError(f"{_host(url)} sends us in circles; check the address") from None
    except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema):
        raise NetworkError("the address of the source is no http or https address; check it") from None
    except requests.RequestException as error:
        raise NetworkError(f"asking {_host(url)} failed ({type(error).__name__}); try again later") from None
    except ValueError:  # requests reads the address of a redirect even where it does not follow it
        raise NetworkError(f"{_host(url)} sends us to what is no address; try again later") from None


class _PoliteAdapter:
    """A transport for requests: each try in its turn, the answer read whole, the failure named."""

    def __init__(
        self, inner: BaseAdapter, *, gate: RequestGate, timeout: float, deadline: float, most_bytes: int
    ) -> None:
        self.inner = inner
        self.gate = gate
        self.timeout = timeout
        self.deadline = deadline
        self.most_bytes = most_bytes

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        host = _host(request.url or "")
        until = self.gate.clock() + self.deadline
        failure: SourceError = NetworkError(f"{host} was not asked")
        for attempt in range(_TRIES):
            longer = self.gate.interval * _FIRST_PAUSE * 2**attempt
            pause = longer if attempt < _TRIES - 1 else 0.0
            end_turn = self.gate.take(host, until=until)
            try:
                response = self._answer(request, host, **options)
                if not _refused(response) and response.status_code < 500:
                    pause = 0.0
                    return response
                failure = _failure(response, host)
                if isinstance(failure, RateLimited):
                    asked = _retry_after(response, now=self.gate.clock())
                    pause = longer if asked is None else asked
                    if asked is not None:
                        failure = RateLimited(come_back(host, self.gate.clock() + asked))
            except AnswerTooLarge:
                pause = 0.0
                raise
            except NetworkError as error:
                failure = error
            finally:
                end_turn(pause)
            if self.gate.clock() + pause > until:
                break
        raise failure

    def close(self) -> None:
        self.inner.close()

    def _answer(self, request: requests.PreparedRequest, host: str, **options: Any) -> requests.Response:
        """One try. The body is read here, inside the turn, up to a size and a time. Raises NetworkError."""
        begun = time.monotonic()
        try:
            response = self.inner.send(request, **{**options, "stream": True, "timeout": (self.timeout, self.timeout)})
            with response:
                if _announced(response) > self.most_bytes:
                    raise _too_large(host, self.most_bytes)
                body = bytearray()
                # read1 gives what has come: a read of a fixed size would let a server that dribbles hold us for ever.
                while chunk := response.raw.read1(65_536, decode_content=True):
                    body += chunk
                    if len(body) > self.most_bytes:
                        raise _too_large(host, self.most_bytes)
                    if time.monotonic() - begun > self.timeout:
                        raise requests.Timeout
        except requests.exceptions.SSLError:
            raise NetworkError(f"the certificate of {host} was not accepted; check the clock and the network") from None
        except requests.exceptions.ProxyError:
            raise NetworkError(f"the proxy did not let us reach {host}; check the proxy settings") from None
        except requests.Timeout:
            raise NetworkError(f"{host} gave no whole answer within {self.timeout:g} s; try again later") from None
        except (requests.RequestException, HTTPError, OSError):
            raise NetworkError(f"{host} cannot be reached or broke off; check the network and the address") from None
        response._content = bytes(body)  # requests' own place for a body that has been read
        return response


def _announced(response: requests.Response) -> int:
    """Bytes by Content-Length; 0 if it says nothing that can be read."""
    text = response.headers.get("Content-Length", "").strip()
    return int(text[:18]) if text.isdecimal() and text.isascii() else 0


def _too_large(host: str, most_bytes: int) -> AnswerTooLarge:
    return AnswerTooLarge(f"{host} sent more than {most_bytes / 1_000_000:g} MB; not read further")


def _refused(response: requests.Response) -> bool:
    body = response.content
    return response.status_code in _SLOW_DOWN or (len(body) < 200 and body.strip().lower().startswith(_SLOW_DOWN_BODY))


def _failure(response: requests.Response, host: str) -> SourceError:
    status = response.status_code
    if _refused(response):
        shown = f"HTTP {status}" if status in _SLOW_DOWN else "'Rate exceeded.'"
        return RateLimited(f"{host} asks us to slow down ({shown}); try again in some minutes")
    return NetworkError(f"{host} answered HTTP {status}, an error on its side; try again later")


def _retry_after(response: requests.Response, *, now: float) -> float | None:
    """Seconds to wait, from a Retry-After in seconds or as an HTTP date; None if absent or unreadable."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal() and text.isascii():
        return min(float(text[:9]), LONGEST_HOLD)
    try:
        then = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return min(max(0.0, then.timestamp() - now), LONGEST_HOLD)


def _host(url: str) -> str:
    """Host of an address, without account or path, for messages."""
    try:
        return urlsplit(url).hostname or "the source"
    except ValueError:
        return "the source"
