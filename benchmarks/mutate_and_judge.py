"""Measure how well critic and checks separate good rewrites from the same rewrites corrupted in one place.

    python -m benchmarks.mutate_and_judge --data PAPERS-FOLDER [--half 1] [--each 3] [--seed 1] [--show]
    python -m benchmarks.mutate_and_judge --pairs FILE [--gate-only] [--most-calls 200] [--plan]

--data: the rewrites of `benchmarks/rewrites.jsonl`, written for papers of PAPERS-FOLDER (`papers.jsonl.gz`); --half 0
are those on which the rules were developed, --half 1 those held out, separated by a hash of the paper's
id. FILE: a JSON object a line with `title`, `original`, `rewrite` and `level`, and `language` where it is not English;
with neither the finished rewrites of this home. Each rewrite is corrupted in every way of
benchmarks/corruptions.py, and replaced by unusable texts. Shown for each kind: what the gate
holds back, what it holds back or has a question about (which is not archived without an answer), the AUC of the
critic's total (1: every good rewrite scores above every corrupted one), and the share that would pass critic and gate
together. The critic is the one that is set up (LLM_CRITIC_PROVIDER, LLM_CRITIC_MODEL,
LLM_PROVIDER). What asking it costs is printed first: it is shown at most --most-calls texts, all good ones and of each
kind as many; with --plan that is all, with --gate-only the critic is not called. Exits with 1 where an unusable text
passes the checks, where code neither stops nor asks about a wrong number or name in more than five of a hundred cases,
or where a good rewrite is held back.
"""

import argparse
import gzip
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corruptions import BY_MEANING, NUMBERS_AND_NAMES, Strangers
from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import Budget, critic_config, llm_config
from paper_assets.paper import Paper
from paper_assets.rewriting.gate import stop_reasons
from paper_assets.rewriting.measures import lix, topic_fit
from paper_assets.rewriting.policy import LEVELS
from paper_assets.rewriting.prompts import Critique, critic_question, total
from paper_assets.rewriting.writing import new_item
from paper_assets.settings import RewritingConfig, load_settings
from paper_assets.stores.rewrites import NewItem
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.support import missing

