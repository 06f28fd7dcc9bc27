"""Whether a rewrite is of the given original, by meaning and by shared words (B2)."""

from pathlib import Path

import pytest

from paper_assets.models.embedder import load_embedder
from paper_assets.rewriting.gate import stop_reasons
from paper_assets.rewriting.loop import advance
from paper_assets.rewriting.measures import LEAST_FIT, TopicFit, shared_words, topic_fit
from paper_assets.rewriting.writing import new_item
from tests.loopback_llm import loopback_llm
from tests.rewriting.invented_archive import fill, invented_archive, invented_embedder, practice
from tests.rewriting.scripted import opened, writer_of
from tests.rewriting.test_gate import GOOD, LONG, answering

KITES = (
    "A kite in the wind can make electric power, and it needs far less material than a tower. But the wind changes, so "
    "someone has to steer it all day long. The authors let a small computer do so. It feels how hard the lines "
    "pull and guesses how the wind will blow in the next moments. Then it turns the kite a little, so that the lines "
    "stay tight. The kite flies in loops, and each loop winds up a drum on the ground that drives a generator. In the "
    "air above a meadow the computer kept the kite flying through gusts that brought human pilots down."
)
ITEM = new_item(LONG, "public")


def fits(text: str, **others: str) -> TopicFit:
    found = topic_fit(load_embedder(), title=LONG.title, original=LONG.abstract, text=text, others=others)
    assert found is not None
    return found


def test_a_rewrite_fits_its_original_and_a_text_about_something_else_does_not() -> None:
    assert stop_reasons(ITEM, GOOD, fit=fits(GOOD)) == ()
    assert fits(KITES).own < LEAST_FIT["public"] < fits(GOOD).own
    assert any("about something else" in reason for reason in stop_reasons(ITEM, KITES, fit=fits(KITES)))


def test_a_rewrite_of_a_paper_that_was_shown_as_an_example_is_reported_with_that_papers_id() -> None:
    assert fits(KITES, kites=KITES).others["kites"] == pytest.approx(3.0)
    [reason] = stop_reasons(ITEM, GOOD, fit=TopicFit(own=0.9, others={"2603.00012": 1.1, "2603.00013": 1.4}))
    assert "more like the original of 2603.00013 (1.40) than like its own (0.90)" in reason
    assert stop_reasons(ITEM, GOOD, fit=fits(GOOD, kites=KITES)) == ()


@pytest.mark.parametrize(("own", "other"), [(0.9, 0.94), (3.0, 0.0), (0.7, 0.7)])
def test_a_text_that_fits_its_own_original_about_as_well_as_any_is_let_be(own: float, other: float) -> None:
    assert stop_reasons(ITEM, GOOD, fit=TopicFit(own=own, others={"x": other})) == ()


def test_meaning_is_not_compared_by_a_model_without_measured_floors() -> None:
    for embedder in (None, invented_embedder()):
        assert topic_fit(embedder, title="", original=LONG.abstract, text=KITES) is None


def test_words_in_common_are_counted_once_each() -> None:
    assert shared_words("sheep sheep goats", "A sheep.") == 0.5
    assert shared_words("", "A sheep.") == 0.0


def test_the_loop_asks_the_archives_model_and_holds_a_text_about_something_else_back(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path, load_embedder())
    fill(archive, [practice(3)])
    [item] = opened(archive.warehouse, LONG)
    with loopback_llm(answering(KITES, GOOD)) as server:
        done = advance(archive.warehouse, writer_of(server, archive=archive), item.item)
    assert (done.outcome, done.kept) == ("passed", 2)
    assert any("about something else" in reason for reason in done.attempts[0].stopped)
