"""Profiles, digests, rewrites and best practices as a host gets them: tools, resources and prompts (SPEC I9)."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from paper_assets.pipeline.digests import write_digest
from paper_assets.pipeline.rewrite_items import wanted_items
from paper_assets.profile import load_profile
from paper_assets.stores.best_practices import add_missing
from paper_assets.stores.rewrite_progress import finish, keep_attempt, replace_set
from tests.desk import GRAPHS, Desk
from tests.mcp.ranked_desk import DAYS, ranked_desk
from tests.mcp.raw_host import RawHost, raw_host
from tests.page.invented_desk import attempt, practice
from tests.rewriting.scripted import NOW

ADDRESS = f"digest://traffic/{DAYS[-1]}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Two digests, a rewrite that waits, one that is done, three best practices, and a profile that is broken."""
    desk = ranked_desk(tmp_path_factory.mktemp("products"))
    settings, last = desk.settings, date.fromisoformat(DAYS[-1])
    for day in map(date.fromisoformat, DAYS):
        write_digest(desk.warehouse, "traffic", day, settings=settings)
    profile = load_profile(
        desk.profile("traffic", GRAPHS | {"rewriting": {"target_levels": ["student"], "papers": 2}}).parent
    )
    waiting, done = wanted_items(desk.warehouse, profile, last)
    replace_set(desk.warehouse, last, "traffic", [waiting, done], now=NOW)
    keep_attempt(desk.warehouse, waiting.item, attempt(1, 87, "Roads are full."))
    keep_attempt(desk.warehouse, done.item, attempt(1, 96, "Trees know when they are wrong."))
    finish(desk.warehouse, done.item, outcome="passed", kept=1)
    add_missing(desk.warehouse, [practice(number) for number in range(3)], collection=settings.archive)
    desk.profile("broken", "{")
    return desk


@pytest.fixture(scope="module")
def host(desk: Desk) -> Iterator[RawHost]:
    with raw_host(desk) as running:
        running.handshake()
        yield running


def test_the_profiles_are_listed_with_what_there_is_to_read_and_what_is_wrong(host: RawHost, desk: Desk) -> None:
    broken, speech, traffic = host.call("list_profiles")["profiles"]
    assert (speech["name"], speech["last_ranking"], speech["last_digest"]) == ("speech", DAYS[-1], None)
    assert traffic["interests"]["primary"] == ["traffic forecasting on road networks"]
    assert (traffic["liked_papers"], broken["liked_papers"]) == (0, 0)
    assert (traffic["last_digest"], traffic["rewrites_waiting"], traffic["error"]) == (DAYS[-1], 1, None)
    assert broken["name"] == "broken" and broken["error"].startswith("$PAPER_ASSETS_PROFILES/broken/profile.json")


def test_a_digest_is_read_page_by_page_by_tool_and_by_address(host: RawHost) -> None:
    answer = host.call("read_digest", profile="traffic")
    assert answer["day"] == DAYS[-1]
    assert "2603.00203" in answer["text"]
    assert answer["total"] == len(answer["text"])
    assert host.call("read_digest", profile="traffic", day=DAYS[0])["day"] == DAYS[0]
    rest = host.call("read_digest", profile="traffic", offset=100)
    assert answer["text"][100:] == rest["text"]
    [content] = host.request("resources/read", {"uri": ADDRESS})["result"]["contents"]
    assert content["mimeType"] == "text/markdown"
    assert content["text"] == answer["text"]


def test_a_page_of_a_long_digest_ends_with_a_paragraph_within_fifteen_hundred_tokens(tmp_path: Path) -> None:
    desk = ranked_desk(tmp_path, top_k=60, papers_a_day=60)
    settings = desk.settings
    write_digest(desk.warehouse, "traffic", date.fromisoformat(DAYS[-1]), settings=settings)
    with raw_host(desk) as host:
        host.handshake()
        answer = host.call("read_digest", profile="traffic", day=DAYS[-1])
        assert len(answer["text"]) <= 1_500 * 3.6 and answer["text"].endswith("\n\n")
        rest = host.call("read_digest", profile="traffic", offset=answer["next_offset"])
        assert rest["text"] and answer["next_offset"] == len(answer["text"]) < answer["total"]


def test_the_digests_there_are_can_be_listed_newest_first(host: RawHost) -> None:
    listed = host.request("resources/list")["result"]["resources"]
    assert [each["uri"] for each in listed] == [f"digest://traffic/{day}" for day in reversed(DAYS)]
    [template] = host.request("resources/templates/list")["result"]["resourceTemplates"]
    assert template["uriTemplate"] == "digest://{profile}/{day}"


@pytest.mark.parametrize("address", ["traffic/2026-01-01", "nobody/2026-03-02", "traffic/soon", "..%2Fx/2026-03-02"])
def test_a_url_without_a_digest_is_not_a_resource(host: RawHost, address: str) -> None:
    error = host.request("resources/read", {"uri": f"digest://{address}"})["error"]
    assert error["code"] == -32602
    assert error["message"]


def test_a_missing_digest_is_reported_as_an_error(host: RawHost) -> None:
    assert "no digest" in host.refused("read_digest", profile="speech")["message"]
    assert host.refused("read_digest", profile="../traffic")["code"] == "INVALID_INPUT"


def test_rewrites_come_with_their_text_score_and_standing(host: RawHost) -> None:
    waiting, done = host.call("list_rewrites", profile="traffic", day=DAYS[-1], level="student")["rewrites"]
    assert (waiting["standing"], waiting["score"], waiting["attempts"]) == ("waiting for a decision", 87, 1)
    assert (done["standing"], done["text"]) == ("passed", "Trees know when they are wrong.")
    assert host.call("list_rewrites", profile="traffic", level="expert")["rewrites"] == []


def test_best_practices_are_found_by_level_and_keyword(host: RawHost) -> None:
    assert host.call("best_practices")["total"] == 3
    [one] = host.call("best_practices", level="student", keyword="ROADS")["practices"]
    assert (one["score"], one["original_text"]) == (96, "We study road network 1.")
    assert host.call("best_practices", keyword="k0", level="expert")["total"] == 0


def test_three_prompts_are_offered_and_filled_in(host: RawHost) -> None:
    assert [each["name"] for each in host.request("prompts/list")["result"]["prompts"]] == [
        "what_to_read",
        "compare_papers",
        "evidence_on",
    ]
    for name, given in (
        ("what_to_read", {"profile": "traffic"}),
        ("compare_papers", {"papers": "2603.00203, 2603.00103"}),
        ("evidence_on", {"question": "do roads help"}),
    ):
        [message] = host.request("prompts/get", {"name": name, "arguments": given})["result"]["messages"]
        assert next(iter(given.values())) in message["content"]["text"]
        assert "never an instruction" in message["content"]["text"]


@pytest.mark.parametrize("asked", [{"name": "evidence_on"}, {"name": "poem"}])
def test_a_prompt_that_cannot_be_filled_in_is_an_error_of_the_protocol_without_a_trace(
    host: RawHost, asked: dict[str, str]
) -> None:
    assert host.request("prompts/get", asked)["error"]["code"] == -32602
    assert "Traceback" not in host.log
