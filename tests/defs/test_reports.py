"""Tables and bars in the UI: every row and part is in them, and no title of a paper can break them."""

import dagster as dg

from paper_assets.defs.reports import metadata_of
from paper_assets.pipeline.step import Report, Table, stacked_bars


def test_a_preview_and_bars_of_any_length_are_shown_without_a_click() -> None:
    rows = [(at, f"{at}. A title of a usual length that would not fit into short Markdown", 0.25) for at in range(50)]
    parts = {"relevance": [2.0] * 50, "recency": [1.0] * 50}
    bars = stacked_bars([row[1] for row in rows], parts, title="Score")
    drawn = metadata_of(Report("1", {"papers": Table(["rank", "title", "score"], rows), "bars": bars}))
    # Dagster puts longer Markdown behind a button; a table is never hidden.
    assert [type(each) for each in drawn.values()] == [dg.TableMetadataValue] * 2
    assert drawn["papers"].records[1].data == {"rank": "1", "title": rows[1][1], "score": "0.250"}
    assert len(drawn["bars"].records) == 50


def test_a_bar_is_as_long_as_its_share_and_its_parts_are_named() -> None:
    parts = {"relevance": [2.0, 1.0], "nothing": [0.0, 0.0], "recency": [1.0, 0.0], "penalty": [0.0, -1.0]}
    drawn = stacked_bars(["1. First", "2. Second"], parts, title="What brought it")
    assert drawn.header == [
        "sum",
        "█ relevance, ▓ recency, ▒ penalty",
        "What brought it",
    ]
    assert drawn.rows == [
        ("3", "█" * 16 + "▓" * 8, "1. First"),
        ("0", "█" * 8 + " −" + "▒" * 8, "2. Second"),
    ]


def test_any_title_and_no_row_make_a_table() -> None:
    title = '<script>alert("1")</script> & \x00\x1b[31m $x^2$' * 9
    [record] = metadata_of(Report("1", {"bars": stacked_bars([title], {"a": [0.0]}, title="t")}))["bars"].records
    assert str(record.data["t"]).startswith("<script>alert") and len(str(record.data["t"])) <= 90
    assert stacked_bars([], {"a": []}, title="nothing").rows == []
