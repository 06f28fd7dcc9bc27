"""The tools over stored assets, asked over stdio: rankings, their reasons, their changes, and a new ranking."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from paper_assets.interfaces.mcp.desk_tools import DeskTools
from paper_assets.interfaces.values import rounded
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.settings import Settings
from tests.desk import TOPICS, Desk, paper, week
from tests.mcp.ranked_desk import DAYS, ranked_desk
from tests.mcp.raw_host import RawHost, raw_host

TRAFFIC = "2603.00203"  # of the second day, on the subject of the profile `traffic`


def test_todays_ranking_is_the_newest_one_with_the_why_of_each_paper(host: RawHost) -> None:
    answer = host.call("todays_ranking", profile="traffic")
    assert answer["day"] == DAYS[-1]
    assert [entry["rank"] for entry in answer["papers"]] == [1, 2]
    best = answer["papers"][0]
    assert best["paper_id"] == TRAFFIC
    assert answer["url"].format(paper_id=TRAFFIC) == f"https://arxiv.org/abs/{TRAFFIC}" and "url" not in best
    assert best["summary"] == f"We study {TOPICS[3]}."
    assert best["why"] == f"{TOPICS[3]} in title and abstract."


def test_floats_are_rounded(host: RawHost) -> None:
    score = host.call("explain_rank", paper_id=TRAFFIC, profile="traffic")["score"]
    floats = {name: value for name, value in score.items() if isinstance(value, float)}
    assert floats and {name: round(value, 4) for name, value in floats.items()} == floats


def test_a_page_of_a_long_list_is_at_most_fifteen_hundred_tokens(tmp_path: Path) -> None:
    """Measured with o200k on real lists: 3.6 characters a token."""
    desk = ranked_desk(tmp_path, top_k=60, papers_a_day=60)
    with raw_host(desk) as host:
        host.handshake()
        answer = host.call("todays_ranking", profile="traffic")
        assert len(json.dumps(answer, ensure_ascii=False)) <= 1_500 * 3.6
        assert 0 < len(answer["papers"]) == answer["next_offset"] < answer["total"]


def test_an_earlier_day_can_be_asked_for(host: RawHost) -> None:
    assert host.call("todays_ranking", profile="traffic", day=DAYS[0])["day"] == DAYS[0]


def test_a_page_ends_where_the_next_begins(host: RawHost) -> None:
    whole = host.call("todays_ranking", profile="traffic")
    rest = host.call("todays_ranking", profile="traffic", offset=1)
    assert rest["papers"] == whole["papers"][1:]
    assert (rest["total"], rest["next_offset"]) == (2, None)


@pytest.mark.parametrize(
    "tool", ["todays_ranking", "explain_rank", "what_changed", "read_digest", "list_rewrites", "export_citations"]
)
def test_a_mistyped_profile_is_reported_as_missing_and_not_as_having_no_list(host: RawHost, tool: str) -> None:
    arguments = {"paper_id": TRAFFIC} if tool == "explain_rank" else {}
    error = host.refused(tool, profile="trafic", **arguments)
    assert error["message"] == "profile: there is none named 'trafic'; list_profiles names them"


@pytest.mark.parametrize("tool", ["todays_ranking", "explain_rank", "what_changed", "export_citations"])
def test_a_day_without_a_list_is_answered_with_the_newest_one_and_what_makes_it(host: RawHost, tool: str) -> None:
    arguments = {"paper_id": TRAFFIC} if tool == "explain_rank" else {}

    def missing(day: str) -> str:
        message: str = host.refused(tool, profile="traffic", day=day, **arguments)["message"]
        assert message.startswith(f"no ranking for profile 'traffic' on {day}; the newest is of {DAYS[-1]}. ")
        return message

    unfetched = missing("2026-02-02")
    assert "The papers of 2 February 2026 are not fetched yet: `paper-assets fetch --day 2026-02-02`, then" in unfetched
    assert unfetched.endswith("`paper-assets run --profile traffic --as-of 2026-02-02` makes it")
    for never in ("2020-01-01", "2199-12-31"):
        assert "Lists begin on 2026-01-01 and end today, " in missing(never) and "fetch" not in missing(never)


@pytest.mark.parametrize("day", ["1900-01-01", "2199-12-31"])
def test_the_first_and_last_day_that_can_be_given_are_days_that_were_not_fetched(host: RawHost, day: str) -> None:
    answer = host.call("rank_and_filter_papers", as_of=day)
    assert answer["ranked_papers"] == []
    assert any(f"not fetched yet: `paper-assets fetch --day {day}`" in each for each in answer["summary"]["warnings"])


@pytest.mark.parametrize("day", ["0001-01-01", "1899-12-31", "2200-01-01", "9999-12-31"])
def test_a_day_out_of_reach_is_refused(host: RawHost, day: str) -> None:
    error = host.refused("rank_and_filter_papers", as_of=day)
    assert (error["code"], error["message"]) == ("INVALID_INPUT", f"as_of must be a day like 2026-03-01, got '{day}'")


def test_without_a_profile_the_error_names_those_there_are(host: RawHost) -> None:
    error = host.refused("todays_ranking")
    assert error["code"] == "INVALID_INPUT"
    assert "speech, traffic" in error["message"]


def test_a_rank_is_explained_and_so_is_an_absence(host: RawHost) -> None:
    answer = host.call("explain_rank", paper_id=f"arXiv:{TRAFFIC}v1", profile="traffic")
    assert answer["paper_id"] == TRAFFIC
    assert answer["score"]["rank"] == 1
    removed = host.call("explain_rank", paper_id="2603.00103", profile="traffic")
    assert removed["score"] is None
    assert removed["why"] == ["Not ranked: it was in your list on an earlier day."]


def test_what_changed_lists_the_papers_that_entered_and_why_others_left(host: RawHost) -> None:
    answer = host.call("what_changed", profile="traffic")
    changes = {change["paper_id"]: change for change in answer["changes"]}
    assert changes[TRAFFIC]["change"] == "entered"
    assert changes["2603.00103"]["reason"] == "it was in your list on an earlier day"
    assert answer["total"] == len(changes)
    assert answer["note"] is None


@pytest.mark.parametrize("asked", [{"day": DAYS[0]}, {"edit": True}])
def test_a_first_day_reports_that_there_is_nothing_earlier(host: RawHost, asked: dict[str, object]) -> None:
    answer = host.call("what_changed", profile="traffic", **asked)
    assert (answer["changes"], answer["total"]) == ([], 0)
    assert "nothing to compare" in answer["note"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("explain_rank", {"paper_id": "2501.1", "profile": "traffic"}, "INVALID_ARXIV_ID"),
        ("explain_rank", {"paper_id": "../x", "profile": "traffic"}, "INVALID_ARXIV_ID"),
        ("explain_rank", {"paper_id": "", "profile": "traffic"}, "INVALID_ARXIV_ID"),
        ("explain_rank", {"paper_id": "9" * 10_000, "profile": "traffic"}, "INVALID_ARXIV_ID"),
        ("explain_rank", {"paper_id": "9" * 20_000, "profile": "traffic"}, "INVALID_INPUT"),
        ("explain_rank", {"paper_id": "2501.99999", "profile": "traffic"}, "PAPER_NOT_FOUND"),
        ("todays_ranking", {"profile": "nobody"}, "INVALID_INPUT"),
        ("todays_ranking", {"profile": "traffic", "day": "yesterday"}, "INVALID_INPUT"),
        ("todays_ranking", {"profile": "traffic", "offset": -1}, "INVALID_INPUT"),
        ("todays_ranking", {"profil": "traffic"}, "INVALID_INPUT"),
        ("todays_ranking", {"profile": ["traffic"]}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"papers": [], "paper_ids": []}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"papers": [{"paper_id": "2501.00001"}]}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"papers": "none"}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"top_k": 0}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"purpose": "leisure"}, "INVALID_INPUT"),
        ("rank_and_filter_papers", {"paper_ids": ["2501.99999"]}, "PAPER_NOT_FOUND"),
        ("no_such_tool", {}, "INVALID_INPUT"),
    ],
)
def test_a_callers_mistake_is_reported_in_one_bounded_line(
    host: RawHost, tool: str, arguments: dict[str, object], code: str
) -> None:
    error = host.refused(tool, **arguments)
    assert error["code"] == code
    assert 0 < len(error["message"]) <= 1_000


def test_papers_are_ranked_for_a_profile_and_the_result_is_kept(host: RawHost, desk: Desk) -> None:
    given = [{**record, "github_url": "https://github.com/a/b"} for record in week(["2026-03-01"])]
    answer = host.call("rank_and_filter_papers", papers=given, profile_path="traffic", top_k=3, as_of="2026-03-02")
    assert [entry["rank"] for entry in answer["ranked_papers"]] == [1, 2, 3]
    assert answer["ranked_papers"][0]["paper_id"] == "2603.00103"
    assert answer["summary"]["input_count"] == 6
    place, _, name = answer["output_path"].partition("/")
    assert place == "$OUTPUT_DIR"  # only the operator may see where that is
    kept = json.loads((desk.folder / "data" / "output" / name).read_text(encoding="utf-8"))
    assert rounded(kept["ranked_papers"][0]["score"]) == answer["ranked_papers"][0]["score"]


def test_stored_papers_are_ranked_by_their_ids_or_as_the_newest_week(host: RawHost) -> None:
    week_of_papers = host.call("rank_and_filter_papers", save=False)
    assert week_of_papers["summary"]["input_count"] == 12
    assert week_of_papers["output_path"] is None
    two = host.call("rank_and_filter_papers", paper_ids=[TRAFFIC, "2603.00204v2"], top_k=5, save=False)
    assert two["total"] == 2


def test_a_local_pdf_is_counted_and_its_path_is_hidden(host: RawHost, desk: Desk) -> None:
    folder = desk.folder / "profiles" / "traffic" / "pdf"
    folder.mkdir(exist_ok=True)
    (folder / "2603.00001.pdf").write_bytes(b"%PDF-1.4 private words")
    answer = host.call(
        "rank_and_filter_papers",
        papers=[paper(1, "2026-03-01", "traffic forecasting on road networks")],
        profile_path="traffic",
        save=False,
    )
    [ranked] = answer["ranked_papers"]
    assert ranked["local_status"] == {"already_downloaded": True, "local_path": None}
    assert str(folder) not in json.dumps(answer)


def test_the_answer_stays_within_bounds_and_pages_give_all_of_it(host: RawHost) -> None:
    given = [paper(number, "2026-03-01", "x" * 400) for number in range(1, 121)]
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = host.call("rank_and_filter_papers", papers=given, top_k=100, save=False, offset=offset)
        assert len(json.dumps(answer, ensure_ascii=False)) <= 12_000
        assert "shortened" not in answer
        seen += [entry["paper_id"] for entry in answer["ranked_papers"]]
        offset = answer["next_offset"]
    assert len(seen) == len(set(seen)) == answer["total"] == 100


def test_only_the_fields_of_a_paper_are_returned_from_a_given_record(host: RawHost) -> None:
    record = paper(1, "2026-03-01", "trains")
    more = {"content": "y" * 100_000, "numbers": list(range(50_000)), **{f"key {number}": 1 for number in range(5_000)}}
    answer = host.call("rank_and_filter_papers", papers=[{**record, **more}], save=False)
    assert answer["ranked_papers"][0]["original_data"] == record
    assert "shortened" not in answer


@pytest.mark.parametrize("option", ["profile_path", "history_path", "local_pdf_dir"])
def test_a_path_outside_the_folders_of_the_desk_is_left_out_whether_it_exists_or_not(
    host: RawHost, desk: Desk, option: str
) -> None:
    secret = desk.folder.parent / "secret"
    secret.mkdir(exist_ok=True)
    (secret / "profile.json").write_text('{"interests": {"primary": ["the words of a stranger"]}}', encoding="utf-8")
    (desk.folder / "data" / "output").mkdir(parents=True, exist_ok=True)
    link = desk.folder / "data" / "output" / "link"
    if not link.exists():
        link.symlink_to(secret)
    papers = week(["2026-03-01"])[:1]
    ways = [str(secret), "../../secret", "link", "~root", "\0", "x" * 5_000, str(desk.folder / "nothing")]
    if option == "history_path":
        ways += [str(secret / "profile.json"), "link/profile.json", "/etc/passwd"]
    answers = [host.call("rank_and_filter_papers", papers=papers, save=False, **{option: way}) for way in ways]
    summaries = {json.dumps(answer["summary"], sort_keys=True) for answer in answers}
    assert len(summaries) == 1  # what exists cannot be distinguished from what does not
    assert answers[0]["summary"]["profile_used"] is None
    assert answers[0]["summary"]["warnings"][0].startswith(f"{option}: no")
    assert "stranger" not in summaries.pop()


def test_no_answer_contains_a_path_on_this_machine(host: RawHost, desk: Desk) -> None:
    assert str(desk.folder) not in json.dumps(host.heard)
    assert sys.prefix not in json.dumps(host.heard)


def test_no_stack_trace_was_logged_for_what_a_caller_can_cause(host: RawHost) -> None:
    assert "Traceback" not in host.log


# Ratings and citations: only where the operator allows it, only of the requested profile


def test_without_leave_no_assistant_rates_a_paper_or_learns_of_ratings(host: RawHost) -> None:
    refused = host.refused("rate_paper", paper_id=TRAFFIC, rating="worth")["message"]
    assert "no tool 'rate_paper'" in refused and "PAPER_ASSETS_RATING_OVER_MCP=yes opens them" in refused
    answer = host.refused("export_citations", profile="traffic", rated="worth")
    assert "not open to assistants" in answer["message"]


def test_a_list_can_be_taken_to_a_reference_manager(host: RawHost) -> None:
    answer = host.call("export_citations", profile="traffic", style="ris")
    assert answer["text"].count("TY  - ") == 2 and f"https://arxiv.org/abs/{TRAFFIC}" in answer["text"]
    assert (answer["total"], answer["next_offset"]) == (len(answer["text"]), None)


def test_papers_that_were_found_are_cited_in_their_order_and_a_missing_one_is_named(host: RawHost) -> None:
    answer = host.call("export_citations", paper_ids=["2603.00203v1", "2603.00103", TRAFFIC])
    assert re.findall(r"eprint = {(.+?)}", answer["text"]) == [TRAFFIC, "2603.00103"]
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


def test_a_ranking_that_may_ask_a_model_has_other_threads_than_what_is_stored() -> None:
    class Recording:
        async def answer(self, ctx: object, tool: str, work: object, *, asks_model: bool = False) -> bool:
            return asks_model

    calls: Any = Recording()
    tools = DeskTools(calls=calls, settings=Settings(), environ={})
    assert asyncio.run(tools.rank_and_filter_papers(calls)) is True
    assert asyncio.run(tools.todays_ranking(calls)) is False
