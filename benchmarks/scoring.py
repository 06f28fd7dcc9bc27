"""Filtering and scoring of many papers: the arrays of `ranking/` against one paper at a time.

    python -m benchmarks.scoring [--mode hybrid] [--papers 100000] [--sample 5000] [--rounds 3] [--data PAPERS.parquet]

The baseline is the plain twin of the tests: the same rules, each keyword a compiled regular expression, each
paper a Python object. It runs over a sample and its time is scaled to all papers (it is linear); on the sample both
must give the same order and the same scores. The papers are invented unless a Parquet file with the columns of
`paper_schema()` is given. Warm: papers and vectors in memory. Cold: a new process that reads them from a file.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paper_assets.paper import Paper, paper_schema, papers_from_table, papers_to_table
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.interest_modes import interest_queries
from paper_assets.ranking.rank import rank
from paper_assets.settings import ScoringConfig

Vectors = NDArray[np.float32]

AS_OF = date(2026, 3, 31)
ASKED = 3  # vectors for the texts of the profile
SCORING = ScoringConfig()
MODES = ("hybrid", "seed")  # the default first


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


def by_arrays(table: pa.Table, vectors: Vectors, asked: Vectors, profile: Profile) -> list[tuple[str, float]]:
    """Ids and scores in final order, by the package."""
    options = profile.content.ranking
    passed = filter_papers(table, FilterCriteria(content=profile.content, options=options)).column("passed")
    kept = table.filter(passed)
    rows = rank(
        kept,
        profile,
        options=options,
        as_of=AS_OF,
        scoring=SCORING,
        vectors=vectors[passed.to_numpy()],
        query_vectors=asked[: len(texts_of(profile))],
    ).rows
    return list(zip(rows.column("paper_id").to_pylist(), rows.column("final").to_pylist(), strict=True))


def one_by_one(papers: list[Paper], vectors: Vectors, asked: Vectors, profile: Profile) -> list[tuple[str, float]]:
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
    texts = [f"{paper.title} \x01 {paper.abstract}" for paper in kept]
    relevance, serves = interests.judge(texts, [vectors[row].astype(np.float64) for row in rows])
    scored = [(paper, twin.score(paper, value)) for paper, value in zip(kept, relevance, strict=True)]
    line = None if options.interest_mode == "seed" else SCORING.line
    order, _ = final_order(scored, serves, options, line)
    return [(kept[at].paper_id, float(str(scored[at][1]["final"]))) for at in order]


def same(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> bool:
    """The same papers in the same order with the same scores."""
    near = all(abs(one - other) < 1e-9 for (_, one), (_, other) in zip(ours, theirs, strict=True))
    return near and [paper_id for paper_id, _ in ours] == [paper_id for paper_id, _ in theirs]


def cold(which: str, file: Path, papers: int, mode: str) -> tuple[float, float]:
    """Seconds and peak MB above the bare interpreter of a new process that loads the papers and ranks them."""
    start = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "benchmarks.scoring",
        "--child",
        which,
        "--data",
        str(file),
        "--papers",
        str(papers),
        "--mode",
        mode,
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, float(answer.stdout.split()[-1])


def child(which: str, file: Path, papers: int, profile: Profile) -> None:
    """The work of a cold process; prints its peak memory."""
    before = peak_kilobytes()
    table = pq.read_table(file, schema=paper_schema()).slice(0, papers)
    vectors = np.load(file.with_suffix(".npy"), mmap_mode="r")[: papers + ASKED]
    if which == "arrays":
        by_arrays(table, vectors[ASKED:], vectors[:ASKED], profile)
    else:
        one_by_one(papers_from_table(table), vectors[ASKED:], vectors[:ASKED], profile)
    print((peak_kilobytes() - before) / 1024)


def peak_kilobytes() -> int:
    """Most memory this process has held; `ru_maxrss` would count the parent's at the fork."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--child", choices=("arrays", "plain"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.data, asked.papers, profile_of(asked.mode))
        return

    table = (
        pq.read_table(asked.data, schema=paper_schema())
        if asked.data
        else papers_to_table(invented_papers(asked.papers))
    )
    table = table.slice(0, asked.papers)
    count, sample = table.num_rows, min(asked.sample, table.num_rows)
    scale = count / sample
    profile = profile_of(asked.mode)
    every = unit_vectors(count + ASKED)
    vectors, queries = every[ASKED:], every[:ASKED]
    few = papers_from_table(table.slice(0, sample))
    assert same(
        by_arrays(table.slice(0, sample), vectors[:sample], queries, profile),
        one_by_one(few, vectors[:sample], queries, profile),
    ), "the two rankings differ"

    warm: dict[str, list[float]] = {"arrays": [], "plain": []}
    for _ in range(asked.rounds):  # in turn, so that a busy moment of the machine strikes both
        start = time.perf_counter()
        by_arrays(table, vectors, queries, profile)
        warm["arrays"].append(time.perf_counter() - start)
        start = time.perf_counter()
        one_by_one(few, vectors[:sample], queries, profile)
        warm["plain"].append((time.perf_counter() - start) * scale)
    arrays, plain = min(warm["arrays"]), min(warm["plain"])
    print(f"{asked.mode}: {count:,} papers, {sample:,} of them also one by one: same order, same scores")
    print(f"warm  arrays {arrays:7.2f} s   one by one {plain:7.2f} s   {plain / arrays:5.1f} x")

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "papers.parquet"
        pq.write_table(table, file, compression="none")
        np.save(file.with_suffix(".npy"), every)
        runs = [
            tuple(
                cold(which, file, papers, asked.mode)
                for which, papers in (("arrays", count), ("plain", sample), ("plain", 1))
            )
            for _ in range(2)
        ]
    arrays = min(seconds for (seconds, _), _, _ in runs)
    start_up = min(seconds for _, _, (seconds, _) in runs)
    plain = start_up + (min(seconds for _, (seconds, _), _ in runs) - start_up) * scale
    print(f"cold  arrays {arrays:7.2f} s   one by one {plain:7.2f} s   {plain / arrays:5.1f} x")
    print(f"peak memory of the arrays above the bare process: {max(peak for (_, peak), _, _ in runs):.0f} MB")


if __name__ == "__main__":
    main()