Good = tuple[NewItem, str]
_KOREAN = (
    "이 논문은 새로운 방법을 제안하고 그 결과를 보고한다. 저자들은 여러 실험에서 그 방법이 잘 동작함을 보였다. " * 12
)
_LEAST_HELD = 0.95
_REWRITES = Path(__file__).with_name("rewrites.jsonl")
_SHOWN = 3
_LETTERS_A_TOKEN = 4
_ANSWER = 400  # tokens of a critique
_NAMES = (
    "Google", "Microsoft", "Stanford", "Harvard", "Oxford", "Tsinghua", "DeepMind", "OpenAI", "Nvidia", "GPT-4",
    "BERT", "Llama", "Gemini", "ResNet", "ImageNet", "Wikipedia", "MIT", "Einstein", "Bayes", "Finland", "Brazil",
    "Seoul", "Toyota", "NASA", "Qwen", "Mistral", "Claude", "CLIP", "Whisper", "AlphaFold", "Amazon", "Princeton",
    "Zurich", "Siemens",
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """What became of one text; `score` None where no critic was asked, `why` empty where the gate lets it through;
    `asks`: whether code found a number or name missing.
    """

    why: tuple[str, ...]
    score: int | None = None
    asks: bool = False

    @property
    def held(self) -> bool:
        return bool(self.why)


@dataclass
class Critic:
    """Whom to ask, how many texts may be shown to it, and why it was asked no more."""

    ask: Callable[..., Any]
    name: str
    left: int
    fault: str = ""


UNUSABLE: Mapping[str, Callable[[NewItem, str], str]] = {
    "a refusal": lambda item, text: "I'm sorry, but I cannot help with rewriting this abstract.",
    "a few words": lambda item, text: "It works well.",
    "the original": lambda item, text: item.original_text,
    "another language": lambda item, text: _KOREAN,
    "nothing visible": lambda item, text: "\u200b\u2060" * 400,
}


def held_back(item: NewItem, text: str, embedder: Embedder | None, originals: Mapping[str, str]) -> tuple[str, ...]:
    """Why the gate holds a text back. `originals`: by paper; the nearest three stand for examples that were shown."""
    others = {paper: original for paper, original in originals.items() if paper != item.paper_id}
    if embedder and others:
        vectors = embedder.encode([item.original_text, *others.values()])
        near = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")[:_SHOWN]
        others = {name: others[name] for name in np.array(list(others))[near]}
    fits = topic_fit(embedder, title=item.title, original=item.original_text, text=text, others=others)
    return stop_reasons(item, text, fit=fits)


def asks(item: NewItem, text: str) -> bool:
    """Whether code did not find a number or name of the text in the original."""
    return bool(missing(text, f"{item.title}\n{item.original_text}"))


def criticised(critic: Critic | None, item: NewItem, text: str) -> int | None:
    """The critic's total; None where it may not be asked, or could not answer."""
    if critic is None or critic.fault or critic.left <= 0:
        return None
    asked = critic_question(item, text, readability=lix(text, language=item.language))
    critic.left -= 1
    try:
        return total(
            critic.ask(system=asked.system, user=asked.user, schema=Critique, prompt_version="mutate-and-judge").value
        )
    except LLMError as error:
        critic.fault = str(error)
        return None


def open_critic(environ: Mapping[str, str], *, most_calls: int) -> Critic | None:
    """The critic that is configured; None without one. It has a separate budget."""
    try:
        chosen = critic_config(environ, actor=llm_config(environ))
    except LLMConfigError:
        return None
    budget = Budget(calls=2 * most_calls, tokens=chosen.budget_tokens)  # an answer may be requested again once
    return Critic(ask=LanguageModel(config=chosen, budget=budget).ask, name=chosen.model, left=most_calls)


def plan(goods: Sequence[Good], bad: Mapping[str, list[Good]], critic: Critic) -> str:
    """What the critic is going to be asked, and about how much that costs."""
    texts = [*goods, *(text for texts in bad.values() for text in texts)]
    asked = min(critic.left, len(texts))
    letters = sum(
        len(question.system) + len(question.user) for question in (critic_question(item, text) for item, text in texts)
    )
    tokens = asked * (letters / len(texts) / _LETTERS_A_TOKEN + _ANSWER)
    return f"critic: {critic.name}, at most {asked} questions, about {tokens:,.0f} tokens"


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


def from_folder(folder: Path) -> list[Good]:
    """The rewrites that lie beside this file, with the papers that they were written for."""
    wanted = [json.loads(line) for line in _REWRITES.read_text(encoding="utf-8").splitlines()]
    ids = {row["paper_id"] for row in wanted}
    with gzip.open(folder / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        papers = {paper["id"]: paper for paper in map(json.loads, lines) if paper["id"] in ids}
    return [
        (
            new_item(
                Paper(paper_id=paper["id"], title=paper["title"], abstract=paper["abstract"], authors=()), row["level"]
            ),
            row["rewrite"],
        )
        for row in wanted
        if (paper := papers.get(row["paper_id"]))
    ]


def half_of(paper_id: str) -> int:
    """0: the gate's rules were found on it; 1: held out."""
    return int(sha256(paper_id.encode()).hexdigest(), 16) % 2


def from_home() -> list[Good]:
    """Every finished rewrite of this home that the gate had nothing against."""
    from paper_assets.stores.rewrites import rewrite_items

    settings = load_settings(os.environ, Path.cwd())
    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    rows = warehouse.rows("select item from rewrite_items where kept is not null order by item")
    items = rewrite_items(warehouse, [item for (item,) in rows])
    return [(each, each.kept_attempt.text) for each in items if each.kept_attempt and not each.kept_attempt.stopped]


def corrupted(goods: Sequence[Good], *, each: int, chance: random.Random) -> Mapping[str, list[Good]]:
    strangers = {  # of other papers: another level's rewrite of the same one does not count
        item.paper_id: Strangers(names=_NAMES, texts=[text for of, text in goods if of.paper_id != item.paper_id])
        for item, _ in goods
    }
    made: dict[str, list[Good]] = {
        kind: [(item, make(item, text)) for item, text in goods] for kind, make in UNUSABLE.items()
    }
    for kind, corrupt in {**NUMBERS_AND_NAMES, **BY_MEANING}.items():
        texts = {(item.item, changed): (item, changed) for item, text in goods for _ in range(each)
                 if (changed := corrupt(text, strangers[item.paper_id], chance)) is not None}  # fmt: skip
        made[kind] = list(texts.values())
    return {kind: texts for kind, texts in made.items() if texts}


def measure(
    goods: Sequence[Good],
    bad: Mapping[str, list[Good]],
    *,
    embedder: Embedder | None,
    critic: Critic | None,
    config: RewritingConfig,
    show: bool = False,
) -> int:
    """Judge, print the table; 1 where a target is missed."""
    originals = {item.paper_id: item.original_text for item, _ in goods}
    good = [Judged(held_back(*each, embedder, originals), criticised(critic, *each), asks(*each)) for each in goods]
    failed = any(one.held for one in good)
    print(f"{len(goods)} good rewrites, of which the gate holds back {sum(one.held for one in good)} "
          f"and has questions about {sum(one.asks and not one.held for one in good)}")  # fmt: skip
    for (item, _), one in zip(goods, good, strict=True):
        if one.held:
            print(f"   held back: {item.paper_id} {item.target_level}: {one.why}")
    print(f"{'corruption':24} {'texts':>6} {'held back':>10} {'or asked':>9} {'AUC':>6} {'would pass':>11}")
    everything: list[Judged] = []
    share = critic.left // len(bad) if critic else 0  # of each kind as many
    for kind, texts in bad.items():
        judged = [
            Judged(
                held_back(*text, embedder, originals),
                criticised(critic if place < share else None, *text),
                asks(*text),
            )
            for place, text in enumerate(texts)
        ]
        everything += judged
        if kind not in BY_MEANING:
            failed |= sum(one.held or one.asks for one in judged) < (1 if kind in UNUSABLE else _LEAST_HELD) * len(
                judged
            )
        print(_line(kind, good, judged, config))
        for (item, text), one in zip(texts, judged, strict=True):
            if show and not (one.held or one.asks):
                print(f"   missed: {item.paper_id} {item.target_level}: {_changed(goods, item, text)}")
    print(_line("all", good, everything, config))
    if critic and critic.fault:
        print(f"critic: asked no more, {critic.fault}")
    return int(failed)


def main() -> int:
    """Corrupt, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path)
    source.add_argument("--pairs", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--gate-only", action="store_true")
    parser.add_argument("--plan", action="store_true", help="say what the critic would cost, and end")
    parser.add_argument("--most-calls", type=int, default=200, help="texts that the critic is shown")
    parser.add_argument("--each", type=int, default=3, help="corruptions of a kind made of one rewrite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what the gate let through")
    asked = parser.parse_args()
    goods = from_folder(asked.data) if asked.data else from_file(asked.pairs) if asked.pairs else from_home()
    goods = [good for good in goods if asked.half in (None, half_of(good[0].paper_id))]
    if not goods:
        print("there are no rewrites to corrupt")
        return 1
    bad = corrupted(goods, each=asked.each, chance=random.Random(asked.seed))
    critic = None if asked.gate_only else open_critic(os.environ, most_calls=asked.most_calls)
    print(plan(goods, bad, critic) if critic else "critic: not measured, no model configured", flush=True)
    if asked.plan:
        return 0
    return measure(goods, bad, embedder=load_embedder(), critic=critic, config=RewritingConfig(), show=asked.show)


def _changed(goods: Sequence[Good], item: NewItem, text: str) -> str:
    """The place at which a text differs from the good one that it is nearest to."""
    source = max((good for of, good in goods if of.item == item.item), key=lambda good: good[:20] == text[:20])
    at = next((at for at, (one, other) in enumerate(zip(source, text, strict=False)) if one != other), 0)
    return f"{source[max(0, at - 40) : at + 30]!r} -> {text[max(0, at - 40) : at + 30]!r}"


def _line(kind: str, good: list[Judged], bad: list[Judged], config: RewritingConfig) -> str:
    held = sum(one.held for one in bad) / len(bad)
    scores = [one.score for one in bad if one.score is not None]
    passes = sum(not one.held and (one.score is None or one.score >= config.passes) for one in bad) / len(bad)
    area = f"{auc([one.score for one in good if one.score is not None], scores):6.3f}" if scores else f"{'–':>6}"
    asked = sum(one.held or one.asks for one in bad) / len(bad)
    return f"{kind:24} {len(bad):6} {held:10.1%} {asked:9.1%} {area} {passes:11.1%}"


if __name__ == "__main__":
    sys.exit(main())
