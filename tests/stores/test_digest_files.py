"""Test digests on disk: complete or absent, untouched if unchanged, and every day in the feed."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.stores.digest_files import feed_is_complete, keep_digest, read_page, unfinished_profiles
from tests.invented_papers import allow_files_of, listing, process

DAY = date(2026, 3, 13)


def feed(pages: Sequence[tuple[date, str]]) -> bytes:
    return "\n".join(f"{day} {page}" for day, page in pages).encode()


def keep(folder: Path, day: date = DAY, *, page: str = "page", profile: str = "ponds") -> bool:
    pages = {"html": page.encode(), "md": b"text"}
    return keep_digest(folder, profile, day, pages, feed=feed, latest=3, deadline=30)


def test_pages_are_in_the_profiles_folder_named_by_the_day(tmp_path: Path) -> None:
    assert keep(tmp_path / "new")
    assert listing(tmp_path / "new" / "ponds") >= {"2026-03-13.html", "2026-03-13.md", "feed.atom"}
    assert read_page(tmp_path / "new", "ponds", DAY, "html") == b"page"
    assert read_page(tmp_path / "new", "ponds", DAY - timedelta(days=1), "html") is None


def test_the_same_content_does_not_touch_its_files(tmp_path: Path) -> None:
    keep(tmp_path)
    files = sorted((tmp_path / "ponds").glob("[!.]*"))
    before = [(file, file.stat().st_mtime_ns, file.stat().st_ino) for file in files]
    assert not keep(tmp_path)
    assert [(file, file.stat().st_mtime_ns, file.stat().st_ino) for file in files] == before
    assert keep(tmp_path, page="another")
    assert read_page(tmp_path, "ponds", DAY, "html") == b"another"


def test_the_feed_holds_the_latest_days_in_order_whatever_the_order_they_are_written_in(tmp_path: Path) -> None:
    for back in (1, 4, 0, 2, 3):
        keep(tmp_path, DAY - timedelta(days=back), page=f"-{back}")
    assert (tmp_path / "ponds" / "feed.atom").read_text("utf-8").splitlines() == [
        "2026-03-11 -2",
        "2026-03-12 -1",
        "2026-03-13 -0",
    ]


def test_a_writer_that_ends_between_page_and_feed_is_noticed_until_the_day_is_written_again(tmp_path: Path) -> None:
    assert not feed_is_complete(tmp_path, "ponds")
    keep(tmp_path)
    assert feed_is_complete(tmp_path, "ponds")

    def ended(pages: Sequence[tuple[date, str]]) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_digest(tmp_path, "ponds", DAY, {"html": b"new", "md": b"text"}, feed=ended, latest=3, deadline=30)
    assert (read_page(tmp_path, "ponds", DAY, "html"), feed_is_complete(tmp_path, "ponds")) == (b"new", False)
    assert unfinished_profiles(tmp_path) == {"ponds"}
    assert keep(tmp_path, page="new") and feed_is_complete(tmp_path, "ponds")


def test_files_of_other_names_are_left_alone_and_out_of_the_feed(tmp_path: Path) -> None:
    keep(tmp_path)
    for name in ("notes.html", "2026-99-99.html", "2026-03-12.txt"):
        (tmp_path / "ponds" / name).write_text("mine", encoding="utf-8")
    assert not keep(tmp_path)
    assert (tmp_path / "ponds" / "notes.html").read_text("utf-8") == "mine"


def test_what_a_killed_writer_left_is_cleared_away_and_never_read(tmp_path: Path) -> None:
    keep(tmp_path)
    (tmp_path / "ponds" / ".unfinished-2026-03-12.html-1").write_text("half", encoding="utf-8")
    assert not keep(tmp_path)
    assert not list((tmp_path / "ponds").glob(".unfinished*"))


@pytest.mark.parametrize("name", ["", "..", "a/b", "/tmp", "Ponds"])
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidProfile):
        keep(tmp_path / "inner", profile=name)
    assert listing(tmp_path) == set()


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "ponds").write_text("x", encoding="utf-8")
    with pytest.raises(StoreUnwritable):
        keep(tmp_path)


def test_a_folder_in_place_of_a_page_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "ponds" / "2026-03-13.html").mkdir(parents=True)
    with pytest.raises(StoreUnwritable, match="set OUTPUT_DIR"):
        keep(tmp_path)


def _keep_days(answers, folder: Path, first: int) -> None:  # type: ignore[no-untyped-def]
    answers.send("ready")
    answers.recv()
    for back in range(first, first + 20, 2):
        pages = {"html": b"page"}
        keep_digest(folder, "ponds", DAY - timedelta(days=back), pages, feed=feed, latest=30, deadline=60)
    answers.send("done")


def test_processes_that_write_different_days_at_once_lose_none_in_the_feed(tmp_path: Path) -> None:
    with process(_keep_days, tmp_path, 0) as (_, even), process(_keep_days, tmp_path, 1) as (_, odd):
        for message in ("ready", "done"):
            for writer in (even, odd):
                assert writer.recv() == message
                if message == "ready":
                    writer.send("go")
    lines = (tmp_path / "ponds" / "feed.atom").read_text("utf-8").splitlines()
    assert [line.split()[0] for line in lines] == [f"{DAY - timedelta(days=back)}" for back in range(19, -1, -1)]


def _keep_on_a_full_disk(answers, folder: Path) -> None:  # type: ignore[no-untyped-def]
    keep(folder)
    allow_files_of(10_000)
    try:
        keep(folder, page="x" * 50_000)
    except StoreUnwritable as refused:
        answers.send(str(refused))


def test_a_full_disk_leaves_the_page_as_it_was(tmp_path: Path) -> None:
    with process(_keep_on_a_full_disk, tmp_path) as (_, answers):
        assert "free space" in answers.recv()
    assert read_page(tmp_path, "ponds", DAY, "html") == b"page"
