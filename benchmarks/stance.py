"""Compare sides by stance with sides by wording on labelled claims: documents on the wrong side, or on two.

    python -m benchmarks.stance --data PERSPECTRUM-FOLDER [--claims 100] [--per-side 5] [--model]

A set as `benchmarks.balanced_quality` reads it, with the sides SUPPORT and UNDERMINE. All its sentences are searched
for each claim. The judge is a language model behind a real HTTP server on this machine, called through the client like
any other: it is scripted to answer what the set says (a sentence that the set does not judge for the claim is
neutral), so that what is measured is everything but the model's own judgement: batches, parsing, quotations, sides.
With --model the judge is the one that is configured here instead (`LLM_PROVIDER`, `PAPER_ASSETS_STANCE_MODEL`), which
is paid for. Beside it two sides by wording, "arguments for …" and "arguments against …".

wrong side: of the judged documents on a side, the share that the set puts on the other one only. overlap: the share of
a side's documents that are on the other one too; warned: of the claims whose sides overlap by more than half, the
share with a warning.
"""

import argparse
import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._labelled import as_documents, filled_corpus
from benchmarks.evaluation.labelled_set import LabelledSet, load_labelled_set
from paper_assets.models.llm_config import llm_config
from paper_assets.retrieval.answers import retrieve_balanced
from paper_assets.retrieval.findings import Caller, Findings
from paper_assets.retrieval.plan import parse_plan
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.stance import StanceJudge
from paper_assets.retrieval.stance_judges import open_judge, open_llm_judge
from paper_assets.settings import load_settings
from tests.loopback_llm import Request, Says, loopback_llm, says

SIDES = {"SUPPORT": "supports", "UNDERMINE": "contradicts"}
Gold = Mapping[str, Mapping[str, str]]  # claim -> text -> stance


@dataclass
class Figures:
    """Counted over the claims."""

    wrong: int = 0
    judged: int = 0
    shown: int = 0
    on_two: int = 0
    mostly_the_same: int = 0
    warned: int = 0
    warned_for_nothing: int = 0
    claims: int = 0
    right: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def gold_of(labelled: LabelledSet) -> Gold:
    """What the set says of each claim; a text that it puts on both sides is on neither."""
    texts = [document.text for document in labelled.documents]
    gold: dict[str, dict[str, str]] = {}
    for query in labelled.judged_queries:
        known, sides = labelled.judgements[query.query_id], defaultdict(set)
        for position, grade, side in zip(known.positions, known.grades, known.interests, strict=True):
            if grade > 0 and side in SIDES:
                sides[" ".join(texts[position].split())].add(SIDES[side])
        gold[" ".join(query.text.split())] = {text: next(iter(own)) for text, own in sides.items() if len(own) == 1}
    return gold


def answers(gold: Gold) -> Callable[[Request], Says]:
    """The scripted model: reads the prompt as any model would, and answers what the set says."""

    def answer(request: Request) -> Says:
        [prompt] = request.turns[:1]
        claim = json.loads(prompt.splitlines()[0].removeprefix("Claim: "))
        passages = [json.loads(line) for line in prompt.splitlines() if re.match(r'\{"id": ', line)]
        labels = [
            {
                "id": each["id"],
                "stance": (stance := gold[claim].get(each["text"], "neutral")),
                "sentence": "" if stance == "neutral" else each["text"],
            }
            for each in passages
        ]
        return says({"labels": labels})

    return answer


@contextmanager
def scripted_judge(gold: Gold) -> Iterator[StanceJudge]:
    """Return a judge that uses the scripted model over HTTP, with capacity for every claim."""
    with loopback_llm(answers(gold)) as server:
        environ = server.environ("openai") | {
            "PAPER_ASSETS_LLM_CALLS": "1000000",
            "PAPER_ASSETS_LLM_TOKENS": "1000000000",
        }
        llm_config(environ)  # says at once what is wrong with it
        yield open_llm_judge(environ)


