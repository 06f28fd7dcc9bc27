"""The lock file: the tested versions, with the hash of each file."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)(?: ; ([^\\]+?))? \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def name_of(written: str) -> str:
    return re.sub(r"[-_.]+", "-", written).lower()


def locked() -> dict[str, tuple[str, str | None, int]]:
    """Return for each name: version, platform marker, number of hashes. Fail for any other line."""
    found: dict[str, tuple[str, str | None, int]] = {}
    name = ""
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if _HASH.fullmatch(line):
            version, where, files = found[name]
            found[name] = (version, where, files + 1)
        else:
            requirement = _REQUIREMENT.fullmatch(line)
            assert requirement, line  # the address of an index, for example
            name = name_of(requirement[1])
            assert name not in found
            found[name] = (requirement[2], requirement[3], 0)
    return found


def test_the_lock_has_the_versions_that_are_tested_and_nothing_else_for_this_machine() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    tested = {name_of(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert {name: locked()[name][0] for name in tested} == tested
    elsewhere = {name for name, (_, where, _) in locked().items() if where}
    assert locked().keys() - tested.keys() - elsewhere == {"setuptools"}  # builds the package; `pip freeze` hides it


def test_every_locked_package_has_the_hashes_of_its_files() -> None:
    assert [name for name, (_, _, files) in locked().items() if not files] == []
