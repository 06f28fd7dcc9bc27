"""Measure filtering and scoring in the default mode against two loops over papers (X2).

    python -m benchmarks.scoring [--sizes 20 1000 10000 87000] [--mode hybrid] [--sample 2000] [--rounds 3]
                                 [--data PAPERS.parquet]

The plain twin is that of the tests: the same rules, each keyword a compiled regular expression, each paper a Python
object; it reads each text once in a ranking. On a sample both must give the same order and the same scores. The other
baseline is the loop that the original document describes, which does less: no word borders, no probabilities. The
papers are invented unless a Parquet file with the columns of `paper_schema()` is given. Warm: papers and vectors in
memory, their texts read by an earlier ranking. First: none of the texts read. Ends with 1 if a target is missed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks._figures import Figure, exit_status
from paper_assets.paper import Paper, paper_schema, papers_from_table, papers_to_table
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.rank import RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig
from paper_assets.text.forward_index import forget_texts

Rows = NDArray[np.float32]

AS_OF = date(2026, 3, 31)
ASKED = 3  # vectors for the texts of the profile
SCORING = ScoringConfig()
MODES = ("hybrid", "seed")  # the default first
SIZES = (20, 1_000, 10_000, 87_000)
TARGET, MEASURED_FROM = 15.0, 10_000  # of the twin's time, by number of papers (X2)
WARM_ROUNDS = 3  # after each first one


def profile_of(mode: str) -> Profile:
    """A profile with wishes of every kind."""
    record = {
        "interests": {"primary": ["graph learning"], "secondary": ["quantization"]},
        "keywords": {
            "must_include": ["language model", "retrieval", "zero-shot", "LLM", "graph neural networks"],
            "exclude": {
                "hard": ["drug discovery", "medical", "clinical trials", "radiology", "C++", "blockchain"],
                "soft": ["survey", "benchmark", "dataset", "position paper", "RL", "GPT-4", "workshop"],
            },
        },
        "preferred_authors": ["Ana Müller", "Berg, Soren"],
        "preferred_institutions": ["MIT", "Université de Genève"],
        "constraints": {"min_year": 2017},
        "ranking": {"interest_mode": mode},
    }
    return Profile(name="bench", content=profile_content(record, source="bench"))


def texts_of(profile: Profile) -> list[str]:
    """What the papers are compared with."""
    content = profile.content
    return interest_queries(content.interests, options=content.ranking, scoring=SCORING).texts


def invented_papers(count: int) -> list[Paper]:
    """Abstracts of some 1,200 characters whose words follow Zipf's law; the profile's words are among them."""
    chance = np.random.default_rng(5)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(chance.choice(letters, size=size)) for size in chance.integers(2, 13, size=20_000)]
    known = ["model", "language", "graph", "neural", "networks", "benchmark", "datasets", "LLMs", "retrieval"]
    known += ["zero-shot", "RL", "survey", "medical", "GPT-4", "drug", "discovery", "naïve", "clinical", "trial", "C++"]
    for place, word in zip(np.geomspace(20, 15_000, len(known)).astype(int), known, strict=True):
        words[place] = word
    often = 1 / np.arange(1, len(words) + 1)
    drawn = chance.choice(len(words), size=(count, 182), p=often / often.sum())
    names = [f"{first} {last}" for first in words[100:600] for last in words[600:700]]
    ages = chance.integers(0, 4000, size=count)
    papers = []
    for row in range(count):
        said = [words[at] for at in drawn[row]]
        papers.append(
            Paper(
                paper_id=f"{row // 100_000:04d}.{row % 100_000:05d}",
                title=" ".join(said[:10]).capitalize(),
                abstract=" ".join(said[10:100]).capitalize() + ".\n" + " ".join(said[100:]) + ".",
                authors=tuple(names[at] for at in chance.integers(0, len(names), size=4)),
                published=datetime(2026, 3, 31, tzinfo=UTC) - timedelta(days=int(ages[row])),
                github_url="https://github.com/a/b" if row % 5 == 0 else None,
                affiliations=("Dept. of Physics, MIT",) if row % 50 == 0 else (),
            )
        )
    return papers


def unit_vectors(count: int) -> NDArray[np.float32]:
    """Random unit rows (count, 384)."""
    rows = np.random.default_rng(6).normal(size=(count, 384)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_arrays(table: pa.Table, vectors: Rows, asked: Rows, profile: Profile) -> list[tuple[str, float]]:
    """Ids and scores in final order, by the package."""
    options = profile.content.ranking
    passed = filter_papers(table, FilterCriteria(content=profile.content, options=options)).column("passed")
    kept = table.filter(passed)
    rows = rank(
        RankingTask(
            candidates=kept,
            profile=profile,
            options=options,
            as_of=AS_OF,
            scoring=SCORING,
            vectors=Vectors(papers=vectors[passed.to_numpy()], queries=asked[: len(texts_of(profile))]),
        )
    ).rows
    return list(zip(rows.column("paper_id").to_pylist(), rows.column("final").to_pylist(), strict=True))


def one_by_one(papers: list[Paper], vectors: Rows, asked: Rows, profile: Profile) -> list[tuple[str, float]]:
    """Ids and scores in final order, by the plain twin; the cosine of a paper is numpy's, as anyone would write it."""
    from tests.ranking.plain_relevance import PlainInterests, final_order
    from tests.ranking.plain_twin import PlainGatekeeper

    class Interests(PlainInterests):
        def near(self, text: str, vector: NDArray[np.float64]) -> float:  # type: ignore[override]
            wanted = of_text[text]
            cosine = float(vector @ wanted / (np.linalg.norm(vector) * np.linalg.norm(wanted)))
            return min(max(cosine, 0.0), 1.0)

    options = profile.content.ranking
    twin = PlainGatekeeper(profile, options, AS_OF, SCORING)
    of_text = {text: vector.astype(np.float64) for text, vector in zip(texts_of(profile), asked, strict=False)}
    rows = [row for row, paper in enumerate(papers) if twin.reason(paper) is None]
    kept = [papers[row] for row in rows]
    interests = Interests(profile, options, of_text.__getitem__)
    fields = [(paper.title, paper.abstract) for paper in kept]
    relevance, serves = interests.judge(fields, [vectors[row].astype(np.float64) for row in rows])
    scored = [(paper, twin.score(paper, value)) for paper, value in zip(kept, relevance, strict=True)]
    floor = None if options.interest_mode == "seed" else SCORING.floor
    order, _ = final_order(scored, serves, options, floor)
    return [(kept[at].paper_id, float(str(scored[at][1]["final"]))) for at in order]


