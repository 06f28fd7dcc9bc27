"""How well critic and gate tell good rewrites from the same rewrites made wrong in one place.

    python -m benchmarks.mutate_and_judge --pairs FILE [--gate-only] [--each 3] [--seed 1]

FILE: a JSON object a line with `title`, `original`, `rewrite` and `level`, and `language` where it is not English;
without --pairs the finished rewrites of this home. Each rewrite is corrupted in every way of
paper_assets/evaluation/corruptions.py, and replaced by texts that no reader can use. Shown for each kind: what the gate
holds back, the AUC of the critic's total (1: every good rewrite scores above every corrupted one), and the share that
would pass critic and gate together. The critic is the one that is set up (LLM_CRITIC_PROVIDER, LLM_CRITIC_MODEL,
LLM_PROVIDER); with --gate-only nobody is asked. Exits with 1 where a text that no reader can use passes the gate, one
with a wrong number or name in more than five of a hundred cases, or where a good rewrite is held back.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from paper_assets.evaluation.corruptions import BY_MEANING, NUMBERS_AND_NAMES, Strangers
from paper_assets.paper import Paper
from paper_assets.rewriting.critic import Critique, total
from paper_assets.rewriting.faithfulness import unsupported
from paper_assets.rewriting.gate import stops
from paper_assets.rewriting.policy import LEVELS
from paper_assets.rewriting.prompts import critic_question
from paper_assets.rewriting.readability import lix
from paper_assets.rewriting.writing import Writer, new_item, open_writer
from paper_assets.settings import RewritingConfig, load_settings
from paper_assets.stores.rewrites import NewItem
from paper_assets.stores.warehouse import Warehouse

Good = tuple[NewItem, str]
_KOREAN = (
    "이 논문은 새로운 방법을 제안하고 그 결과를 보고한다. 저자들은 여러 실험에서 그 방법이 잘 동작함을 보였다. " * 12
)
_LEAST_HELD = 0.95
_NAMES = (
    "Google", "Microsoft", "Stanford", "Harvard", "Oxford", "Tsinghua", "DeepMind", "OpenAI", "Nvidia", "GPT-4",
    "BERT", "Llama", "Gemini", "ResNet", "ImageNet", "Wikipedia", "MIT", "Einstein", "Bayes", "Finland", "Brazil",
    "Seoul", "Toyota", "NASA", "Qwen", "Mistral", "Claude", "CLIP", "Whisper", "AlphaFold", "Amazon", "Princeton",
    "Zurich", "Siemens",
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """What became of one text; `score` None where no critic was asked."""

    held: bool
    score: int | None


UNUSABLE: Mapping[str, Callable[[NewItem, str], str]] = {
    "a refusal": lambda item, text: "I'm sorry, but I cannot help with rewriting this abstract.",
    "a few words": lambda item, text: "It works well.",
    "the original": lambda item, text: item.original_text,
    "another language": lambda item, text: _KOREAN,
    "nothing visible": lambda item, text: "\u200b\u2060" * 400,
}


def judge(item: NewItem, text: str, writer: Writer | None) -> Judged:
    """The gate's word on a text, and the critic's total if there is one."""
    found = unsupported(f"{item.title}\n{item.original_text}", text, language=item.language)
    held = bool(found.all or stops(item, text))
    if writer is None:
        return Judged(held, None)
    asked = critic_question(item, text, found, readability=lix(text, language=item.language))
    answer = writer.ask_critic(system=asked.system, user=asked.user, schema=Critique, prompt_version="mutate-and-judge")
    return Judged(held, total(answer.value))


def auc(good: Iterable[int], bad: Iterable[int]) -> float:
    """Chance that a good text scores above a corrupted one, a tie half."""
    above, below = np.array(list(good))[:, None], np.array(list(bad))[None, :]
    return float(((above > below) + 0.5 * (above == below)).mean())


def from_file(file: Path) -> list[Good]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    goods = []
    for number, row in enumerate(rows):
        level = next(level for level in LEVELS if level == row["level"])
        paper = Paper(
            paper_id=row.get("paper_id", f"{number}"), title=row["title"], abstract=row["original"], authors=()
        )
        goods.append((new_item(paper, level, language=row.get("language")), row["rewrite"]))
    return goods


def from_home() -> list[Good]:
    """Every finished rewrite of this home that the gate had nothing against."""
    from paper_assets.stores.rewrites import rewrite_items

    settings = load_settings(os.environ, Path.cwd())
    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    with warehouse.reading() as connection:
        rows = connection.execute("select item from rewrite_items where kept is not null order by item").fetchall()
    items = rewrite_items(warehouse, [item for (item,) in rows])
    return [(each, each.kept_attempt.text) for each in items if each.kept_attempt and not each.kept_attempt.stopped]


def corrupted(goods: list[Good], *, each: int, chance: random.Random) -> Mapping[str, list[Good]]:
    strangers = Strangers(
        names=_NAMES,
        texts=[text for _, text in goods],
    )
    made: dict[str, list[Good]] = {
        kind: [(item, make(item, text)) for item, text in goods] for kind, make in UNUSABLE.items()
    }
    for kind, corrupt in {**NUMBERS_AND_NAMES, **BY_MEANING}.items():
        texts = {(item.item, changed): (item, changed) for item, text in goods for _ in range(each)
                 if (changed := corrupt(text, strangers, chance)) is not None}  # fmt: skip
        made[kind] = list(texts.values())
    return {kind: texts for kind, texts in made.items() if texts}


def main() -> int:
    """Corrupt, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--gate-only", action="store_true")
    parser.add_argument("--each", type=int, default=3, help="corruptions of a kind made of one rewrite")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    config = RewritingConfig()
    goods = from_file(asked.pairs) if asked.pairs else from_home()
    writer = None
    if not asked.gate_only:
        writer = open_writer(os.environ, archive=None, cache=None, clock=lambda: datetime.now(UTC), config=config)
    good = [judge(item, text, writer) for item, text in goods]
    held = sum(one.held for one in good)
    failed = held > 0
    print(f"{len(goods)} good rewrites, of which the gate holds back {held}")
    print(f"{'corruption':24} {'texts':>6} {'held back':>10} {'AUC':>6} {'would pass':>11}")
    everything: list[Judged] = []
    for kind, texts in corrupted(goods, each=asked.each, chance=random.Random(asked.seed)).items():
        bad = [judge(item, text, writer) for item, text in texts]
        everything += bad
        if kind not in BY_MEANING:
            failed |= sum(one.held for one in bad) < (1 if kind in UNUSABLE else _LEAST_HELD) * len(bad)
        print(_line(kind, good, bad, config))
    print(_line("all", good, everything, config))
    return int(failed)


def _line(kind: str, good: list[Judged], bad: list[Judged], config: RewritingConfig) -> str:
    held = sum(one.held for one in bad) / len(bad)
    scores = [one.score for one in bad if one.score is not None]
    passes = sum(not one.held and (one.score is None or one.score >= config.passes) for one in bad) / len(bad)
    told = f"{auc([one.score for one in good if one.score is not None], scores):6.3f}" if scores else f"{'–':>6}"
    return f"{kind:24} {len(bad):6} {held:10.1%} {told} {passes:11.1%}"


if __name__ == "__main__":
    sys.exit(main())
