"""The lists that judged readers get when they write their interests in other words.

    python -m benchmarks.wordings --lists DIR [--lists DIR] --papers FILE [--wordings FILE]

Each reader of `wordings.toml` is ranked by coefficients that are fitted to the other readers' interests as they are
(leave one out), and the list as it is shown is judged by the same grades. The first row has the interests as they are.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.evaluation.final_lists import JudgedDay, judged_day, judged_lists_of, newest_judged_day
from benchmarks.evaluation.fitting import held_out_fits, parts_of
from benchmarks.evaluation.judged_lists import load_judged_lists, scratch_warehouse
from benchmarks.evaluation.list_quality import METRICS, list_figures
from paper_assets.models.embedder import load_embedder
from paper_assets.ranking.calibration import Calibration
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.embeddings import remembered_vectors

WORDINGS = Path(__file__).with_name("wordings.toml")
DEADLINE = 600.0
LEVELS = ("primary", "secondary", "exploratory")


def reworded(day: JudgedDay, texts: Sequence[str]) -> JudgedDay:
    """Return the day of a reader whose interests, level after level, are these texts. Raises ValueError unless there
    is one for each.
    """
    content = day.judged.profile.content
    rest, levels = iter(texts), {}
    for level in LEVELS:
        levels[level] = [text for _, text in zip(getattr(content.interests, level), rest, strict=False)]
    if sum(map(len, levels.values())) != len(texts) or any(
        len(levels[level]) != len(getattr(content.interests, level)) for level in LEVELS
    ):
        raise ValueError(f"{day.judged.name} has another number of interests than {len(texts)}")
    interests = content.interests.model_copy(update=levels)
    profile = replace(day.judged.profile, content=content.model_copy(update={"interests": interests}))
    return replace(day, judged=replace(day.judged, profile=profile))


def figures_of(days: Sequence[JudgedDay], fits: Mapping[str, Calibration], embed: Embed) -> dict[str, float]:
    """Return the means of the METRICS of the lists; papers shown and right ones are sums."""
    rows = []
    for day in days:
        lists = judged_lists_of(
            day, ["hybrid"], embed=embed, scoring=ScoringConfig(), calibration=fits[day.judged.name]
        )
        rows.append(list_figures(lists["hybrid"], day.judged))
    table = np.array(rows)
    means = dict(zip(METRICS, np.nanmean(table, axis=0).tolist(), strict=True))
    return means | {name: float(np.nansum(table[:, METRICS.index(name)])) for name in ("shown", "right", "empty")}


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=Path, required=True, action="append")
    parser.add_argument("--papers", type=Path, required=True)
    parser.add_argument("--wordings", type=Path, default=WORDINGS)
    asked = parser.parse_args()
    wordings = tomllib.loads(asked.wordings.read_text(encoding="utf-8"))
    papers = list({paper.paper_id: paper for paper in read_papers(asked.papers)}.values())
    model, scoring, days = load_embedder(), ScoringConfig(), []
    with scratch_warehouse(papers, deadline=DEADLINE) as warehouse:

        def embed(texts: list[str]) -> np.ndarray:
            return remembered_vectors(warehouse, texts, model=model.name, encode=model.encode)

        for lists in map(load_judged_lists, asked.lists):
            as_of, _ = newest_judged_day(warehouse, lists)
            days += [
                judged_day(
                    warehouse,
                    judged,
                    as_of=as_of,
                    purpose="general",
                    embed=embed,
                    scoring=scoring,
                    model=model.name,
                    top_k=10,
                )
                for judged in lists.profiles
                if judged.name in wordings
            ]
        fits = held_out_fits({day.judged.name: parts_of(day, embed=embed, scoring=scoring) for day in days})
        names = dict.fromkeys(name for known in wordings.values() for name in known)
        print("wording     readers  P@5   nDCG@10  right of shown  empty")
        for name in ("as it is", *names):
            asked_days = [day if name == "as it is" else reworded(day, wordings[day.judged.name][name]) for day in days]
            found = figures_of(asked_days, fits, embed)
            print(
                f"{name:10}  {len(asked_days):7}  {found['precision@5']:.3f}  {found['ndcg@10']:7.3f}"
                f"  {found['right']:4.0f} of {found['shown']:4.0f}  {found['empty']:9.0f}"
            )


if __name__ == "__main__":
    main()
