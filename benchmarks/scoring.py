"""Filtering and scoring of many papers: the arrays of `ranking/` against one paper at a time.

    python -m benchmarks.scoring [--papers 100000] [--sample 5000] [--rounds 3] [--data PAPERS.parquet]

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
from paper_assets.ranking.filters import Sieve, filter_papers
from paper_assets.ranking.rank import rank
from paper_assets.settings import Scoring

AS_OF = date(2026, 3, 31)
SCORING = Scoring()
PROFILE = Profile(
    name="bench",
    content=profile_content(
        {
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
            "ranking": {"interest_mode": "seed"},
        },
        source="bench",
    ),
)


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


def by_arrays(table: pa.Table, vectors: NDArray[np.float32], interest: NDArray[np.float32]) -> list[tuple[str, float]]:
    """Ids and scores in final order, by the package."""
    options = PROFILE.content.ranking
    passed = filter_papers(table, Sieve(content=PROFILE.content, options=options)).column("passed")
    kept = table.filter(passed)
    rows = rank(
        kept,
        PROFILE,
        options=options,
        as_of=AS_OF,
        scoring=SCORING,
        vectors=vectors[passed.to_numpy()],
        asked=interest[None],
    ).rows
    return list(zip(rows.column("paper_id").to_pylist(), rows.column("final").to_pylist(), strict=True))


def one_by_one(
    papers: list[Paper], vectors: NDArray[np.float32], interest: NDArray[np.float32]
) -> list[tuple[str, float]]:
    """Ids and scores in final order, by the plain twin; the cosine of a paper is numpy's, as anyone would write it."""
    from tests.ranking.plain_twin import PlainGatekeeper, ordered

    twin = PlainGatekeeper(PROFILE, PROFILE.content.ranking, AS_OF, SCORING)
    wanted = interest.astype(np.float64)
    scored = []
    for paper, vector in zip(papers, vectors, strict=True):
        if twin.reason(paper) is None:
            row = vector.astype(np.float64)
            cosine = float(row @ wanted / (np.linalg.norm(row) * np.linalg.norm(wanted)))
            scored.append((paper, twin.score(paper, min(max(cosine, 0.0), 1.0))))
    return [(paper.paper_id, float(str(score["final"]))) for paper, score in ordered(scored)]


def same(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> bool:
    """The same papers in the same order with the same scores."""
    near = all(abs(one - other) < 1e-12 for (_, one), (_, other) in zip(ours, theirs, strict=True))
    return near and [paper_id for paper_id, _ in ours] == [paper_id for paper_id, _ in theirs]


def cold(which: str, file: Path, papers: int) -> tuple[float, float]:
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
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, float(answer.stdout.split()[-1])


def child(which: str, file: Path, papers: int) -> None:
    """The work of a cold process; prints its peak memory."""
    before = peak_kilobytes()
    table = pq.read_table(file, schema=paper_schema()).slice(0, papers)
    vectors = np.load(file.with_suffix(".npy"), mmap_mode="r")[: papers + 1]
    if which == "arrays":
        by_arrays(table, vectors[1:], vectors[0])
    else:
        one_by_one(papers_from_table(table), vectors[1:], vectors[0])
    print((peak_kilobytes() - before) / 1024)


def peak_kilobytes() -> int:
    """Most memory this process has held; `ru_maxrss` would count the parent's at the fork."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--child", choices=("arrays", "plain"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.data, asked.papers)
        return

    table = (
        pq.read_table(asked.data, schema=paper_schema())
        if asked.data
        else papers_to_table(invented_papers(asked.papers))
    )
    table = table.slice(0, asked.papers)
    count, sample = table.num_rows, min(asked.sample, table.num_rows)
    scale = count / sample
    vectors = unit_vectors(count + 1)
    few = papers_from_table(table.slice(0, sample))
    assert same(
        by_arrays(table.slice(0, sample), vectors[1 : sample + 1], vectors[0]),
        one_by_one(few, vectors[1 : sample + 1], vectors[0]),
    ), "the two rankings differ"

    warm: dict[str, list[float]] = {"arrays": [], "plain": []}
    for _ in range(asked.rounds):  # in turn, so that a busy moment of the machine strikes both
        start = time.perf_counter()
        by_arrays(table, vectors[1:], vectors[0])
        warm["arrays"].append(time.perf_counter() - start)
        start = time.perf_counter()
        one_by_one(few, vectors[1 : sample + 1], vectors[0])
        warm["plain"].append((time.perf_counter() - start) * scale)
    arrays, plain = min(warm["arrays"]), min(warm["plain"])
    print(f"{count:,} papers, {sample:,} of them also one by one: same order, same scores")
    print(f"warm  arrays {arrays:7.2f} s   one by one {plain:7.2f} s   {plain / arrays:5.1f} x")

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "papers.parquet"
        pq.write_table(table, file, compression="none")
        np.save(file.with_suffix(".npy"), vectors)
        runs = [(cold("arrays", file, count), cold("plain", file, sample), cold("plain", file, 1)) for _ in range(2)]
    arrays = min(seconds for (seconds, _), _, _ in runs)
    start_up = min(seconds for _, _, (seconds, _) in runs)
    plain = start_up + (min(seconds for _, (seconds, _), _ in runs) - start_up) * scale
    print(f"cold  arrays {arrays:7.2f} s   one by one {plain:7.2f} s   {plain / arrays:5.1f} x")
    print(f"peak memory of the arrays above the bare process: {max(peak for (_, peak), _, _ in runs):.0f} MB")


if __name__ == "__main__":
    main()
