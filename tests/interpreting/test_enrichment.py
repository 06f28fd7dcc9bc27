"""Test that Semantic Scholar adds what it knows about a day's papers and changes nothing else (S4)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from paper_assets.defs.assets import ASSETS
from paper_assets.interpreting.clients import Clients
from paper_assets.paper import Paper
from paper_assets.pipeline.workspace import enricher, open_workspace
from paper_assets.sources import semantic_scholar
from paper_assets.sources.semantic_scholar import Enriched
from paper_assets.stores.papers import find_paper
from paper_assets.stores.scholar_records import ScholarRecord, keep_records, records_of
from tests.interpreting.outside import DAY, Outside, titled
from tests.loopback import Answer
from tests.loopback_semantic_scholar import found_json, scholar_paper

NOW = datetime(2026, 3, 5, tzinfo=UTC)
ON = {"PAPER_ASSETS_SEMANTIC_SCHOLAR": "on"}
CODE = "https://github.com/invented/folding"


def known(number: int, **more: Any) -> dict[str, Any]:
    return scholar_paper(number, arxiv=f"2601.0500{number}", affiliations=["Example Institute"], **more)


def fetch(world: Outside, instance: dg.DagsterInstance, **environ: str) -> tuple[str, Mapping[str, Any]]:
    """Materialize the day; its data version and what the UI shows of it."""
    clients = world.clients(**environ)
    dg.materialize(
        ASSETS,
        selection=["arxiv_papers"],
        instance=instance,
        partition_key=f"{DAY}",
        resources={"workspace": open_workspace(clients.settings, clients.environ, clock=lambda: NOW)},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )
    record = instance.get_latest_data_version_record(dg.AssetKey("arxiv_papers"), partition_key=f"{DAY}")
    assert record is not None and record.asset_materialization is not None
    event = record.asset_materialization
    assert event.tags is not None
    shown = {name: value.value for name, value in event.metadata.items()}
    return event.tags["dagster/data_version"], shown


def enrich(clients: Clients, papers: Sequence[Paper]) -> Enriched:
    return enricher(clients.settings, clients.environ, clients.warehouse)(papers, True)


def stored(world: Outside, paper_id: str = "2601.05001") -> Paper:
    paper = find_paper(world.clients().warehouse, paper_id)
    assert paper is not None
    return paper


@pytest.fixture
def day(world: Outside) -> Outside:
    """Two papers of a day; Semantic Scholar knows the first."""
    world.arxiv.papers += [titled(1, "Folding caches"), titled(2, "Unknown there")]
    world.scholar.papers.append(known(1, abstract=f"Our code lies at {CODE} ."))
    return world


def test_a_day_has_affiliations_and_code_and_refetching_it_changes_nothing(day: Outside) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        first, shown = fetch(day, instance, **ON)
        assert shown["semantic_scholar"] == "1 of 2 papers known"
        assert stored(day).affiliations == ("Example Institute",)
        assert stored(day).github_url == CODE
        assert stored(day, "2601.05002").affiliations == ()
        assert fetch(day, instance, **ON)[0] == first, "the same answers"
        day.scholar.papers[0]["citationCount"] = 900
        assert fetch(day, instance, **ON)[0] == first, "a count that changes does not change a ranking"
        assert records_of(day.clients().warehouse, ["2601.05001"])["2601.05001"].citation_count == 900
        day.scholar.script = [Answer(status=500)] * 9
        silent, shown = fetch(day, instance, **ON)
        assert silent == first, "no answer leaves the version unchanged"
        assert "HTTP 500" in shown["semantic_scholar"]
        assert shown["unchanged"] == 2
        day.scholar.script = [found_json([None, None])]
        assert fetch(day, instance, **ON)[0] == first, "neither does an unknown paper"
        assert fetch(day, instance)[0] == first, "nor is asking no more"
        day.scholar.script = None
        day.scholar.papers.append(known(2))
        later, shown = fetch(day, instance, **ON)
        assert later != first, "what it has learnt since is"
        assert shown["updated"] == 1


def test_by_default_no_request_is_sent(day: Outside) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        _, shown = fetch(day, instance)
    assert day.asked == (1, 0)
    assert "semantic_scholar" not in shown
    assert stored(day).affiliations == ()


@pytest.mark.parametrize(
    "script",
    [
        [Answer(status=429)] * 4,
        [Answer(status=403)],
        [Answer(status=400, body=b'{"error":"unsupported fields"}')],
        [Answer(body=b"<html>")],
        [found_json([])],
        [Answer(missing=100)] * 4,
    ],
)
def test_whatever_semantic_scholar_does_the_papers_are_there(day: Outside, script: list[Answer]) -> None:
    day.scholar.script = script
    enriched = enrich(day.clients(SEMANTIC_SCHOLAR_API_KEY="s2-hidden", **ON), day.arxiv.papers)
    assert enriched.papers == day.arxiv.papers
    assert enriched.warning is not None and enriched.warning.startswith("Semantic Scholar did not answer: ")
    assert "hidden" not in enriched.warning


def test_what_one_request_gave_stays_if_the_next_one_fails(day: Outside) -> None:
    others = [titled(number, "Unknown there") for number in range(2, 502)]
    day.scholar.script = [found_json([known(1), *[None] * 499]), *[Answer(status=429)] * 4]
    enriched = enrich(day.clients(**ON), [day.arxiv.papers[0], *others])
    assert enriched.warning is not None and enriched.answered == 1
    assert enriched.papers[0].affiliations == ("Example Institute",)


def test_a_count_that_no_store_can_hold_is_unknown(day: Outside) -> None:
    day.scholar.papers[0]["citationCount"] = 10**30
    enriched = enrich(day.clients(**ON), day.arxiv.papers)
    assert (enriched.warning, enriched.answered) == (None, 1)
    assert records_of(day.clients().warehouse, ["2601.05001"])["2601.05001"].citation_count is None


def test_the_order_in_which_affiliations_come_changes_nothing(day: Outside) -> None:
    clients = day.clients(**ON)
    found = []
    for names in (["B", "A", "B"], ["A", "B"]):
        day.scholar.papers[0]["authors"][0]["affiliations"] = names
        found.append(enrich(clients, day.arxiv.papers).papers[0].affiliations)
    assert found == [("A", "B")] * 2


def test_an_invalid_key_is_a_warning_too(day: Outside) -> None:
    enriched = enrich(day.clients(SEMANTIC_SCHOLAR_API_KEY="s2\nhidden", **ON), day.arxiv.papers)
    assert enriched.papers == day.arxiv.papers
    assert enriched.warning is not None
    assert "SEMANTIC_SCHOLAR_API_KEY" in enriched.warning and "hidden" not in enriched.warning


def test_what_arxiv_gave_stays(day: Outside) -> None:
    day.arxiv.papers[0] = titled(1, "Folding caches", github_url="https://github.com/a/b", affiliations=("Elsewhere",))
    enriched = enrich(day.clients(**ON), day.arxiv.papers)
    assert enriched.papers == day.arxiv.papers


def test_a_day_is_asked_for_in_one_request_and_a_large_one_in_several(day: Outside) -> None:
    clients = day.clients(**ON)
    with semantic_scholar.opened(clients.access(clients.started())) as scholar:
        found = semantic_scholar.details(scholar, [f"2601.{number:05d}" for number in range(1, 502)])
    assert found == {}
    assert [len(request.body) > 100 for request in day.scholar.requests] == [True, False]


def test_details_are_matched_by_place_and_dropped_if_their_id_differs(day: Outside) -> None:
    day.scholar.script = [found_json([known(2), None, known(3)])]
    clients = day.clients(**ON)
    with semantic_scholar.opened(clients.access(clients.started())) as scholar:
        found = semantic_scholar.details(scholar, ["2601.05001", "2601.05002", "2601.05003"])
    assert set(found) == {"2601.05003"}


def test_a_record_keeps_what_a_later_one_does_not_know(day: Outside) -> None:
    warehouse = day.clients().warehouse
    full = ScholarRecord(paper_id="1", affiliations=("A",), github_url=CODE, citation_count=3)
    keep_records(warehouse, [full])
    keep_records(warehouse, [ScholarRecord(paper_id="1", citation_count=0)])
    now = ScholarRecord(paper_id="1", affiliations=("A",), github_url=CODE, citation_count=0)
    assert records_of(warehouse, ["1", "2"]) == {"1": now}
