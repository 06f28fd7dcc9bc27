"""Tables, bars and maps in the UI: every row and part is in them, and no title of a paper can break them."""

import base64
import re
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import dagster as dg
import numpy as np
import pytest

from paper_assets.defs.reports import metadata_of, scatter, stacked_bars
from paper_assets.pipeline.step import Bars, Report, Scatter, StackedBars, Table
from tests.real.odd_papers import TRAPS


def _picture(markdown: str) -> ElementTree.Element:
    found = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found
    return ElementTree.fromstring(base64.b64decode(found[1]))


def test_a_preview_and_bars_of_any_length_are_shown_without_a_click() -> None:
    rows = [(at, f"{at}. A title of a usual length that would not fit into short Markdown", 0.25) for at in range(50)]
    parts = {"relevance": [2.0] * 50, "recency": [1.0] * 50}
    bars = StackedBars([row[1] for row in rows], parts, title="Score")
    drawn = metadata_of(Report("1", {"papers": Table(["rank", "title", "score"], rows), "bars": bars}))
    # Dagster puts longer Markdown behind a button; a table is never hidden.
    assert [type(each) for each in drawn.values()] == [dg.TableMetadataValue] * 2
    assert drawn["papers"].records[1].data == {"rank": "1", "title": rows[1][1], "score": "0.250"}
    assert len(drawn["bars"].records) == 50


def test_a_bar_is_as_long_as_its_share_and_its_parts_are_named() -> None:
    parts = {"relevance": [2.0, 1.0], "nothing": [0.0, 0.0], "recency": [1.0, 0.0], "penalty": [0.0, -1.0]}
    drawn = stacked_bars(["1. First", "2. Second"], parts, title="What brought it")
    assert [column.name for column in drawn.schema.columns] == [
        "sum",
        "█ relevance, ▓ recency, ▒ penalty",
        "What brought it",
    ]
    assert [tuple(each.data.values()) for each in drawn.records] == [
        ("3", "█" * 16 + "▓" * 8, "1. First"),
        ("0", "█" * 8 + " −" + "▒" * 8, "2. Second"),
    ]


def test_any_title_and_no_row_make_a_table() -> None:
    title = '<script>alert("1")</script> & \x00\x1b[31m $x^2$' * 9
    [record] = stacked_bars([title], {"a": [0.0]}, title="t").records
    assert str(record.data["t"]).startswith("<script>alert") and len(str(record.data["t"])) <= 90
    assert stacked_bars([], {"a": []}, title="nothing").records == []


def test_a_map_has_every_point_inside_it_and_names_the_five_largest_groups() -> None:
    groups = [*"aaaabbbccdde", "f<g>"]
    points = np.array([(at, -(at**2)) for at in range(len(groups))], dtype=np.float32)
    picture = _picture(scatter(points, groups, title="By likeness"))
    drawn = [each for each in picture if each.attrib.get("fill", "#fff") != "#fff" and "d" in each.attrib]
    dots = [
        tuple(map(float, each))
        for path in drawn
        for each in re.findall(r"M([\d.]+) ([\d.]+)h3v3h-3z", path.attrib["d"])
    ]
    assert len(dots) == len(groups)
    assert all(0 <= x <= int(picture.attrib["width"]) and 0 <= y <= int(picture.attrib["height"]) for x, y in dots)
    assert {"By likeness", *"abcde", "other"} <= {each.text for each in picture.iter()}
    _picture(scatter(np.ones((3, 2)), ["a", "a", "a"], title="all in one place"))


@pytest.mark.parametrize("name", ["$$ $ $$$", "$\\frac{1}$", "_hidden", "", "\n\x00", "x" * 100_000, *TRAPS[:12]])
def test_a_group_of_any_name_is_drawn(name: str) -> None:
    points = np.asarray([[0.0, 1.0], [1.0, 0.0]])
    [drawn] = metadata_of(Report(values={"map": Scatter(points, [name, "b"], title="map")}, data_version="1")).values()
    _picture(drawn.value)
    assert len(drawn.value) < 20_000


def test_a_value_that_cannot_be_drawn_leaves_the_others() -> None:
    broken = cast(Any, SimpleNamespace(values=lambda: 1 / 0))
    drawn = metadata_of(
        Report(values={"bad": Bars(broken, title="t"), "good": Bars({"a": 1}, title="t"), "rows": 3}, data_version="1")
    )
    assert drawn["bad"].startswith("bad: unexpected ZeroDivisionError")
    assert "█ 1" in drawn["good"].value and drawn["rows"] == 3
