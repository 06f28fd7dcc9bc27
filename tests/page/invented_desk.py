"""A desk with a year of days, answers, rewrites and best practices, all invented, and a page served over it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import count
from pathlib import Path

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text, paper_from_mapping, papers_from_table, text_hash
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.pipeline.retrievals import keep_retrievals
from paper_assets.pipeline.rewrite_items import wanted_items
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.profile import load_profile
from paper_assets.retrieval.grading import similarity_grader
from paper_assets.settings import load_settings
from paper_assets.stores.best_practices import BestPractice, add_missing
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import papers_between
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rewrite_progress import finish, keep_attempt, replace_set
from paper_assets.stores.rewrites import Attempt, NewItem
from tests.desk import SPEECH, Desk, end, paper, week
from tests.mcp.ranked_desk import NOBODY
from tests.rewriting.scripted import NOW

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")
LATEST = date(2026, 3, 4)
PROFILE = "traffic"
_NUMBERS = count(1)
HOSTILE = "<script>document.title='stolen'</script><img src=x onerror=alert(1)> traffic forecasting on road networks"
FORMULAS = r"They need $n\log n$ signals for $\|x\|_2 \leq \frac{1}{2}$, from \$5 to \$6."
CONTENT = {
    "interests": {"primary": ["traffic forecasting on road networks"], "secondary": ["calibration of tree ensembles"]},
    "keywords": {"must_include": ["traffic"], "exclude": {"hard": ["protein"], "soft": []}},
    "preferred_authors": ["Nobody Writes"],
    "ranking": {"top_k": 4, "threshold": 0, "include_contrastive": False},
    "rewriting": {"target_levels": ["student"], "papers": 2},
}
QUESTION = {
    "question": "What predicts traffic better?",
    "rewritten_question": "traffic forecasting on road networks",
    "filters": {
        "sides": [
            {"name": "graphs", "query": "traffic forecasting on road networks"},
            {"name": "trees", "query": "calibration of tree ensembles"},
        ]
    },
    "generation_required": True,
}


@dataclass(frozen=True)
class Page:
    """A desk, the address at which its page is served, and the number of the process that serves it."""

    desk: Desk
    url: str
    process: int = 0

    @property
    def today(self) -> str:
        return f"{self.url}/p/{PROFILE}"


def fill(folder: Path) -> Desk:
    """Papers of three days, a year of rankings, an answer, a rewrite that waits and one that is done."""
    desk = Desk(folder)
    settings, warehouse = load_settings(desk.environment, folder), desk.warehouse
    records = week(DAYS)
    records += [
        paper(900, DAYS[2], HOSTILE, abstract=f"We propose traffic lights. {FORMULAS} " + "They see roads. " * 60)
    ]
    merge_papers(warehouse, [paper_from_mapping(record) for record in records])
    embedder = load_embedder(settings.embedding_model)
    stored = papers_from_table(papers_between(warehouse, None, None))
    texts = [embedded_text(each.title, each.abstract) for each in stored]
    keep_vectors(warehouse, [text_hash(text) for text in texts], embedder.encode(texts), model=embedder.name)
    for name, content in ((PROFILE, CONTENT), ("speech", SPEECH)):
        file = desk.profile(name, content)
        if name == PROFILE:
            file.with_name("questions.json").write_text(json.dumps([QUESTION]), encoding="utf-8")
        profile = load_profile(file.parent)
        keep_profile(warehouse, profile)
        for day in map(date.fromisoformat, DAYS):
            keep_candidates(warehouse, profile_day(warehouse, profile, day, settings=settings), settings=settings)
            keep_ranking(warehouse, profile, day, embedder=embedder, verifier=NOBODY, settings=settings, now=NOW)
    profile = load_profile(desk.folder / "profiles" / PROFILE)
    workspace = open_workspace(settings.model_copy(update={"cross_encoder": "similarity"}), {}, clock=lambda: NOW)
    keep_retrievals(replace(workspace, load_grader=lambda: similarity_grader(embedder)), profile, LATEST)
    _repeat_the_first_day(desk, days=362)
    waiting, done = wanted_items(warehouse, profile, LATEST)
    replace_set(warehouse, LATEST, PROFILE, [waiting, done], now=NOW)
    keep_attempt(warehouse, waiting.item, attempt(1, 70, "Roads are full. It costs 40 apples."))
    keep_attempt(warehouse, waiting.item, attempt(2, 87, "Roads are full and forecasts help. It costs apples."))
    keep_attempt(warehouse, done.item, attempt(1, 96, "Trees know when they are wrong."))
    finish(warehouse, done.item, outcome="passed", kept=1)
    add_missing(warehouse, [practice(number) for number in range(3)], collection=settings.archive)
    return desk


def attempt(number: int, score: int, text: str) -> Attempt:
    return Attempt(
        attempt=number,
        text=text,
        keywords=("traffic",),
        score=score,
        critique="Clear, but the apples are new.",
        unsupported=tuple(re.findall(r"\d+", text)),
        examples=(),
        model="invented",
        input_tokens=100,
        output_tokens=50,
        made_at=NOW + timedelta(minutes=number),
    )


def practice(number: int) -> BestPractice:
    return BestPractice(
        id=f"00000000-0000-4000-8000-00000000000{number}",
        text=f"Practice {number}: roads are rivers of cars.",
        original_text=f"We study road network {number}.",
        score=95 + number,
        target_level=("public", "student", "expert")[number],
        keywords=("roads", f"k{number}"),
        made_at=NOW,
        model_version="invented",
        paper_id=f"2603.0010{number}",
        category="cs.LG",
    )


def waiting_item(desk: Desk, made: Attempt | None = None, **changed: str) -> NewItem:
    """A further rewrite that waits for a decision on its first attempt, so that each test has its own; with `made` as
    its attempt and `changed` fields.
    """
    settings = desk.settings
    profile = load_profile(desk.folder / "profiles" / PROFILE)
    number = next(_NUMBERS)
    one = wanted_items(desk.warehouse, profile, LATEST)[0]
    more = replace(one, item=f"{one.item[:20]}{number}", **changed)  # type: ignore[arg-type]
    replace_set(desk.warehouse, LATEST - timedelta(days=500 + number), PROFILE, [more], now=NOW)
    keep_attempt(desk.warehouse, more.item, made or attempt(1, 86, "Roads are full."))
    assert settings.rewriting.asks <= 86 < settings.rewriting.passes
    return more


def _repeat_the_first_day(desk: Desk, *, days: int) -> None:
    """Rankings of a year before, in one go: the days that a reader has behind him."""
    with desk.warehouse.writing() as connection:
        for table in ("rankings", "ranking_sets", "candidates", "candidate_sets"):
            connection.execute(
                f"""
                insert into {table} by name
                select * exclude (back) replace (day - back::integer as day)
                from {table}, range(1, $days) as earlier(back)
                where day = $first::date and profile = $profile
                """,
                {"days": days + 1, "first": DAYS[0], "profile": PROFILE},
            )


@contextmanager
def served(desk: Desk, **environ: str) -> Iterator[Page]:
    """The page as a separate process, on a free port."""
    process = desk.start("desk", "--port", "0", **environ)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        yield Page(desk, found[0], process.pid)
    finally:
        end(process)