def count(figures: Figures, sides: Mapping[str, Findings], known: Mapping[str, str]) -> None:
    """Add one claim: `sides` by stance, `known` stances by text."""
    figures.claims += 1
    ids = {stance: {each.doc_id for each in side.documents} for stance, side in sides.items()}
    shared = set.intersection(*ids.values())
    fewest = min(map(len, ids.values()))
    figures.on_two += len(shared)
    same = bool(fewest) and len(shared) > fewest / 2
    warned = any("also are" in warning for side in sides.values() for warning in side.warnings)
    figures.mostly_the_same += same
    figures.warned += same and warned
    figures.warned_for_nothing += warned and not same
    for stance, side in sides.items():
        found = [known.get(" ".join(each.content.split())) for each in side.documents]
        figures.shown += len(found)
        figures.judged += sum(each is not None for each in found)
        figures.wrong += sum(each not in (None, stance) for each in found)
        expected = sum(each == stance for each in known.values())
        if expected:
            figures.right[stance].append(sum(each == stance for each in found) / min(expected, side.wanted))


def line(name: str, figures: Figures) -> str:
    """One line of the table."""
    right = "  ".join(
        f"found of {stance} {sum(each) / len(each):.2f}" for stance, each in sorted(figures.right.items())
    )
    return (
        f"{name:11} {figures.claims} claims, {figures.shown} documents on sides, {figures.judged} judged: "
        f"wrong side {figures.wrong / max(figures.judged, 1):.3f}  "
        f"on two sides {figures.on_two}  overlap {2 * figures.on_two / max(figures.shown, 1):.2f}  "
        f"mostly the same {figures.mostly_the_same}, warned {figures.warned}, "
        f"warned for nothing {figures.warned_for_nothing}  {right}"
    )


def main() -> None:
    """Fill a warehouse, ask each claim both ways, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--per-side", type=int, default=5)
    parser.add_argument("--model", action="store_true", help="ask the model that is configured here")
    given = parser.parse_args()
    labelled, everything = load_labelled_set(given.data), {"stance": Figures(), "wording": Figures()}
    gold = gold_of(labelled)
    asked = [each for each in labelled.judged_queries if each.record.get("split", "train") == "train"]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_things:
        corpus = filled_corpus(Path(folder), as_documents(labelled.documents))
        if given.model:
            judge = open_judge(load_settings(os.environ, Path.cwd()), os.environ, corpus.warehouse)
        else:
            judge = open_things.enter_context(scripted_judge(gold))
        for query in asked[: given.claims]:
            claim = " ".join(query.text.split())
            for name, sides in by_both_ways(corpus, claim, judge, per_side=given.per_side).items():
                count(everything[name], sides, gold[claim])
    for name, figures in everything.items():
        print(line(name, figures), flush=True)


def by_both_ways(corpus: Corpus, claim: str, judge: StanceJudge, *, per_side: int) -> dict[str, dict[str, Findings]]:
    """The sides of a claim by stance, and by two wordings, each by the stance it is meant for."""

    def retrieved(sides: list[Mapping[str, Any]]) -> dict[str, Findings]:
        record = {
            "rewritten_question": claim,
            "parameters": {"k_per_side": per_side},
            "filters": {"sides": sides},
            "data_type": ["fulltext"],
        }
        plan = parse_plan(record, source="the benchmark", default_sides=())
        found = retrieve_balanced(corpus, plan, caller=Caller(), judge=judge)
        if len(found) < len(sides):
            raise SystemExit(f"unjudged: {found[0].warnings[0]}")
        return {str(side.side): side for side in found}

    return {
        "stance": retrieved([{"name": stance, "stance": stance} for stance in SIDES.values()]),
        "wording": retrieved(
            [
                {"name": "supports", "query": f"arguments for: {claim}"},
                {"name": "contradicts", "query": f"arguments against: {claim}"},
            ]
        ),
    }


if __name__ == "__main__":
    main()
