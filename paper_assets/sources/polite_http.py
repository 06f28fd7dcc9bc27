"""Send requests politely: one at a time per source, with retries and a deadline, and errors in one line (SPEC S2).

Every request of the machine to one source passes its gate: one request at a time, `interval` seconds from the end of
one to the start of the next, for all processes of the machine. An OS file lock keeps the queue (a killed holder frees
it); a small file keeps the earliest time of the next request, so that a `Retry-After` sent to one process holds for
all.

A refusal or a failure is retried a few times at growing intervals until a deadline; the error raised then is one line
without URL, header or key. A proxy's refusal (403, 407) is never retried: only its settings can change it.
"""

import math
import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.exceptions import HTTPError, NewConnectionError

from paper_assets.errors import InvalidInput, NetworkError, RateLimited, SourceError, StoreBusy, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.retrying import LONGEST_WAIT, RetryPolicy, limited, retry_after


class _QueueTooLong(RateLimited):
    """Report that the gate does not open before the deadline."""


class RequestGate:
    """Queue the requests of all processes that share one folder, with `interval` seconds between two requests.

    The file `next_request` holds two times: when it was written, and the earliest time of the next request. `clock` and
    `sleep`: the time in seconds since 1970, and a wait; tests replace them.
    """

    def __init__(
        self,
        gate: Path,
        *,
        interval: float,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.gate = gate
        self.interval = interval
        self.clock = clock
        self.sleep = sleep

    def take(self, host: str, *, until: float) -> Callable[[float], None]:
        """Wait for the turn; call the returned function to end it and close the gate for a number of seconds.

        Raises RateLimited if the turn cannot start before `until`.
        """
        while True:
            with ExitStack() as turn:
                try:
                    self.gate.mkdir(parents=True, exist_ok=True)
                    # 0o666: several users may share a gate folder; the folder's permissions decide who.
                    lock = store_lock(self.gate / "gate", deadline=until - self.clock(), mode=0o666)
                    turn.enter_context(lock)
                    wait, hold = self._closed_for()
                    if wait <= 0:
                        # Written before the request as well: a process killed during it leaves the gate closed.
                        self._close(self.interval)
                except StoreBusy:
                    raise _QueueTooLong(self._own_queue(host)) from None
                except (OSError, StoreUnwritable) as error:
                    raise InvalidInput(
                        f"the request gate {self.gate} cannot be used: {getattr(error, 'strerror', None) or error}; "
                        "set PAPER_ASSETS_REQUEST_GATE to a folder that this user can write to"
                    ) from None
                if wait <= 0:
                    held = turn.pop_all()
                    return lambda seconds: self._end(held, seconds)
            if self.clock() + wait > until:
                asked_to = hold > self.interval + 0.001  # requested by the source; regular turns are one interval apart
                raise _QueueTooLong(retry_message(host, self.clock() + wait) if asked_to else self._own_queue(host))
            self.sleep(wait)

    def _end(self, turn: ExitStack, seconds: float) -> None:
        with turn, suppress(OSError):  # the time written at the start of the turn still applies
            self._close(max(seconds, self.interval))

    def _own_queue(self, host: str) -> str:
        return (
            f"our own queue for {host} is too long: requests of this machine go one at a time, {self.interval:g} s "
            f"apart (gate {self.gate}); try again in a moment"
        )

    def _closed_for(self) -> tuple[float, float]:
        """Return the seconds until the gate opens and for how long it was closed, also after the clock was set back."""
        with self._next_request() as file:
            text = file.read(100)
        if not text:
            return 0.0, 0.0
        try:
            written, opens = map(float, text.split())
        except ValueError:
            written = opens = math.nan
        if not 0 <= opens - written <= LONGEST_WAIT:  # truncated by a kill: as if a request had just been sent
            self._close(self.interval)
            return self.interval, self.interval
        now, hold = self.clock(), opens - written
        if now < written:  # the clock was set back; only the length of the hold is known
            self._close(hold)
            return hold, hold
        return opens - now, hold

    def _close(self, seconds: float) -> None:
        now = self.clock()
        with self._next_request() as file:
            file.truncate()
            file.write(f"{now!r} {now + min(seconds, LONGEST_WAIT)!r}\n")

    def _next_request(self) -> IO[str]:
        """Open the file with the times, created if missing, writable by all users of the folder, never a link."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self.gate / "next_request", flags, 0o666)
        with suppress(OSError):
            os.fchmod(descriptor, 0o666)
        return os.fdopen(descriptor, "r+", encoding="ascii", errors="replace")


def retry_message(host: str, then: float) -> str:
    """Return the message for a caller who must wait until `then`, in seconds since 1970."""
    return f"{host} asks us to wait; try again after {datetime.fromtimestamp(then, UTC):%Y-%m-%d %H:%M:%S} UTC"


_SLOW_DOWN = frozenset((406, 429, 503))
_SLOW_DOWN_BODY = b"rate exceeded"  # arXiv sends it with status 200 too
_TRIES = 4
_FIRST_PAUSE = 2  # intervals before the second try, doubled for each further one
_DEADLINE = 300.0  # seconds for one request with its waits; for a longer Retry-After the caller must ask again later
MOST_BYTES = 64_000_000  # a page of 1,000 papers has about 2.5 MB


class AnswerTooLarge(NetworkError):
    """Report an answer above the size limit; retrying would not make it smaller."""


def polite_session(
    gate: RequestGate,
    *,
    timeout: float,
    contact: str | None = None,
    deadline: float = _DEADLINE,
    most_bytes: int = MOST_BYTES,
    patient: bool = True,
    transport: BaseAdapter | None = None,
) -> requests.Session:
    """Create a session for one source; every request (redirects too) passes the gate. Use it through `ask`.

    timeout: seconds to connect, to wait for data, and for one whole answer. contact: added to the User-Agent. deadline:
    seconds for one request with all its waits and tries. patient: try again where no connection can be made; a network
    may come back. transport: what sends one request; default: requests' adapter. Raises InvalidInput if contact is not
    valid in a header.
    """
    if contact is not None and not (contact.isascii() and contact.isprintable()):
        raise InvalidInput("PAPER_ASSETS_CONTACT must be one line of plain ASCII, such as an e-mail address")
    session = requests.Session()
    session.max_redirects = 5
    session.headers["User-Agent"] = f"paper_assets/{version('paper-assets')}" + (f" (+{contact})" if contact else "")
    adapter = _PoliteAdapter(
        transport or HTTPAdapter(),
        gate=gate,
        timeout=timeout,
        deadline=deadline,
        most_bytes=most_bytes,
        patient=patient,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, cast("BaseAdapter", adapter))
    return session


def ask(session: requests.Session, method: str, url: str, **options: Any) -> requests.Response:
    """Send one request and return the answer, whatever its status below 500.

    Raises RateLimited, NetworkError, or InvalidInput for an unusable gate folder; no exception of requests. Messages
    name only the host: a URL, a header or a proxy may contain a key.
    """
    try:
        return session.request(method, url, **options)
    except requests.TooManyRedirects:
        raise NetworkError(f"{_host(url)} sends us in circles; check the address") from None
    except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema):
        raise NetworkError("the URL of the source is not an http or https URL; check it") from None
    except requests.RequestException as error:
        raise NetworkError(f"asking {_host(url)} failed ({type(error).__name__}); try again later") from None
    except ValueError:  # requests parses the URL of a redirect even if it does not follow it
        raise NetworkError(f"{_host(url)} redirects to an invalid URL; try again later") from None


class _Unconnected(NetworkError):
    """Report that not even a connection could be made: no network, an unknown name, no server or proxy at the port, a
    certificate that is not accepted.
    """


class _RefusedByProxy(NetworkError):
    """Report that the proxy does not allow the host (403) or asks for a login (407); retrying would not change that."""


def _unreached(host: str) -> NetworkError:
    return NetworkError(f"{host} cannot be reached or broke off; check the network and the address")


def _is_unconnected(error: Exception) -> bool:
    return isinstance(_cause(error), NewConnectionError)


def _cause(error: Exception) -> object:
    """Return why requests could not connect, also to a proxy."""
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return getattr(reason, "original_error", reason)


_REFUSED_TUNNEL = re.compile(r"Tunnel connection failed: (403|407)\b")  # http.client's words
_ASKS_FOR_LOGIN = 407  # only proxies send it


def _proxy_failure(error: Exception, host: str) -> NetworkError:
    """Return the error for a proxy that cannot be reached or did not connect us to the host."""
    if _is_unconnected(error):
        return _Unconnected(f"the proxy on the way to {host} cannot be reached; check the proxy settings")
    if refused := _REFUSED_TUNNEL.search(f"{_cause(error)}"):
        return _refused_by_proxy(int(refused[1]), host)
    return NetworkError(f"the proxy did not let us reach {host}; check the proxy settings")


def _refused_by_proxy(status: int, host: str) -> _RefusedByProxy:
    if status == _ASKS_FOR_LOGIN:
        return _RefusedByProxy(f"the proxy asks for a login to reach {host} (HTTP {status}); check the proxy settings")
    return _RefusedByProxy(f"the proxy does not allow {host} (HTTP {status}); check the proxy settings")


class _PoliteAdapter:
    """Send requests one at a time, with retries, reading the whole answer."""

    def __init__(
        self, inner: BaseAdapter, *, gate: RequestGate, timeout: float, deadline: float, most_bytes: int, patient: bool
    ) -> None:
        self.inner = inner
        self.gate = gate
        self.timeout = timeout
        self.deadline = deadline
        self.most_bytes = most_bytes
        self.patient = patient

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send one request with retries in its turn."""
        host = _host(request.url or "")
        until = self.gate.clock() + self.deadline
        policy = RetryPolicy(tries=_TRIES, first_wait=self.gate.interval * _FIRST_PAUSE)

        def attempt(number: int) -> requests.Response:
            end_turn = self.gate.take(host, until=until)
            pause = 0.0
            try:
                return self._accepted(request, host, **options)
            except SourceError as failure:
                if isinstance(failure, RateLimited) or (self._is_temporary(failure) and number < _TRIES):
                    pause = policy.pause(number, failure)  # the gate stays closed, also for other processes
                raise
            finally:
                end_turn(pause)

        return policy.call(
            attempt,
            is_temporary=self._is_temporary,
            ends=until,
            clock=self.gate.clock,
            sleep=lambda seconds: None,  # the gate waits
        )

    def close(self) -> None:
        """Close the inner transport."""
        self.inner.close()

    def _is_temporary(self, failure: BaseException) -> bool:
        if isinstance(failure, _Unconnected):
            return self.patient
        final = isinstance(failure, AnswerTooLarge | _RefusedByProxy | _QueueTooLong)
        return isinstance(failure, SourceError) and not final

    def _accepted(self, request: requests.PreparedRequest, host: str, **options: Any) -> requests.Response:
        """Try once; raise the failure that a status means."""
        response = self._answer(request, host, **options)
        if response.status_code == _ASKS_FOR_LOGIN:
            raise _refused_by_proxy(_ASKS_FOR_LOGIN, host)
        if _refused(response) or response.status_code >= 500:
            raise _failure(response, host, now=self.gate.clock())
        return response

    def _answer(self, request: requests.PreparedRequest, host: str, **options: Any) -> requests.Response:
        """Try once, inside the turn, up to a size and a time. Raises NetworkError."""
        try:
            return limited(self.timeout, partial(self._received, request, host, **options))
        except requests.exceptions.SSLError:
            message = f"the certificate of {host} was not accepted; check the clock and the network"
            raise _Unconnected(message) from None
        except requests.exceptions.ProxyError as error:
            raise _proxy_failure(error, host) from None
        except (requests.Timeout, TimeoutError):
            raise NetworkError(f"{host} gave no whole answer within {self.timeout:g} s; try again later") from None
        except (requests.RequestException, HTTPError, OSError) as error:
            raise (_Unconnected(str(_unreached(host))) if _is_unconnected(error) else _unreached(host)) from None

    def _received(self, request: requests.PreparedRequest, host: str, **options: Any) -> requests.Response:
        """Send the request and read the whole answer."""
        begun = time.monotonic()
        response = self.inner.send(request, **{**options, "stream": True, "timeout": (self.timeout, self.timeout)})
        with response:
            if _announced(response) > self.most_bytes:
                raise _too_large(host, self.most_bytes)
            body = bytearray()
            # read1 returns the data received: with a fixed size a very slow server would block forever.
            while chunk := response.raw.read1(65_536, decode_content=True):
                body += chunk
                if len(body) > self.most_bytes:
                    raise _too_large(host, self.most_bytes)
                if time.monotonic() - begun > self.timeout:
                    raise requests.Timeout
        response._content = bytes(body)  # where requests stores a body that has been read
        return response


def _announced(response: requests.Response) -> int:
    """Return the Content-Length; 0 if it is missing or unreadable."""
    text = response.headers.get("Content-Length", "").strip()
    return int(text[:18]) if text.isdecimal() and text.isascii() else 0


def _too_large(host: str, most_bytes: int) -> AnswerTooLarge:
    return AnswerTooLarge(f"{host} sent more than {most_bytes / 1_000_000:g} MB; not read further")


def _refused(response: requests.Response) -> bool:
    body = response.content
    return response.status_code in _SLOW_DOWN or (len(body) < 200 and body.strip().lower().startswith(_SLOW_DOWN_BODY))


def _failure(response: requests.Response, host: str, *, now: float) -> SourceError:
    status = response.status_code
    if _refused(response):
        wait = retry_after(response.headers, now=now)
        reason = f"HTTP {status}" if status in _SLOW_DOWN else "'Rate exceeded.'"
        line = f"{host} asks us to slow down ({reason}); try again in a few minutes"
        failure = RateLimited(line if wait is None else retry_message(host, now + wait))
        failure.retry_after = wait
        return failure
    return NetworkError(f"{host} answered HTTP {status}, an error on its side; try again later")


def _host(url: str) -> str:
    """Return the host of a URL, without account or path, for messages."""
    try:
        return urlsplit(url).hostname or "the source"
    except ValueError:
        return "the source"
