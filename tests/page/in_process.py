"""The page in this process, asked without a browser."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.testclient import TestClient

from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.page.desk import Desk as PageDesk
from paper_assets.settings import load_settings
from tests.desk import Desk

TOKEN = "a-token-of-this-test"  # of the forms


@contextmanager
def page_client(desk: Desk, **environ: str) -> Iterator[TestClient]:
    """Serve the page of a desk, whose environment `environ` extends, to a client that sends forms as the page does."""
    given = {**desk.environment, **environ}
    app = build_app(PageDesk(settings=load_settings(given, desk.folder), environ=given, token=TOKEN))
    with TestClient(app, base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"}) as client:
        yield client
