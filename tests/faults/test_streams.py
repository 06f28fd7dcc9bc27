"""A command continues without the streams, the encoding or the folder that it is usually started with."""

import os
import socket
import subprocess

import pytest

from tests.desk import COMMAND, PATIENCE, Desk, end
from tests.loopback import free_port
from tests.mcp.ranked_desk import DAYS, ranked_desk
from tests.waiting import until

TITLE = "Étude of “traffic” 語"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = ranked_desk(tmp_path_factory.mktemp("streams"))
    with desk.warehouse.writing() as connection:
        connection.execute("update candidates set title = ? where paper_id = '2603.00203'", [TITLE])
    return desk


def shell(desk: Desk, line: str, **environ: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a line of shell in which "$@" is the command; nothing may end in a stack trace."""
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND],
        cwd=desk.folder,
        env={**os.environ, **desk.environment, **environ},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert b"Traceback" not in done.stderr and b"unexpected" not in done.stderr, done.stderr
    return done


def test_a_file_is_utf_8_in_any_locale(desk: Desk) -> None:
    for environ in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        done = shell(desk, f'"$@" explain traffic 2603.00203 --day {DAYS[-1]}', **environ)
        assert done.returncode == 0
        assert TITLE in done.stdout.decode("utf-8")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('"$@" status >&-', 0),
        ('"$@" status <&- >&- 2>&-', 0),
        ('"$@" explain traffic x 2>&-', 1),
        ('"$@" profile new other --interest trams <&-', 0),
        ('"$@" profile new <&-', 1),
    ],
)
def test_a_closed_stream_stops_no_command_and_its_number_is_not_reused_for_the_database(
    desk: Desk, line: str, code: int
) -> None:
    assert shell(desk, line).returncode == code
    desk.run("status")  # reads the database


def test_a_command_in_a_folder_that_was_removed_reports_it(desk: Desk) -> None:
    gone = desk.folder / "gone"
    gone.mkdir()
    done = shell(desk, f'cd {gone} && rmdir {gone} && "$@" status')
    assert done.returncode == 1
    assert done.stderr.decode() == "error: the folder in which you are was removed; change to another one (cd)\n"


def test_the_address_of_the_desk_is_in_a_file_as_soon_as_the_desk_answers(desk: Desk) -> None:
    address = "127.0.0.1", free_port()
    with (desk.folder / "desk.log").open("w", encoding="utf-8") as log:
        environ = {**os.environ, **desk.environment, "PYTHONUNBUFFERED": ""}
        command = [*COMMAND, "desk", "--port", f"{address[1]}"]
        process = subprocess.Popen(command, cwd=desk.folder, env=environ, stdout=log, stderr=log, text=True)
    try:
        until(lambda: answers(address) or process.poll() is not None)
        assert process.poll() is None
        assert f"http://127.0.0.1:{address[1]}/" in (desk.folder / "desk.log").read_text("utf-8")
    finally:
        end(process)


def answers(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address) as connection:
            connection.sendall(b"GET /static/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return connection.recv(1) == b"H"
    except ConnectionError:
        return False
