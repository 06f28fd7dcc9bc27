"""A desk with rankings, and a server on it that many tests share."""

from collections.abc import Iterator

import pytest

from tests.desk import Desk
from tests.mcp.ranked_desk import ranked_desk
from tests.mcp.raw_host import RawHost, raw_host


@pytest.fixture(scope="package")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return ranked_desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="package")
def host(desk: Desk) -> Iterator[RawHost]:
    """A server that is asked by many tests, as a host would: one after the other over one pipe."""
    with raw_host(desk) as running:
        running.handshake()
        yield running
