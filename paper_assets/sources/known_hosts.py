"""Decide which hosts may be asked on a user's behalf, before the request and at every redirect (SPEC I8).

A bare name (`arxiv.org`) means https on its usual port and a public machine; so does an https URL on that port with a
name in it. Any other origin (`http://127.0.0.1:8080`) is the operator's explicit choice and means exactly that origin,
whether the machine is public or not.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from paper_assets.errors import InvalidInput, SourceError

_LONGEST_ADDRESS = 2_000  # characters
_USUAL_PORT = {"https": 443, "http": 80}
_WITH_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))  # NAT64 (RFC 6052), IPv4-compatible: the last 32 bits
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")  # RFC 8215: of the local network, where the IPv4 address may be anywhere


class RefusedAddress(InvalidInput):
    """Report a URL that may not be requested because of its scheme, host, or the machine behind the host."""


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Host names in lower case, and origins as (scheme, host, port)."""

    names: frozenset[str]
    origins: frozenset[tuple[str, str, int]]

    def check(self, url: str) -> str:
        """Return the URL without surrounding characters. Raises RefusedAddress."""
        url = url.strip()
        parts = _split(url)
        if _origin(parts) in self.origins:
            return url
        if parts.scheme != "https":
            raise RefusedAddress(f"{parts.scheme or 'no scheme'} is not supported; give an https URL")
        host = (parts.hostname or "").rstrip(".")
        if host not in self.names or _origin(parts)[2] != 443:
            raise RefusedAddress(
                f"{host[:80] or 'the address'} is not one of the known hosts ({', '.join(sorted(self.names))}); "
                "PAPER_ASSETS_KNOWN_HOSTS may name others"
            )
        return url

    def may_be_private(self, host: str, port: int) -> bool:
        """Return whether the operator has named exactly this machine."""
        return any((scheme, host, port) in self.origins for scheme in _USUAL_PORT)


def known_hosts(entries: Iterable[str]) -> KnownHosts:
    """Parse names and origins from the settings. Raises InvalidInput for anything else."""
    names, origins = set(), set()
    for entry in entries:
        if "://" not in entry:
            if not entry or not entry.isascii() or set(entry) & set(" /\\@:?#[]"):
                raise InvalidInput(f"PAPER_ASSETS_KNOWN_HOSTS: {entry[:60]!r} is not a host name such as arxiv.org")
            names.add(entry.lower().rstrip("."))
            continue
        parts = _split(entry)
        if parts.scheme not in _USUAL_PORT or not parts.hostname:
            raise InvalidInput(f"{entry[:60]!r} is not a URL such as https://arxiv.org")
        origin = _origin(parts)
        if origin[0] == "https" and origin[2] == _USUAL_PORT["https"] and not _is_ip(origin[1]):
            names.add(origin[1].rstrip("."))
        else:
            origins.add(origin)
    return KnownHosts(names=frozenset(names), origins=frozenset(origins))


def guarded_transport(hosts: KnownHosts) -> BaseAdapter:
    """Return a transport for requests that reaches public machines only, whatever a name resolves to.

    The connected machine is checked before a byte is sent, because a name may resolve differently the second time.
    Behind a proxy the proxy resolves names, and only the names are checked.
    """

    def checked(connection: Any, reached: socket.socket) -> socket.socket:
        """Refuse a connection to a private machine."""
        if not _is_public(reached.getpeername()[0]) and not hosts.may_be_private(connection.host, connection.port):
            reached.close()
            raise PrivateMachine(f"{connection.host} leads to a machine that is not public; refused")
        return reached

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return checked(self, super()._new_conn())

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return checked(self, super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    class Guarded(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
            super().init_poolmanager(*arguments, **more)
            self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    return Guarded()


class PrivateMachine(SourceError):
    """Report a known host name that leads to a machine of a private network."""


def _is_public(address: str) -> bool:
    reached = ip_address(address.partition("%")[0])
    if isinstance(reached, IPv6Address):
        within = reached.ipv4_mapped or reached.sixtofour
        if within is None and any(reached in network for network in _WITH_IPV4):
            within = IPv4Address(int(reached) & 0xFFFFFFFF)
        if within is None and (reached.is_site_local or reached in _LOCAL_NAT64):
            return False
        reached = within or reached
    return reached.is_global and not reached.is_multicast


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _split(url: str) -> SplitResult:
    """Split a URL into the parts on which all parsers agree."""
    if len(url) > _LONGEST_ADDRESS or not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        raise RefusedAddress("the address is too long or has a character that no address has; give an https address")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise RefusedAddress("this is not a URL; give an https URL such as https://arxiv.org/abs/ID") from None
    if "@" in parts.netloc:
        raise RefusedAddress("a URL with a user or password in it is refused")
    return parts


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    port = _USUAL_PORT.get(parts.scheme, 0) if parts.port is None else parts.port
    return parts.scheme, parts.hostname or "", port
