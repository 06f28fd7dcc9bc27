"""What the tests of this folder need beside the default install; without it they are skipped with the reason."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.scale.servers import DaskServers, dask_servers


@pytest.fixture(scope="session")
def dask_installed() -> None:
    if find_spec("distributed") is None:
        pytest.skip('Dask is not installed: pip install "paper-assets[cluster]", or make scale-test')


@pytest.fixture(scope="module")
def dask(dask_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskServers]:
    """A scheduler with two workers, for tests that end none of them."""
    with dask_servers(tmp_path_factory.mktemp("dask")) as servers:
        yield servers
