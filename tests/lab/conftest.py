"""One served lab for all tests, whose arXiv never answers."""

from collections.abc import Iterator

import pytest

from tests.interpreting.outside import outside
from tests.lab.invented_lab import Lab, lab
from tests.loopback import Answer


@pytest.fixture(scope="package")
def served_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with outside(folder) as world:
        world.arxiv.script = [Answer(hang=True)] * 9
        with lab(folder, "--allow-host", "desk.example.org", PAPER_ASSETS_ARXIV_URL=world.arxiv.url) as served:
            yield served
