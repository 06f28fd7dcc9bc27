"""Interest modes on profiles made from a labelled set of queries, because no set of real profiles is available.

    python -m benchmarks.interest_modes --data FOLDER [--rounds 4]

Mixed: four queries drawn at random are one profile (two primary, one secondary, one exploratory interest); right
answers are those of all four. Liked: three right answers of a query are the papers it likes, the others are to be
found. Baseline: seed mode. Intervals are too narrow where rounds share queries. The queries as they are:
`python -m benchmarks.evaluate FOLDER`.
"""

import argparse
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.evaluation.labelled_set import Judgements, LabelledSet, Query, load_labelled_set
from benchmarks.evaluation.metrics import EvaluationConfig, compare, judge, means
from benchmarks.evaluation.rankers import Embed, modes
from paper_assets.models.embedder import load_embedder
from paper_assets.profile import Interests
from paper_assets.settings import ScoringConfig, load_settings
from paper_assets.stores.embeddings import remembered_vectors
from paper_assets.stores.warehouse import Warehouse

LEVELS = (2, 1, 1)  # interests in a mixed profile
LIKED = 3


def mixed(labelled: LabelledSet, round_: int) -> Iterable[tuple[Query, Judgements]]:
    """Profiles of several queries each; every query is in one of them, a remainder in none."""
    queries = labelled.judged_queries
    order = np.random.default_rng(round_).permutation(len(queries)).tolist()
    for start in range(0, len(order) - sum(LEVELS) + 1, sum(LEVELS)):
        part = [queries[at] for at in order[start : start + sum(LEVELS)]]
        texts = iter(query.text.strip()[:1000] for query in part)
        levels = [[next(texts) for _ in range(count)] for count in LEVELS]
        interests = Interests(primary=levels[0], secondary=levels[1], exploratory=levels[2])
        known = [labelled.judgements[query.query_id] for query in part]
        yield (
            replace(part[0], query_id=f"{round_}-{start}", interests=interests),
            Judgements(
                positions=np.concatenate([one.positions for one in known]),
                grades=np.concatenate([one.grades for one in known]),
                interests=tuple(query.text for query, one in zip(part, known, strict=True) for _ in one.grades),
            ),
        )


def liking(labelled: LabelledSet, round_: int) -> Iterable[tuple[Query, Judgements]]:
    """The queries that have right answers to spare, each with some of them as liked papers."""
    chance = np.random.default_rng(round_)
    for query in labelled.judged_queries:
        known = labelled.judgements[query.query_id]
        right = np.unique(known.positions[known.grades > 0])
        if len(right) >= LIKED + 2:
            liked = tuple(labelled.documents[at].doc_id for at in chance.choice(right, LIKED, replace=False))
            yield replace(query, query_id=f"{round_}-{query.query_id}", liked=liked), known


def made(labelled: LabelledSet, profiles: Iterable[tuple[Query, Judgements]]) -> LabelledSet:
    """The set with these profiles in place of its queries."""
    pairs = list(profiles)
    return replace(
        labelled,
        queries=tuple(query for query, _ in pairs),
        judgements={query.query_id: judgements for query, judgements in pairs},
    )


def report(name: str, labelled: LabelledSet, embed: Embed) -> None:
    """Every mode's figures, and how sure the difference to seed mode is."""
    judging = EvaluationConfig()
    judged = {
        mode: judge(labelled, ranker(), judging=judging)
        for mode, ranker in modes(labelled, embed=embed, scoring=ScoringConfig()).items()
    }
    print(f"\n{name}: {len(labelled.queries)} profiles, {len(labelled.documents):,} documents")
    for mode, outcome in judged.items():
        figures = {mean.metric: mean for mean in means(outcome, judging=judging) if mean.queries}
        line = "  ".join(f"{metric} {mean.mean:.3f}" for metric, mean in figures.items())
        best = figures["ndcg@10"]
        gain = compare(judged["seed"], outcome, judging=judging)[0]
        print(
            f"{mode:8} {line}  [{best.low:.3f}, {best.high:.3f}]  "
            f"{gain.second / gain.first:.2f} x seed (p {gain.p_value:.4f})"
        )


def main() -> None:
    """Build the profiles, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    labelled = load_labelled_set(given.data)
    settings = load_settings(os.environ, Path.cwd())
    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    model = load_embedder(settings.embedding_model)

    def embed(texts: list[str]) -> np.ndarray:
        return remembered_vectors(warehouse, texts, model=model.name, encode=model.encode)

    for name, build in (("mixed", mixed), ("liked", liking)):
        report(name, made(labelled, (pair for at in range(given.rounds) for pair in build(labelled, at))), embed)


if __name__ == "__main__":
    main()
