"""Measure what a language model that grades the first papers of a list is worth, by its share of errors.

    python -m benchmarks.graded_lists --judged FOLDER [--judged FOLDER ...] --papers FILE [--seed 1] [--prices IN OUT]

The model is scripted: it gives the judged grades, and with the given probability another one; papers that nobody judged
count as off topic. Shown for each share of errors, over all readers of the judged sets: nDCG@10, the share of shown
papers that are relevant, the papers shown, the tokens sent and received for one list, which is made once a day, and
their money a day at --prices (of a million tokens sent and received). The model's reliability is not learned here:
every model counts as right in eight of ten cases.
"""

import argparse
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.evaluation.final_lists import OWN, _of_ranking, final_list, judged_day, newest_judged_day
from benchmarks.evaluation.judged_lists import GRADES, load_judged_lists, papers_or_home
from benchmarks.evaluation.list_quality import METRICS, list_figures
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm_config import Usage
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import load_settings
from paper_assets.stores.warehouse import Warehouse

ERRORS = (None, 0.0, 0.05, 0.1, 0.2, 0.3)  # None: no model
_LETTERS_A_TOKEN = 4


@dataclass
class ScriptedModel:
    """Grades papers by their titles, wrongly with a probability that depends on nothing but title and seed."""

    grades: Mapping[str, int]
    errors: float
    seed: int
    sent: int = 0  # tokens
    received: int = 0

    def __call__(self, *, system: str, user: str, schema: Any, **more: Any) -> Any:
        shown = [json.loads(line) for line in user.splitlines() if line.startswith('{"number"')]
        entries = [{"number": each["number"], "grade": self._grade(each["title"])} for each in shown]
        self.sent += (len(system) + len(user)) // _LETTERS_A_TOKEN
        self.received += len(json.dumps(entries)) // _LETTERS_A_TOKEN
        return SimpleNamespace(value=SimpleNamespace(papers=entries), usage=Usage(calls=1), model="scripted")

    def _grade(self, title: str) -> int:
        chance = random.Random(f"{title} {self.seed}")
        right = self.grades.get(title, 0)
        wrong = chance.random() < self.errors
        return chance.choice([grade for grade in GRADES if grade != right]) if wrong else right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judged", type=Path, action="append", required=True)
    parser.add_argument("--papers", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prices", type=float, nargs=2, default=(0.0, 0.0), metavar=("IN", "OUT"))
    given = parser.parse_args()
    settings = load_settings({}, Path())
    model, vectors = load_embedder(), dict[str, Any]()

    def embed(texts: list[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        vectors.update(zip(new, model.encode(new), strict=True)) if new else None
        return np.array([vectors[text] for text in texts])

    home = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    figures: dict[Any, list[Any]] = {errors: [] for errors in ERRORS}
    tokens: dict[Any, list[tuple[int, int]]] = {errors: [] for errors in ERRORS}
    with papers_or_home(given.papers, home, deadline=settings.store_deadline) as warehouse:
        for folder in given.judged:
            lists = load_judged_lists(folder)
            as_of, _ = newest_judged_day(warehouse, lists)
            for judged in lists.profiles:
                day = judged_day(
                    warehouse,
                    judged,
                    as_of=judged.as_of or as_of,
                    purpose=OWN,
                    embed=embed,
                    scoring=settings.scoring,
                    model=model.name,
                )
                titles = dict(
                    zip(*(day.candidates.column(name).to_pylist() for name in ("paper_id", "title")), strict=True)
                )
                grades = {titles[paper]: grade for paper, grade in day.judged.grades.items() if paper in titles}
                for errors in ERRORS:
                    scripted = ScriptedModel(grades, errors or 0.0, given.seed)
                    verifier = None if errors is None else Verifier(ask=scripted, model="scripted")
                    mode = day.options.interest_mode
                    ranking = final_list(day, mode=mode, embed=embed, scoring=settings.scoring, verifier=verifier)
                    figures[errors].append(list_figures(_of_ranking(day, ranking, by_relevance=False), day.judged))
                    tokens[errors].append((scripted.sent, scripted.received))
    print(f"{len(figures[None])} readers; errors: nDCG@10, right among the shown, papers shown; tokens, money a day")
    for errors in ERRORS:
        rows = dict(zip(METRICS, np.array(figures[errors]).T, strict=True))
        ndcg, right = np.nanmean(rows["ndcg@10"]), rows["right"].sum() / rows["shown"].sum()
        name = "no model" if errors is None else f"{errors:.0%}"
        used = np.mean(tokens[errors], axis=0)
        money = used @ given.prices / 1e6
        print(
            f"{name:>9} {ndcg:.3f} {right:.3f} {rows['shown'].mean():5.1f} {used[0]:,.0f} + {used[1]:,.0f} {money:.5f}"
        )


if __name__ == "__main__":
    main()
