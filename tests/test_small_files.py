"""A small file is read or reported in one line, written whole or not at all, and its changes are noticed."""

import gzip
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.small_files import (
    StateCache,
    file_state,
    is_present,
    parse_json,
    read_json,
    remove_unfinished,
    unpacked,
    write_file,
)


def refused(file: Path) -> str:
    with pytest.raises(InvalidInput) as fault:
        read_json(file)
    assert "\n" not in str(fault.value)
    return str(fault.value)


def test_a_file_that_is_not_regular_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    monkeypatch.chdir(tmp_path)  # an address may not be longer than 107 characters
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        assert "is a socket" in refused(tmp_path / "socket")
    assert "is a pipe" in refused(tmp_path / "pipe")
    assert "is a folder" in refused(tmp_path / "folder")
    assert "is a broken link" in refused(tmp_path / "nowhere")
    assert "symbolic links" in refused(tmp_path / "circle")
    assert "is a device" in refused(tmp_path / "zeros")
    assert "does not exist" in refused(tmp_path / "gone")
    assert "File name too long" in refused(tmp_path / ("n" * 300))
    assert "no file can have this name" in refused(tmp_path / "a\0b")


def test_a_file_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)  # a sparse terabyte
    assert "is larger than 5 MB" in refused(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7" * 5_000, "a number of 5000 digits"),
        ('{"a": -%s}' % ("7" * 5_000), "a number of 5001 digits"),
        ("1." + "7" * 5_000, "a number of 5002 digits"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 900 + "]" * 900, "nested too deeply"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested too deeply"),
        ("[1,\n2 3]", "not valid JSON at line 2, column 3"),
        ("", "not valid JSON at line 1"),
    ],
)
def test_json_beyond_reason_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    assert message in refused(file)


def test_what_a_person_may_write_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("\ufeff" + "[" * 60 + "123456789012345678901234567890, 1e-300, -0.5" + "]" * 60, encoding="utf-8")
    value = read_json(file)
    for _ in range(59):
        [value] = value  # type: ignore[misc]
    assert value == [123456789012345678901234567890, 1e-300, -0.5]
    assert parse_json(b'{"a": "\xc3\xa4"}', source="a") == {"a": "ä"}


def test_invalid_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'{"a": "\xff"}')
    assert "is not UTF-8 text" in refused(file)


def test_a_path_that_cannot_be_read_counts_as_present(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert is_present(tmp_path / "circle") and is_present(tmp_path / "circle" / "profile.json")
    assert not is_present(tmp_path / "gone") and not is_present(tmp_path / ("n" * 300))


def test_gzip_data_is_unpacked_up_to_a_size(tmp_path: Path) -> None:
    twice = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 1000)
    assert unpacked(twice, source="f", most_bytes=5000) == b"a" * 1000 + b"b" * 1000
    bomb = gzip.compress(b"\0" * 50_000_000)
    for content, message in ((bomb, "more than 1 MB"), (twice[:-9], "cut off"), (b"\x1f\x8bnonsense", "damaged")):
        with pytest.raises(InvalidInput, match=message):
            unpacked(content, source="f", most_bytes=1_000_000)


def test_a_written_file_is_private_replaces_whole_and_keeps_the_permissions_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    write_file(file, "one")
    assert (file.read_text("utf-8"), file.stat().st_mode & 0o777) == ("one", 0o600)
    file.chmod(0o640)
    write_file(file, iter([b"t", b"wo"]))
    assert (file.read_text("utf-8"), file.stat().st_mode & 0o777) == ("two", 0o640)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.json"]


def test_a_failed_write_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    write_file(file, "one")

    def broken() -> Iterator[bytes]:
        yield b"tw"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk is gone"):
        write_file(file, broken())
    assert file.read_text("utf-8") == "one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.json"]


def test_what_killed_writers_left_is_removed_by_name_or_by_age(tmp_path: Path) -> None:
    for name in (".unfinished-a-1", ".unfinished-b-1", "a"):
        (tmp_path / name).write_bytes(b"half")
    remove_unfinished(tmp_path, before=datetime(2026, 1, 1, tzinfo=UTC))
    assert len(list(tmp_path.iterdir())) == 3
    remove_unfinished(tmp_path, "a")
    assert {entry.name for entry in tmp_path.iterdir()} == {".unfinished-b-1", "a"}
    remove_unfinished(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"a"}


def test_the_state_of_a_folder_ignores_locks_and_without_below_also_the_content_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a").write_text("one", encoding="utf-8")
    os.utime(tmp_path / "inner", (1, 1))  # the clock of a file system may stand still for milliseconds
    states = [file_state([tmp_path]), file_state([tmp_path / "inner"], below=False)]
    (tmp_path / "inner" / "a").write_text("three", encoding="utf-8")
    assert file_state([tmp_path / "inner"], below=False) == states[1]
    assert file_state([tmp_path]) != states[0]
    states[0] = file_state([tmp_path])
    (tmp_path / "inner" / "store.lock").write_text("held", encoding="utf-8")
    assert file_state([tmp_path]) == states[0]
    (tmp_path / "inner" / "b").touch()
    assert file_state([tmp_path / "inner"], below=False) != states[1]


def test_a_file_replaced_under_its_old_date_has_another_state_and_a_folder_in_itself_has_none(tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_bytes(b"papers")
    before, state = file.stat(), file_state([file])
    (tmp_path / "new").write_bytes(b"others")
    (tmp_path / "new").replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a restored copy has it
    assert file_state([file]) != state
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / "again").symlink_to(tmp_path / "round")
    assert file_state([tmp_path / "round"]) is None
    assert file_state([tmp_path / ("name" * 100)]) is None


def test_a_cached_value_is_made_again_when_one_of_its_states_changed_or_is_unknown() -> None:
    cache, made = StateCache(), iter(range(9))

    def answer(*states: object) -> int:
        return cache.get("answer", lambda: next(made), *states)

    assert [answer("a", 1), answer("a", 1), answer("a", 2), answer("a", 1)] == [0, 0, 1, 2]
    assert [answer(None), answer(None)] == [3, 4]
    assert cache.get("another", lambda: -1, None) == -1
