"""Damage is named by `status` and `doctor`, and a backup, an export or `repair` brings back what the database held."""

import json
from pathlib import Path

from paper_assets.stores.feedback import last_ratings, rating_history
from tests.desk import GRAPHS, Desk
from tests.stores.invented_warehouse import PROFILE, stored_warehouse


def damage(path: Path, text: bytes) -> None:
    """Flip a bit of a text that is stored as it is."""
    content = bytearray(path.read_bytes())
    content[content.index(text)] ^= 0x40
    path.write_bytes(content)


def test_a_damaged_table_is_named_and_every_way_back_works(tmp_path: Path) -> None:
    desk, other = Desk(tmp_path / "one"), Desk(tmp_path / "two")
    for each in (desk, other):
        each.folder.mkdir()
    desk.profile(PROFILE, GRAPHS)
    stored_warehouse(desk.warehouse.path)
    rated = last_ratings(desk.warehouse, PROFILE)
    whole = desk.warehouse.path.read_bytes()
    desk.run("backup", str(tmp_path / "copy"))
    desk.run("backup")
    assert "1, the newest of" in desk.run("status")
    desk.run("export", str(tmp_path / "export"))

    damage(desk.warehouse.path, b"Is the road open?")
    status = desk.start("status")
    _, line = status.communicate(timeout=60)
    assert status.returncode == 1 and "kept_answers is damaged" in line and "paper-assets repair" in line
    doctor = desk.start("doctor", "--offline")
    report, _ = doctor.communicate(timeout=60)
    assert doctor.returncode == 1 and "kept_answers cannot be read" in report
    assert "paper-assets repair" in desk.refused("backup")

    assert "confirm with --yes" in desk.refused("restore", str(tmp_path / "copy"))
    assert "What was there before is in" in desk.run("restore", str(tmp_path / "copy"), "--yes")
    assert last_ratings(desk.warehouse, PROFILE) == rated

    desk.warehouse.path.write_bytes(whole)
    damage(desk.warehouse.path, b"Is the road open?")
    assert "only a backup has it" in desk.run("repair", "--yes")
    assert "The database is whole" in desk.run("repair")

    assert json.loads(other.run("import", str(tmp_path / "export"), "--json"))["ratings"] == len(rated)
    assert [each.rated_at for each in rating_history(other.warehouse, PROFILE)] == [each.rated_at for each in rated]
    assert other.content(PROFILE) == desk.content(PROFILE)
    assert "nothing new" in other.run("import", str(tmp_path / "export"))
