"""What the first search and the first question need is loaded when their views are opened, and not before."""

from pathlib import Path

import pytest

from paper_assets.interfaces.page import search
from paper_assets.interfaces.page.desk import Desk as PageDesk
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text, paper_from_mapping, text_hash
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import Desk, week
from tests.page.in_process import page_client


def test_an_opened_form_loads_and_an_asked_question_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def note(desk: PageDesk) -> None:
        loaded.append("search")

    monkeypatch.setattr(search, "preload", note)
    with page_client(Desk(tmp_path)) as client:
        for address in ("/settings", "/search?q=why+do+trees+grow", "/search?q=trees"):
            client.get(address)
        assert loaded == []
        assert "No papers are stored yet" in client.get("/search?q=why+do+trees+grow").text
        assert "No papers are stored yet" in client.get("/search?q=trees").text
        client.get("/search")
    assert loaded == ["search"]


def test_a_desk_loads_once_and_again_only_if_there_was_nothing_to_load(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    served = PageDesk(settings=desk.settings, environ=desk.environment, token="")
    empty = search.preload(served)
    assert empty.future.result(60) is False
    records = [paper_from_mapping(record) for record in week(["2026-03-02"])]
    merge_papers(desk.warehouse, records)
    embedder = load_embedder()
    texts = [embedded_text(each.title, each.abstract) for each in records]
    keep_vectors(desk.warehouse, [text_hash(text) for text in texts], embedder.encode(texts), model=embedder.name)
    filled = search.preload(served)
    assert filled.future.result(60) is True
    assert search.preload(served) is filled
