"""Ratings over MCP: only where the operator allows it, only of the profile that is asked about."""

import re
from pathlib import Path

import pytest

from paper_assets.learning.ratings import ratings_by_id
from tests.mcp.ranked_desk import ranked_desk
from tests.mcp.raw_host import RawHost, raw_host

TRAFFIC = "2603.00203"


def test_without_leave_no_assistant_rates_a_paper_or_learns_of_ratings(host: RawHost) -> None:
    assert "no tool 'rate_paper'" in host.refused("rate_paper", paper_id=TRAFFIC, rating="worth")["message"]
    told = host.refused("export_citations", profile="traffic", rated="worth")
    assert "not open to assistants" in told["message"]


def test_a_list_can_be_taken_to_a_reference_manager(host: RawHost) -> None:
    told = host.call("export_citations", profile="traffic", style="ris")
    assert told["text"].count("TY  - ") == 2 and f"https://arxiv.org/abs/{TRAFFIC}" in told["text"]
    assert (told["total"], told["next_offset"]) == (len(told["text"]), None)


def test_papers_that_were_found_are_cited_in_their_order_and_a_missing_one_is_named(host: RawHost) -> None:
    told = host.call("export_citations", paper_ids=["2603.00203v1", "2603.00103", TRAFFIC])
    assert re.findall(r"eprint = {(.+?)}", told["text"]) == [TRAFFIC, "2603.00103"]
    assert "2501.99999" in host.refused("export_citations", paper_ids=[TRAFFIC, "2501.99999"])["message"]
    assert "paper_ids" in host.refused("export_citations", paper_ids=[TRAFFIC], profile="traffic")["message"]


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allowed")


def test_with_leave_a_paper_is_rated_for_one_profile_and_no_other_hears_of_it(allowed: Path) -> None:
    desk = ranked_desk(allowed)
    with raw_host(desk, PAPER_ASSETS_RATING_OVER_MCP="yes") as host:
        host.handshake()
        first = host.call("rate_paper", profile="traffic", paper_id=f"{TRAFFIC}v2", rating="worth")
        assert (first["rating"], first["before"]) == ("worth", None)
        again = host.call("rate_paper", profile="traffic", paper_id=TRAFFIC, rating="undo")
        assert (again["rating"], again["before"]) == (None, "worth")
        host.call("rate_paper", profile="traffic", paper_id=TRAFFIC, rating="no")
        assert host.call("export_citations", profile="speech", rated="no")["text"].strip() == ""
        assert TRAFFIC in host.call("export_citations", profile="traffic", rated="no")["text"]
        assert host.refused("rate_paper", profile="nobody", paper_id=TRAFFIC, rating="no")["code"] == "INVALID_INPUT"
    assert ratings_by_id(desk.warehouse, "traffic") == {TRAFFIC: "no"}
    assert ratings_by_id(desk.warehouse, "speech") == {}
