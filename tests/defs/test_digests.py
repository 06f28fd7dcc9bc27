"""`reading_digests`: real stores, rankings made by the core, no model and no language model anywhere."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from lxml import etree

from paper_assets.defs.partitions import grid_key
from paper_assets.errors import LLMConfigError
from paper_assets.paper import Paper
from paper_assets.pipeline import digest_pages
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.digests import STEP, missing_from_pages, write_digest
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.pipeline.step import Partition, stale
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.settings import Settings, load_settings
from paper_assets.stores.documents import replace_retrievals
from paper_assets.stores.feedback import NewRating, append_ratings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rewrite_progress import finish, keep_attempt, keep_decision, replace_set
from paper_assets.stores.rewrites import NewItem
from paper_assets.stores.warehouse import Warehouse
from tests.defs.in_dagster import latest, made
from tests.digests.invented import answer, document, paper
from tests.digests.invented import attempt as invented_attempt

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
NOBODY = Verifier(ask=unavailable(LLMConfigError("no language model")), model=None)
DIGESTS = "reading_digests"


class Graph:
    """The asset over one folder and one instance; `ranked` stands for everything above it."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.settings: Settings = load_settings({"PAPER_ASSETS_FIRST_DAY": "2026-01-01"}, folder)
        self.warehouse: Warehouse = Warehouse(self.settings.warehouse_path, deadline=10)

        def no_model(*_: Any) -> None:
            raise AssertionError("a digest loads no model")

        loaders = dict.fromkeys(["load_embedder", "load_grader", "load_verifier", "load_writer"], no_model)
        self.workspace = replace(open_workspace(self.settings, {}, clock=lambda: NOW), **loaders)

    @property
    def folder(self) -> Path:
        return self.settings.digests_dir

    def papers(self, day: date, *titles: str, **changes: Any) -> None:
        published = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        found: list[Paper] = [
            paper(100 * day.day + at, title=title, published=published, **changes) for at, title in enumerate(titles)
        ]
        merge_papers(self.warehouse, found)

    def ranked(self, *days: date, name: str = "ponds", **ranking: Any) -> None:
        content = {"interests": {"primary": ["frogs"]}, "ranking": {"top_k": 2, **ranking}}
        profile = Profile(name=name, content=profile_content(content, source=name))
        if name not in self.instance.get_dynamic_partitions("profile"):
            self.instance.add_dynamic_partitions("profile", [name])
        for day in days:
            inputs = profile_day(self.warehouse, profile, day, settings=self.settings)
            keep_candidates(self.warehouse, inputs, settings=self.settings)
            keep_ranking(self.warehouse, profile, day, embedder=None, verifier=NOBODY, settings=self.settings, now=NOW)

    def materialize(self, first: date, last: date | None = None, *, name: str = "ponds") -> dg.ExecuteInProcessResult:
        end = grid_key(last, name) if last else None
        return made(self.instance, self.workspace, DIGESTS, first=grid_key(first, name), last=end)

    def latest(self, day: date) -> tuple[str, dict[str, Any]]:
        """The data version and the metadata last reported."""
        return latest(self.instance, DIGESTS, grid_key(day, "ponds"))

    def files(self) -> dict[str, tuple[bytes, int]]:
        return {file.name: (file.read_bytes(), file.stat().st_ino) for file in self.folder.glob("ponds/[!.]*")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the papers of two days, to be copied."""
    folder = tmp_path_factory.mktemp("home")
    with dg.DagsterInstance.ephemeral() as instance:
        graph = Graph(folder, instance)
        graph.papers(MONDAY, "Loud frogs", "Quiet frogs & <toads>", "Slow tortoises")
        graph.papers(TUESDAY, "Frogs at night", "Frogs by day", "Fast hares")
    return folder


@pytest.fixture
def graph(tmp_path: Path, home: Path) -> Iterator[Graph]:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph(tmp_path, instance)


def test_a_ranked_day_becomes_a_page_without_any_model_question_or_rewrite(graph: Graph) -> None:
    graph.ranked(MONDAY)
    outcome = graph.materialize(MONDAY)
    assert outcome.success
    assert [check.passed for check in outcome.get_asset_check_evaluations()] == [True, True]
    _, metadata = graph.latest(MONDAY)
    page = Path(metadata["page"]).read_text("utf-8")
    assert page.index("Loud frogs") < page.index("Quiet frogs &amp; &lt;toads&gt;") < page.index("Slow tortoises")
    assert "1 more likely" in page, "the abstract of the third counts frogs"
    assert "relevance was judged by keywords only" in page
    assert "Your questions" not in page and "Rewritten" not in page and "What changed" not in page
    assert metadata["dagster/row_count"] == 2
    assert "Quiet frogs \\& \\<toads\\>" in metadata["preview"]
    assert Path(metadata["markdown"]).exists() and Path(metadata["feed"]).exists()


def test_an_old_day_made_again_says_the_same_and_touches_no_file(graph: Graph) -> None:
    graph.ranked(MONDAY, TUESDAY)
    graph.materialize(MONDAY, TUESDAY)
    before, versions = graph.files(), [graph.latest(day)[0] for day in (MONDAY, TUESDAY)]
    for again in ((MONDAY, None), (MONDAY, TUESDAY)):
        assert graph.materialize(*again).success
    assert graph.files() == before
    assert [graph.latest(day)[0] for day in (MONDAY, TUESDAY)] == versions


def test_only_the_day_whose_page_changed_has_a_new_version_and_the_feed_is_in_order(graph: Graph) -> None:
    graph.ranked(MONDAY, TUESDAY)
    graph.materialize(TUESDAY)
    graph.materialize(MONDAY, TUESDAY)
    before = {day: graph.latest(day)[0] for day in (MONDAY, TUESDAY)}
    graph.papers(TUESDAY, "Frogs at night, corrected", version=2)
    graph.ranked(MONDAY, TUESDAY)
    graph.materialize(MONDAY, TUESDAY)
    after = {day: graph.latest(day)[0] for day in (MONDAY, TUESDAY)}
    assert (after[MONDAY] == before[MONDAY], after[TUESDAY] == before[TUESDAY]) == (True, False)
    feed = etree.parse(graph.folder / "ponds" / "feed.atom").getroot()
    contents = ["".join(entry.itertext()) for entry in feed.findall("{*}entry")]
    assert ["2026-03-03" in contents[0], "2026-03-02" in contents[1], len(contents)] == [True, True, 2]
    assert "corrected" in contents[0]


def test_the_page_says_what_changed_since_the_ranked_day_before_and_since_an_edit(graph: Graph) -> None:
    graph.ranked(MONDAY, TUESDAY)
    digest = write_digest(graph.warehouse, "ponds", TUESDAY, settings=graph.settings).digest
    [since_monday] = digest.changes
    assert since_monday.since == "since 2 March 2026"
    [(reason, gone)] = since_monday.left
    assert reason == "it was in your list on an earlier day"
    assert {paper.title for paper in gone} == {"Loud frogs", "Quiet frogs & <toads>"}
    graph.ranked(TUESDAY, ranking_mode="novelty")
    digest = write_digest(graph.warehouse, "ponds", TUESDAY, settings=graph.settings).digest
    assert digest.changes[1].since == "since this day was last ranked"
    assert "ranking mode: balanced → novelty" in digest.changes[1].otherwise


def test_answers_and_rewrites_are_on_the_page_as_soon_as_they_are_stored(graph: Graph) -> None:
    graph.ranked(MONDAY)
    graph.materialize(MONDAY)
    before, _ = graph.latest(MONDAY)
    found = answer({"loud": [document()], "quiet": []})
    replace_retrievals(graph.warehouse, MONDAY, "ponds", [found], inputs="x")
    replace_set(graph.warehouse, MONDAY, "ponds", [an_item("2603.00200")], now=NOW)
    keep_attempt(graph.warehouse, "i", invented_attempt(1, 96, "Frogs shout."))
    finish(graph.warehouse, "i", outcome="passed", kept=1)
    graph.materialize(MONDAY)
    after, metadata = graph.latest(MONDAY)
    assert after != before
    page = Path(metadata["page"]).read_text("utf-8")
    assert "Are frogs loud?" in page and "Frogs are loud at night." in page
    assert "Rewritten for general readers <small>96 of 100</small>" in page and "Frogs shout." in page
    assert (metadata["questions"], metadata["rewrites"]) == (1, 1)


def test_a_decision_days_later_makes_the_feeds_entry_newer_and_the_same_again_does_not(graph: Graph) -> None:
    graph.ranked(MONDAY)
    replace_set(graph.warehouse, MONDAY, "ponds", [an_item()], now=NOW)
    keep_attempt(graph.warehouse, "i", invented_attempt(1, 87, "Tortoises are slow."))

    def update_times() -> list[str]:
        graph.materialize(MONDAY)
        entry = etree.parse(graph.folder / "ponds" / "feed.atom").getroot().find("{*}entry")
        return [entry.findtext(f"{{*}}{name}") for name in ("published", "updated")]

    assert update_times() == ["2026-03-02T00:00:00Z", "2026-03-14T00:00:00Z"]
    keep_decision(graph.warehouse, "i", 1, "accept", now=datetime(2026, 3, 20, 8, tzinfo=UTC))
    finish(graph.warehouse, "i", outcome="accepted", kept=1)
    assert update_times() == ["2026-03-02T00:00:00Z", "2026-03-20T08:00:00Z"]
    assert graph.latest(MONDAY)[1]["rewrites"] == 1, "below the list, and on the page"
    before = graph.files()
    update_times()
    assert graph.files() == before


def test_the_check_finds_a_paper_of_the_list_that_the_page_lacks(graph: Graph) -> None:
    graph.ranked(MONDAY)
    write_digest(graph.warehouse, "ponds", MONDAY, settings=graph.settings)
    assert missing_from_pages(graph.warehouse, "ponds", MONDAY, settings=graph.settings) == []
    graph.papers(MONDAY, "Loud frogs", "Quiet frogs & <toads>", "Frogs, frogs, frogs", version=2)
    graph.ranked(MONDAY, top_k=3)
    assert missing_from_pages(graph.warehouse, "ponds", MONDAY, settings=graph.settings) == ["2603.00202"]
    (graph.folder / "ponds" / f"{MONDAY}.md").unlink()
    assert len(missing_from_pages(graph.warehouse, "ponds", MONDAY, settings=graph.settings)) == 3


def an_item(paper_id: str = "2603.00202") -> NewItem:
    task = {"item": "i", "paper_id": paper_id, "version": 1, "title": "Slow tortoises", "category": None}
    return NewItem(**task, target_level="public", original_text="o", prompt="p")


def _rate(graph: Graph) -> None:
    given = [NewRating(paper_id="2603.00300", rating="worth")]
    append_ratings(graph.warehouse, "ponds", given, given_in="page", now=NOW)


def _accept(graph: Graph) -> None:
    keep_decision(graph.warehouse, "i", 1, "accept", now=datetime(2026, 3, 20, 8, tzinfo=UTC))
    finish(graph.warehouse, "i", outcome="accepted", kept=1)


def _other_settings(graph: Graph) -> None:
    settings = graph.settings.model_copy(update={"desk_url": "http://desk.example"})
    graph.settings, graph.workspace = settings, replace(graph.workspace, settings=settings)


# name: a change of what the digest of TUESDAY is made from, and whether its pages differ afterwards
CHANGES: dict[str, tuple[Callable[[Graph], None], bool]] = {
    "nothing": (lambda graph: None, False),
    "its ranking": (lambda graph: graph.ranked(TUESDAY, ranking_mode="novelty"), True),
    "the ranking of the day before": (lambda graph: graph.ranked(MONDAY, top_k=1), True),
    "another day's ranking": (lambda graph: graph.ranked(date(2026, 3, 5)), False),
    "another profile's ranking": (lambda graph: graph.ranked(TUESDAY, name="meadows"), False),
    "a paper of its list": (lambda graph: graph.papers(TUESDAY, "Frogs at dusk", version=2), True),
    "an edit that changes no exclusion": (
        lambda graph: keep_profile(
            graph.warehouse,
            Profile(name="ponds", content=profile_content({"interests": {"primary": ["newts"]}}, source="ponds")),
        ),
        False,
    ),
    "a paper of another day": (lambda graph: graph.papers(date(2026, 3, 5), "Elsewhere"), False),
    "an answer": (
        lambda graph: replace_retrievals(
            graph.warehouse, TUESDAY, "ponds", [answer({"loud": [document()], "quiet": []})], inputs="x"
        ),
        True,
    ),
    "another attempt at a rewrite": (
        lambda graph: keep_attempt(graph.warehouse, "i", invented_attempt(2, 96, "Tortoises are slow indeed.")),
        True,
    ),
    "a decision": (_accept, True),
    "fewer rewrites": (lambda graph: replace_set(graph.warehouse, TUESDAY, "ponds", [], now=NOW), True),
    "a rating": (_rate, False),
    "the address of the desk": (_other_settings, True),
}


@pytest.fixture(scope="module")
def home_with_digests(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    folder = tmp_path_factory.mktemp("digests")
    shutil.copytree(home, folder, dirs_exist_ok=True)
    with dg.DagsterInstance.ephemeral() as instance:
        graph = Graph(folder, instance)
        graph.ranked(MONDAY, TUESDAY)
        replace_set(graph.warehouse, TUESDAY, "ponds", [an_item()], now=NOW)
        keep_attempt(graph.warehouse, "i", invented_attempt(1, 87, "Tortoises are slow."))
        graph.materialize(MONDAY, TUESDAY)
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_a_digest_is_out_of_date_exactly_if_its_pages_would_differ(
    graph: Graph, home_with_digests: Path, change: str
) -> None:
    shutil.copytree(home_with_digests, graph.settings.home.parent, dirs_exist_ok=True)
    partition = Partition(TUESDAY, "ponds")
    assert stale(STEP.tracked, graph.workspace, [partition]) == []
    make, differs = CHANGES[change]
    make(graph)
    assert stale(STEP.tracked, graph.workspace, [partition]) == ([partition] if differs else [])


def test_missing_pages_are_made_once_and_a_day_that_cannot_be_read_stops_no_other(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.ranked(MONDAY, TUESDAY)
    rendered: list[date] = []
    render, read = digest_pages.pages_of, digest_pages._stored_day

    def counted(digest: Any, settings: Any) -> Any:
        rendered.append(digest.day)
        return render(digest, settings)

    def broken(warehouse: Warehouse, profile: str, day: date) -> Any:
        if day == MONDAY:
            raise ZeroDivisionError
        return read(warehouse, profile, day)

    for module in ("digest_pages", "digests"):
        monkeypatch.setattr(f"paper_assets.pipeline.{module}.pages_of", counted)
    asked = [Partition(day, "ponds") for day in (MONDAY, TUESDAY)]
    assert (
        stale(STEP.tracked, graph.workspace, [*asked, Partition(date(2026, 2, 1), "ponds")]) == asked and rendered == []
    )
    monkeypatch.setattr(digest_pages, "_stored_day", broken)
    done = STEP.make(graph.workspace, asked, STEP.makes)
    assert list(done.new) == asked[1:] and list(done.failures) == asked[:1] and rendered == [TUESDAY]
    monkeypatch.setattr(digest_pages, "_stored_day", read)
    assert stale(STEP.tracked, graph.workspace, asked) == asked[:1]
    assert graph.materialize(MONDAY, TUESDAY).success
    (graph.folder / "ponds" / f"{MONDAY}.md").unlink()
    rendered.clear()
    assert stale(STEP.tracked, graph.workspace, asked) == asked[:1] and rendered == []
