"""Everything that turns a paper into something shown takes every paper: recorded, odd, huge or generated."""

import os
import random
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, time
from itertools import chain, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper import Paper
from paper_assets.sources.bulk_files import read_papers
from tests.invented_papers import MONDAY
from tests.real.odd_papers import generated_text, huge_papers, odd_papers, paper_saying
from tests.real.renderers import RENDERERS, Sweep, raw_mathematics, sweep
from tests.real.views import PAGES, PAGES_OF_A_PAPER, Asked, ask_everything, fill

_SECONDS = 60  # of processor time for one paper and renderer; a quadratic search takes minutes
_GENERATED = 100
_FULL = os.environ.get("SWEEP") == "full"  # all papers; otherwise:
_EACH = 1 if _FULL else 96  # every 96th recorded paper
_EACH_ODD = 1 if _FULL else 4  # every fourth recorded paper with odd fields
_EACH_HUGE = 1 if _FULL else 4  # every fourth text beyond reason
_MONDAY = datetime.combine(MONDAY, time(9), UTC)
# A title may be no query, and there is no earlier list to compare with.
_MAY_REFUSE = (
    "page search",
    "command find",
    "MCP search_desk",
    "MCP ask_desk",
    "page question",
    "command ask",
    "command changed",
)


def hold(done: Sweep) -> None:
    """Print the counts; fail if a renderer raised or took too long."""
    print(done)
    assert done.papers and done.rendered == done.papers * len(RENDERERS)
    assert done.raised == []
    assert done.slowest[0] < _SECONDS, done


def answered(asked: Asked) -> None:
    """Print the counts; fail if an answer was not sound or a view, command or tool refused that may not."""
    print(asked)
    assert asked.wrong == []
    assert [name for name in asked.refused if not name.startswith(_MAY_REFUSE)] == []
    assert asked.papers and {*PAGES_OF_A_PAPER, *PAGES} <= {name.removeprefix("page ") for name in asked.answers}
    always_refused = {name for name, times in asked.answers.items() if times > 1 and asked.refused[name] == times}
    assert always_refused == set()


def test_odd_papers_are_shown_by_every_view_command_and_tool(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Invented ones, and where they are, recorded ones on the same desk."""
    papers, recorded = [*odd_papers()], list[Paper]()
    with suppress(pytest.skip.Exception):
        file = request.getfixturevalue("shared_data") / "arxiv_odd_records" / "records.jsonl.gz"
        every = islice(read_papers(file, on_fault=print), 0, None, 100)
        recorded = [replace(each, published=_MONDAY) for each in every]
    answered(ask_everything(fill(tmp_path, papers + recorded), papers[::36] + recorded[::12]))


def test_odd_papers_are_shown_by_every_renderer() -> None:
    hold(sweep(odd_papers()))


def test_papers_of_any_size_are_shown_by_every_renderer_in_time() -> None:
    hold(sweep(islice(huge_papers(), 0, None, _EACH_HUGE)))


def test_generated_papers_are_shown_by_every_renderer() -> None:
    dice = random.Random(23)
    hold(sweep((paper_saying(generated_text(dice), number) for number in range(_GENERATED)), together=20))


@given(st.text(max_size=400) | st.text(alphabet="$\\{}^_&()[]abx1 '\"<>`\n", max_size=200))
def test_any_text_is_shown_by_every_renderer(text: str) -> None:
    assert sweep([paper_saying(text, 1)]).raised == []


@pytest.mark.shared_data
def test_recorded_papers_are_shown_by_every_renderer(shared_data: Path) -> None:
    files = [shared_data / "arxiv_papers" / "papers.jsonl.gz", shared_data / "arxiv_odd_records" / "records.jsonl.gz"]
    papers, odd = (list(read_papers(file, on_fault=print)) for file in files)
    assert (len(papers), len(odd)) == (8_267, 1_191)
    done = sweep(chain(papers[::_EACH], odd[::_EACH_ODD]), together=50)
    hold(done)


@pytest.mark.shared_data
def test_no_recorded_formula_is_left_between_dollars(shared_data: Path) -> None:
    papers = islice(read_papers(shared_data / "arxiv_papers" / "papers.jsonl.gz", on_fault=print), 1, None, _EACH)
    left, seen = [], 0
    while batch := tuple(islice(papers, 50)):
        seen += len(batch)
        left += raw_mathematics(batch)
    assert seen >= 8_000 // _EACH
    assert left == []
