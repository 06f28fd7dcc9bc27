"""Test clients: the time of a call, the order of the sources, and waiting only once for a busy warehouse."""

from pathlib import Path

import pytest

from paper_assets.errors import NetworkError, StoreBusy
from paper_assets.interpreting.clients import Clients, WaitedOnce
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import latest_day
from paper_assets.stores.warehouse import Warehouse


def clients(folder: Path, *, deadline: float | None = None, now: list[float] | None = None, **environ: str) -> Clients:
    """Clients whose clock shows `now[0]`."""
    settings = load_settings({"PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"), **environ}, folder)
    times = [0.0] if now is None else now
    return Clients(
        settings=settings,
        warehouse=Warehouse(settings.warehouse_path, deadline=0.05),
        environ={"OPENAI_API_KEY": "sk-hidden"},
        deadline=deadline,
        clock=lambda: times[0],
    )


def test_a_held_warehouse_is_refused_every_time_in_the_words_of_the_first_wait(tmp_path: Path) -> None:
    holder = Warehouse(tmp_path / "warehouse.duckdb", deadline=1)
    merge_papers(holder, [])
    call = WaitedOnce(holder.path, deadline=0.05)
    refusals = []
    with holder.writing():
        for opened in (call.reading, call.writing, call.reading):
            with pytest.raises(StoreBusy) as refused, opened():
                pytest.fail("the warehouse is held")
            refusals.append(str(refused.value))
    assert "waited 0.05 s" in refusals[0] and len(set(refusals)) == 1
    with call.writing(), pytest.raises(StoreBusy, match="another matter"):
        raise StoreBusy("another matter")


def test_the_time_of_a_call_begins_with_it_and_leaves_some_to_those_that_follow(tmp_path: Path) -> None:
    now = [100.0]
    left = (hasty := clients(tmp_path, deadline=50, now=now)).started()
    assert (left(), hasty.access(left).left(), hasty.access(left, others_follow=True).left()) == (50, 50, 25)
    now[0] = 120.0
    assert (left(), hasty.access(left, others_follow=True).left()) == (30, pytest.approx(18))
    endless = clients(tmp_path, now=now)
    assert endless.access(endless.started(), others_follow=True).left() == float("inf")


def test_no_source_is_asked_once_the_time_is_over(tmp_path: Path) -> None:
    now = [0.0]
    hasty = clients(tmp_path, deadline=5, now=now)
    access = hasty.access(hasty.started())
    now[0] = 5.0
    with pytest.raises(NetworkError, match="time for this call is over"), access.session(gate="", interval=0):
        pytest.fail("there is no time")


@pytest.mark.parametrize(
    ("url", "gate"),
    [
        ("https://arxiv.org/pdf/2601.05001v1", "gate"),
        ("https://export.arxiv.org/pdf/2601.05001v1", "gate"),
        ("http://127.0.0.1:9/pdf/2601.05001v1", "gate"),
        ("https://openreview.net/pdf?id=x", "gate/openreview.net"),
    ],
)
def test_pdfs_of_arxiv_and_its_mirror_take_turns_with_its_api_and_others_by_host(
    tmp_path: Path, url: str, gate: str
) -> None:
    asked = clients(tmp_path, PAPER_ASSETS_ARXIV_PDF_URL="http://127.0.0.1:9/pdf")
    with asked.texts(url, asked.started()) as session:
        adapter = session.get_adapter(url)
    assert adapter.gate.gate == tmp_path / gate  # type: ignore[attr-defined]


def test_no_key_is_in_what_a_log_may_show(tmp_path: Path) -> None:
    shown = clients(tmp_path)
    assert "hidden" not in repr((shown, shown.access(shown.started())))


def test_a_call_that_asks_several_things_in_one_opening_is_not_its_own_holder(tmp_path: Path) -> None:
    call = WaitedOnce(tmp_path / "w.duckdb", deadline=5)
    with call.read_together() as opened:
        assert latest_day(opened) is None
        with pytest.raises(RuntimeError, match="for reading only"), opened.writing():
            pass
    with call.reading(own_settings=True) as connection:
        connection.execute("set threads = 1")
    assert call.messages == []