def lean_twin() -> None:
    """Let the plain twin read a text and cut a word once in a ranking and not thrice: the harder baseline."""
    from tests.ranking import plain_relevance, plain_twin

    for module, name in ((plain_twin, "plain"), (plain_relevance, "plain"), (plain_relevance, "stem")):
        known = getattr(module, name)
        setattr(module, name, cache(getattr(known, "__wrapped__", known)))


def original_loop(papers: list[Paper], vectors: Rows, asked: Rows, profile: Profile) -> list[tuple[str, float]]:
    """Ids and scores in final order as the original document describes it: each keyword a substring of the lower-case
    text, each name equal or not, one cosine to all interests as one text (here by one product of matrices).
    """
    content, weights = profile.content, SCORING.weights["general"]
    hard, soft = (
        [word.lower() for word in words] for words in (content.keywords.exclude.hard, content.keywords.exclude.soft)
    )
    must = [word.lower() for word in content.keywords.must_include]
    authors = {name.lower() for name in content.preferred_authors}
    institutions = [name.lower() for name in content.preferred_institutions]
    earliest = content.constraints.min_year or 0
    cosines = np.clip(vectors @ asked[0], 0, 1).tolist()
    scored = []
    for paper, cosine in zip(papers, cosines, strict=True):
        text = f"{paper.title} {paper.abstract}".lower()
        if any(word in text for word in hard) or (paper.published and paper.published.year < earliest):
            continue
        age = (AS_OF - paper.published.date()).days if paper.published else 10_000
        places = " ".join(paper.affiliations).lower()
        parts = (
            cosine,
            sum(word in text for word in must) / len(must),
            float(any(name.lower() in authors for name in paper.authors)),
            float(any(name in places for name in institutions)),
            next((worth for days, worth in SCORING.recency_steps if age <= days), SCORING.recency_floor),
            0.5 if paper.github_url else 0.0,
        )
        penalty = max(-0.15 * sum(word in text for word in soft), -0.3)
        total = sum(weight * part for weight, part in zip(weights, parts, strict=True)) + penalty
        scored.append((paper.paper_id, min(max(total, -0.5), 1.5)))
    return sorted(scored, key=lambda one: -one[1])


