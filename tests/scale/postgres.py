"""A real PostgreSQL server on loopback, in a separate folder, as a user who is not root."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.loopback import free_port
from tests.scale.servers import running, until_it_listens

PASSWORD = "kelp-4711-anemone"
_DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, the newest version's; None if they are not installed."""
    found = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    first = found[-1] if found else shutil.which("initdb")
    return Path(first).parent if first else None


def why_not() -> str | None:
    """Why no server can be started here; None if one can."""
    if programs() is None:
        return "PostgreSQL is not installed (Debian: apt install postgresql)"
    if os.getuid() == 0 and _plain_user() is None:
        return "PostgreSQL does not run as root, and there is no plain user to run it as"
    return None


def _plain_user() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty database, with its password."""
    folder, bin_folder = Path(tempfile.mkdtemp(prefix="paper_assets-pg")), programs()
    assert bin_folder is not None
    user = _plain_user() if os.getuid() == 0 else None
    given = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    data, secret, port = folder / "data", folder / "secret", free_port()
    try:
        secret.write_text(PASSWORD, encoding="ascii")
        if user:
            for path in (folder, secret):
                os.chown(path, user.pw_uid, user.pw_gid)
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", "ada", "--auth=scram-sha-256", f"--pwfile={secret}", "-N"],
            check=True,
            capture_output=True,
            cwd=folder,
            **given,  # type: ignore[call-overload]
        )
        log = folder / "log"
        command = [bin_folder / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port), "-F"]
        with running([str(part) for part in command], log, cwd=folder, **given) as process:
            until_it_listens(port, process, log)
            yield f"postgresql+psycopg2://ada:{PASSWORD}@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
