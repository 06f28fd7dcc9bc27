"""The picture of a ranking's scores: every row and part stands in it, and other people's titles cannot break it."""

import base64
import re
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
import pytest

from paper_assets.defs.reports import metadata_of, scatter, stacked_bars
from paper_assets.pipeline.step import Bars, Report, Scatter
from tests.real.odd_papers import TRAPS


def _picture(markdown: str) -> ElementTree.Element:
    found = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found
    return ElementTree.fromstring(base64.b64decode(found[1]))


def test_every_row_and_part_is_named_and_a_bar_is_as_long_as_its_share() -> None:
    parts = {"relevance": [2.0, 1.0], "recency": [1.0, 0.0], "penalty": [0.0, -1.0]}
    picture = _picture(stacked_bars(["1. First", "2. Second"], parts, title="What brought it"))
    words = [each.text for each in picture.iter() if each.tag.endswith("text")]
    assert {"What brought it", "1. First", "2. Second", *parts, "0", "3", "-1"} <= set(words)
    lengths = {
        name: [float(length) for length in re.findall(r"M[\d.]+ \d+h(-?[\d.]+)v15", each.attrib["d"])]
        for name, each in zip(parts, [e for e in picture if e.attrib.get("fill", "#fff") != "#fff"], strict=True)
    }
    unit = lengths["relevance"][1]
    assert unit > 0
    assert {name: [round(length / unit) for length in each] for name, each in lengths.items()} == parts


def test_a_title_of_somebody_else_breaks_no_picture_and_no_rows_make_one_too() -> None:
    picture = _picture(stacked_bars(['<script>alert("1")</script> & \x00\x1b[31m $x^2$'], {"a": [0.0]}, title="t"))
    assert [each.tag.rpartition("}")[2] for each in picture.iter() if "script" in each.tag] == []
    assert any("<script>" in (each.text or "") for each in picture.iter())
    _picture(stacked_bars([], {"a": []}, title="nothing"))


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