def same(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> bool:
    """The same papers in the same order with the same scores."""
    near = all(abs(one - other) < 1e-9 for (_, one), (_, other) in zip(ours, theirs, strict=True))
    return near and [paper_id for paper_id, _ in ours] == [paper_id for paper_id, _ in theirs]


def figures(sizes: Sequence[int], *, mode: str, sample: int, rounds: int, data: Path | None = None) -> list[Figure]:
    """Measure warm rankings against both baselines, and first ones, which have no target."""
    most = max(sizes)
    every = pq.read_table(data, schema=paper_schema()) if data else papers_to_table(invented_papers(most))
    unit = unit_vectors(min(most, every.num_rows) + ASKED)
    profile, found = profile_of(mode), list[Figure]()
    for count in (size for size in sizes if size <= every.num_rows):
        table = every.slice(0, count)
        seconds = timed(table, unit[ASKED : count + ASKED], unit[:ASKED], profile, sample=sample, rounds=rounds)
        wanted = TARGET if mode == MODES[0] and count >= MEASURED_FROM else None
        ahead = 1.0 if wanted else None
        stage = f"rank {count:,} papers, {mode}"
        found += [
            Figure(
                stage=what,
                baseline=baseline,
                seconds=seconds[ours],
                baseline_seconds=seconds[theirs],
                target=target,
            )
            for what, ours, baseline, theirs, target in (
                (f"{stage}, warm", "warm", "plain twin", "plain", wanted),
                (f"{stage}, warm", "warm", "the original's loop", "original", ahead),
                (f"{stage}, first", "first", "plain twin", "plain", None),
                (f"{stage}, first", "first", "the original's loop", "original", None),
            )
        ]
    return found


def timed(
    table: pa.Table, vectors: Rows, queries: Rows, profile: Profile, *, sample: int, rounds: int
) -> dict[str, float]:
    """Least seconds of `rounds`, taken in turn so that a busy moment of the machine strikes all.

    `first`: with no text known. The twin runs over `sample` papers at most and is scaled, being linear; there both must
    agree. The original's loop runs over all.
    """
    count = table.num_rows
    few = papers_from_table(table.slice(0, min(sample, count)))
    papers = papers_from_table(table)
    own, scale = vectors[: len(few)], count / len(few)
    lean_twin()
    assert same(by_arrays(table.slice(0, len(few)), own, queries, profile), one_by_one(few, own, queries, profile)), (
        "the two rankings differ"
    )
    taken: dict[str, list[float]] = {}

    def take(name: str, scale: float, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        taken.setdefault(name, []).append((time.perf_counter() - start) * scale)

    for _ in range(rounds):
        forget_texts()
        take("first", 1, lambda: by_arrays(table, vectors, queries, profile))
        for _ in range(WARM_ROUNDS):
            take("warm", 1, lambda: by_arrays(table, vectors, queries, profile))
        lean_twin()
        take("plain", scale, lambda: one_by_one(few, own, queries, profile))
        take("original", 1, lambda: original_loop(papers, vectors, queries, profile))
    return {name: min(each) for name, each in taken.items()}


def peak_megabytes() -> float:
    """Most memory this process has held; `ru_maxrss` would count the parent's at the fork."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--sample", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    found = figures(asked.sizes, mode=asked.mode, sample=asked.sample, rounds=asked.rounds, data=asked.data)
    print("\n".join(map(str, found)))
    print(f"peak memory, the baselines' objects included: {peak_megabytes():,.0f} MB")
    return exit_status(found)


if __name__ == "__main__":
    sys.exit(main())
