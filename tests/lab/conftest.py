"""One served lab for the tests that change nobody's standing in it."""

from collections.abc import Iterator

import pytest

from tests.lab.invented_lab import Lab, lab


@pytest.fixture(scope="package")
def served_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), "--allow-host", "desk.example.org") as served:
        yield served
