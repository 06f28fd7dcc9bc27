"""An actor and a critic played by the loopback LLM, and a writer that asks them.

    with loopback_llm(Play(70, 88, 96)) as server:
        writer = writer_of(server)

The number of the attempt is read from the prompt, as a model would: nothing depends on the order of the requests.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from paper_assets.paper import Paper
from paper_assets.rewriting.best_practices import Archive
from paper_assets.rewriting.policy import Level
from paper_assets.rewriting.prompts import SUBSCORES
from paper_assets.rewriting.writing import Writer, new_item, open_writer
from paper_assets.settings import RewritingConfig
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rewrite_progress import open_items
from paper_assets.stores.rewrites import NewItem
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.support import CONTROLS
from tests.loopback_llm import Kept, LoopbackLLM, Request, Says, Step, says

NOW = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)

PAPER = Paper(
    paper_id="2603.00001",
    title="Counting Sheep with Half the Memory",
    abstract="We count 1,000 sheep with a sieve. It needs 50% of the memory of the FlockNet baseline.",
    authors=("Ada Moreau",),
    published=datetime(2026, 3, 2, 9, tzinfo=UTC),
    categories=("cs.LG",),
    primary_category="cs.LG",
)


DRAFTS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
]  # no numbers: the original has none of them


def draft(attempt: int) -> str:
    """What every text of this attempt holds."""
    return f"draft {DRAFTS[attempt - 1]}"


def verdict(score: int, advice: str = "", faults: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """A critic's answer whose subscores make this total."""
    points = [score // 5 + (place < score % 5) for place in range(5)]
    return {"faults": list(faults), **dict(zip(SUBSCORES, points, strict=True)), "advice": advice}


def is_critic(request: Request) -> bool:
    return "faults" in (request.schema or {}).get("properties", {})


def inside(name: str, text: str) -> str | None:
    """Return the text between the marks of a prompt."""
    found = re.search(rf"^<{name} (\w+)>\n(.*?)\n</{name} \1>$", text, re.MULTILINE | re.DOTALL)
    return found[2] if found else None


def is_check(request: Request) -> bool:
    return "pairs" in (request.schema or {}).get("properties", {})


def writing(server: LoopbackLLM) -> list[Request]:
    """The requests to actor and critic, without the checks of sentences."""
    return [request for request in server.requests if not is_check(request)]


def checked(
    request: Request, *, wrong: Sequence[str] = (), explains: Sequence[str] = (), unsure: Sequence[str] = ()
) -> Says:
    """A checker that knows the controls, and finds every sentence supported but those with these words."""
    pairs = [json.loads(line) for line in request.turns[0].splitlines() if line.startswith('{"number"')]
    controls = {text: answer for text, _, answer in CONTROLS}

    def answer(pair: Mapping[str, Any]) -> str:
        text = pair["sentence"]
        found = "no" if any(words in text for words in wrong) else "yes"
        return controls.get(text) or ("explains" if any(words in text for words in explains) else found)

    known = [each for each in pairs if not any(words in each["sentence"] for words in unsure)]
    return says(
        {"pairs": [{"number": each["number"], "answer": answer(each), "words": each["passage"]} for each in known]}
    )


def attempt_of(request: Request) -> int:
    """Which attempt an actor is asked for, or a critic is shown."""
    user = request.turns[0]  # an answer that did not fit adds turns
    if is_critic(request):
        return 1 + DRAFTS.index(re.findall(r"draft (\w+)", inside("rewrite", user) or "")[0])
    found = re.search(r"^Your attempt (\d+) got", user, re.MULTILINE)
    return int(found[1]) + 1 if found else 1


@dataclass
class Play:
    """Answers every request; `scores` are those of attempts 1, 2, …, `steps` replace the n-th answer (from 1)."""

    scores: Sequence[int]
    steps: Mapping[int, Step] = field(default_factory=dict)
    text: str = "A small memory is enough to count sheep"

    def __init__(self, *scores: int, steps: Mapping[int, Step] | None = None, **more: Any) -> None:
        self.scores, self.steps, self.asked = scores, steps or {}, 0
        self.text = more.get("text", self.text)
        self.unsure: Sequence[str] = more.get("unsure", ())

    def __call__(self, request: Request) -> Step:
        if is_check(request):
            return checked(request, unsure=self.unsure)
        self.asked += 1
        if self.asked in self.steps:
            return self.steps[self.asked]
        attempt = attempt_of(request)
        if is_critic(request):
            return says(verdict(self.scores[attempt - 1], f"critique of {draft(attempt)}"))
        return says({"text": f"{self.text}, {draft(attempt)}.", "keywords": ["sheep", "memory"]})


def writer_of(server: LoopbackLLM, *, archive: Archive | None = None, **more: Any) -> Writer:
    """A writer that asks the server."""
    return open_writer(
        {**server.environ("ollama"), **more.pop("environ", {})},
        archive=archive,
        cache=more.pop("cache", None) or Kept(),
        clock=more.pop("clock", lambda: NOW),
        config=more.pop("numbers", RewritingConfig()),
    )


def opened(warehouse: Warehouse, *papers: Paper, level: Level = "public") -> list[NewItem]:
    """The papers stored, and an item opened for each."""
    merge_papers(warehouse, papers or [PAPER])
    items = [new_item(paper, level) for paper in papers or [PAPER]]
    open_items(warehouse, items, now=NOW)
    return items


def numbered(count: int) -> list[Paper]:
    """Papers of the same day, whose texts differ."""
    return [
        replace(
            PAPER, paper_id=f"2603.{number:05d}", abstract=f"We count sheep in flock {number} with half the memory."
        )
        for number in range(1, count + 1)
    ]
