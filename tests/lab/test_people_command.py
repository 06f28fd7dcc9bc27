"""`paper-assets people`: a token shown once, a typing error reported."""

import json
from pathlib import Path

from paper_assets.stores.profiles import people_file, person_with, read_people
from tests.desk import GRAPHS, Desk


def test_people_are_added_listed_and_removed_and_a_token_is_shown_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    file = people_file(tmp_path / "data")
    token = desk.run("people", "add", "ada", "--profile", "graphs").strip()
    ada = person_with(read_people(file), token)
    assert ada and ada.name == "ada"
    listed = desk.run("people", "list", "--json")
    assert json.loads(listed) == [{"name": "ada", "profiles": ["graphs"]}]
    assert "there is no profile 'graph' in" in desk.refused("people", "add", "bob", "--profile", "graph")
    desk.run("people", "remove", "ada")
    assert read_people(file) == ()
