"""One filled desk and one process that serves it for all tests of the page."""

from collections.abc import Iterator

import pytest

from tests.page.invented_desk import Page, fill, served


@pytest.fixture(scope="package")
def page_of_a_year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with served(fill(tmp_path_factory.mktemp("page"))) as page:
        yield page
