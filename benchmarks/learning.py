"""Measure the effect of ratings: the final list after 0 to 100 of them, beside rankers trained on the same ones (L2,
L3).

    python -m benchmarks.learning --lists DIR --papers FILE [--rounds 3] [--narrow]     # judged lists
    python -m benchmarks.learning --set FOLDER [--each 2] [--rounds 1]                  # labelled: queries of a profile
    python -m benchmarks.learning --authors FILE [--most 24] [--rounds 1]               # authors of these papers
    python -m benchmarks.learning --time                                                # 1,000 invented ratings

A reader rates what the list shows of one half of the papers (drawn at random), grades 2 and 3 worth reading, lower ones
not; the other half, in which nothing was rated, is ranked and judged by nDCG@10. `learning` is what a reader gets: the
models weighed by the evidence (L3), `always` their average in full, `share` how much of it counts. A `random` reader
rates by chance, one half worth reading, six times over. `only no`, `only worth`: up to eight ratings of one kind;
`mostly no`: eight not and two worth reading. Other rankers are trained on the same ratings; `blended`: their z-scores
added to those of the formula's log odds, as alone they do not know the profile. Differences to the list without ratings
are paired by reader, with 95 % bootstrap intervals over readers.

An author's profile is their first two papers. They rate their own earlier papers worth reading, and the others that the
list shows not; all later papers are ranked, and the author's own ones are right.

`first set`: after the twelve answers that a new reader is asked for (L5), beside `random set`, twelve random ones out
of the same papers, and the twelve at the top of the list.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, cached_property
from hashlib import md5
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._figures import Figure, exit_status
from benchmarks.author_readers import author_readers, without_name
from benchmarks.evaluation.final_lists import OWN, judged_day, newest_judged_day
from benchmarks.evaluation.fitting import held_out_fits, parts_of
from benchmarks.evaluation.judged_lists import ON_TOPIC, UNJUDGED, load_judged_lists, scratch_warehouse
from benchmarks.evaluation.labelled_set import load_labelled_set
from benchmarks.evaluation.metrics import bootstrap_mean, exponential_gain, ndcg
from paper_assets.learning.preference_model import RatedPapers, rated_papers, train, weigh
from paper_assets.learning.questions import FIRST_SET, first_set, questions
from paper_assets.models.embedder import load_embedder
from paper_assets.models.minilm import NAME as MODEL
from paper_assets.paper import Paper, embedded_text, papers_from_table, papers_to_table
from paper_assets.pipeline.learning_inputs import OTHERS
from paper_assets.profile import Interests, Profile, RankingOptions, profile_content
from paper_assets.ranking.calibration import Calibration, standard_calibration
from paper_assets.ranking.levels import LIKELY
from paper_assets.ranking.preferences import Preferences, learned_features, log_odds, scaled, shifted
from paper_assets.ranking.rank import Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import InterestQueries, interest_queries
from paper_assets.ranking.term_matching import paper_words, unit_tfidf
from paper_assets.settings import ScoringConfig, load_settings
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.embeddings import remembered_vectors
from paper_assets.stores.warehouse import Warehouse
from paper_assets.weights import DIMENSIONS

COUNTS = (3, 10, 30, 100)
RANDOM_DRAWS = 6  # of one draw each, 13 readers' mean varies by .01 and says nothing about .005
READ_BEFORE = 0.8  # of an author's earlier papers
LOWEST = 4  # readers printed
Rows = NDArray[np.int64]
Choice = Callable[..., list[str]]
Embed = Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Reader:
    """A profile, its candidates with vectors (n, d), and the grades (n,) that the reader would give."""

    profile: Profile
    options: RankingOptions
    queries: InterestQueries
    query_vectors: NDArray[np.float32]
    papers: pa.Table
    vectors: NDArray[np.float32]
    grades: NDArray[np.int64]
    as_of: date
    calibration: Calibration | None
    earlier: NDArray[np.bool_] | None = None  # (n,) the papers that can be rated; None: a half drawn at random

    @cached_property
    def days(self) -> NDArray[Any]:
        """Return the day of each paper."""
        return self.papers["published"].to_numpy().astype("datetime64[D]")

    @cached_property
    def drawn(self) -> Rows:
        """Return all rows in the order in which the graph draws papers beside the rated ones."""
        ids = self.papers["paper_id"].to_pylist()
        return np.array(sorted(range(len(ids)), key=lambda row: md5(ids[row].encode()).digest()), dtype=np.int64)

    def others(self, rated: Rows, seen: Rows) -> Rows:
        """Return the seen papers of the rated papers' days among which the formula judges these, as in the graph."""
        allowed = np.isin(self.drawn, seen) & ~np.isin(self.drawn, rated)
        return self.drawn[allowed & np.isin(self.days[self.drawn], self.days[rated])][:OTHERS]

    def rated_first(self, seen: Rows, ranking: Ranking) -> Rows:
        """Return the judged rows in the order of the list; an author's own papers are before the others."""
        order = self.order(seen, ranking)
        order = order[self.grades[order] != UNJUDGED]
        if self.earlier is None:
            return order
        return order[np.argsort(self.grades[order] < ON_TOPIC, kind="stable")]

    def ranking(self, rows: Rows, preferences: Preferences | None = None) -> Ranking:
        return rank(
            RankingTask(
                candidates=self.papers.take(rows),
                profile=self.profile,
                options=self.options,
                as_of=self.as_of,
                scoring=ScoringConfig(),
                queries=self.queries,
                preferences=preferences,
                vectors=Vectors(papers=self.vectors[rows], queries=self.query_vectors, model=MODEL),
            ),
            calibration=self.calibration,
        )

    def order(self, rows: Rows, ranking: Ranking) -> Rows:
        place = {
            paper_id: row for row, paper_id in zip(rows, self.papers.take(rows)["paper_id"].to_pylist(), strict=True)
        }
        return np.array([place[paper_id] for paper_id in ranking.rows["paper_id"].to_pylist()])

    @cached_property
    def later(self) -> "UnseenPapers":
        """Return an author's later papers."""
        return UnseenPapers(self, np.flatnonzero(~self.earlier if self.earlier is not None else self.grades < 0))


class UnseenPapers:
    """The papers that are ranked and judged: ranked by the formula once, and put in order again for each model."""

    def __init__(self, reader: Reader, rows: Rows) -> None:
        ranking = reader.ranking(rows)
        stored = ranking.rows
        self.reader, self.rows, self.by_formula = reader, rows, reader.order(rows, ranking)
        self._header = ranking.header
        self._probability, self._final = (stored.column(name).to_numpy() for name in ("semantic_relevance", "final"))
        # A contrasting paper and variety depend on the whole order, so that it cannot be computed from stored scores.
        self._again = (
            reader.options.include_contrastive
            or reader.options.ranking_mode == "diversity"
            or bool(ranking.header.get("probability_cap"))
        )
        words = paper_words(reader.papers.take(self.by_formula)).whole
        background = (reader.calibration or standard_calibration()).background
        self._words, self._stems = unit_tfidf(words, background=background)
        self._vectors = reader.vectors[self.by_formula].astype(np.float64)
        self._dimensions = learned_features(np.column_stack([stored.column(name).to_numpy() for name in DIMENSIONS]))

    @property
    def relevance(self) -> NDArray[np.float64]:
        """Return (n,) the relevance of `rows` by the formula."""
        found = np.zeros(len(self.reader.grades))
        found[self.by_formula] = self._probability
        chosen: NDArray[np.float64] = found[self.rows]
        return chosen

    def order(self, taught: Preferences) -> Rows:
        """Return the rows in the order of `rank` with these preferences."""
        if self._again:
            return self.reader.order(self.rows, self.reader.ranking(self.rows, taught))
        by_words = self._words @ np.array([taught.words.get(stem, 0.0) for stem in self._stems])
        shift = by_words + self._vectors @ taught.vector + self._dimensions @ taught.dimensions
        probability = shifted(self._probability, shift)
        rest = self._final - self._header["weights"]["semantic_relevance"] * self._probability
        match = log_odds(probability) + self._header["preference_weight"] * rest
        tier = (probability >= self._header["threshold"]).astype(int) + (probability >= LIKELY)
        return self.by_formula[np.lexsort((-match, -tier))]

    def ndcg(self, order: Rows) -> float:
        """Return nDCG@10 of an order of the rows."""
        gains = exponential_gain(self.reader.grades.astype(np.float64))
        return ndcg(gains[order], gains[self.rows], k=10)

    def ndcg_of(self, scores: NDArray[np.float64]) -> float:
        """Return nDCG@10 of the rows in the order of their scores (n,)."""
        return self.ndcg(self.rows[np.argsort(-scores, kind="stable")])

    def ndcg_after(self, rated: RatedPapers) -> float:
        """Return nDCG@10 of the list after these ratings."""
        return self.ndcg(self.order(scaled(*learned(rated))))


def judged_readers(lists: Path, papers: Path, embed: Embed, *, narrow: bool) -> Iterator[Reader]:
    judged, scoring = load_judged_lists(lists), ScoringConfig()
    with scratch_warehouse(read_papers(papers), deadline=60) as warehouse:
        as_of, _ = newest_judged_day(warehouse, judged)
        days = {
            of: [
                judged_day(warehouse, one, as_of=as_of, purpose=of, embed=embed, scoring=scoring)
                for one in judged.profiles
            ]
            for of in ("general", OWN)
        }
    fits = held_out_fits({day.judged.name: parts_of(day, embed=embed, scoring=scoring) for day in days["general"]})
    for day in days[OWN]:
        content = day.judged.profile.content
        interests = Interests(primary=content.interests.primary[:1]) if narrow else content.interests
        queries = interest_queries(interests, options=day.options, scoring=scoring, known=day.known)
        yield Reader(
            profile=day.judged.profile,
            options=day.options,
            queries=queries,
            query_vectors=embed(queries.texts),
            papers=day.candidates,
            vectors=day.vectors,
            grades=day.judged.grades_of(day.candidates["paper_id"].to_pylist()),
            as_of=as_of,
            calibration=fits[day.judged.name],
        )


def labelled_readers(folder: Path, embed: Embed, *, queries_each: int = 4) -> Iterator[Reader]:
    labelled = load_labelled_set(folder)
    day = date(2026, 1, 1)
    papers = papers_to_table(
        Paper(
            paper_id=f"labelled:{number}",
            title=document.title or "untitled",
            abstract=document.abstract,
            authors=("Unknown",),
            published=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for number, document in enumerate(labelled.documents)
    )
    vectors = embed([document.text for document in labelled.documents])
    asked = labelled.judged_queries
    order = np.random.default_rng(0).permutation(len(asked))
    for start in range(0, len(order) - queries_each + 1, queries_each):
        part = [asked[at] for at in order[start : start + queries_each]]
        grades = np.zeros(len(labelled.documents), dtype=np.int64)
        for query in part:
            known = labelled.judgements[query.query_id]
            grades[known.positions[known.grades > 0]] = ON_TOPIC
        record = {"interests": {"primary": [query.text.strip()[:1000] for query in part]}, "ranking": {"top_k": 10}}
        yield _made_reader(record, embed, papers=papers, vectors=vectors, grades=grades, as_of=day)


def authors(papers: Path, embed: Embed, *, most: int) -> Iterator[Reader]:
    stored = list(read_papers(papers))
    found = author_readers(stored)
    print(f"{min(most, len(found))} of {len(found)} authors, those with most papers first")
    for author in found[:most]:
        liked = {paper.paper_id for paper in author.liked}
        candidates = papers_to_table(
            without_name([paper for paper in stored if paper.day and paper.paper_id not in liked], author.name)
        )
        known = papers_from_table(candidates)
        own = {paper.paper_id for paper in (*author.earlier, *author.later)}
        record = {
            "interests": {"papers": [{"title": paper.title, "abstract": paper.abstract} for paper in author.liked]},
            "ranking": {"top_k": 10},
        }
        days = [paper.day or date.min for paper in known]
        yield _made_reader(
            record,
            embed,
            papers=candidates,
            vectors=embed([embedded_text(paper.title, paper.abstract) for paper in known]),
            grades=np.array([ON_TOPIC if paper.paper_id in own else 0 for paper in known]),
            as_of=max(days),
            earlier=np.array([day < author.split for day in days]),
        )


def _made_reader(record: Mapping[str, Any], embed: Embed, **given: Any) -> Reader:
    """Return the reader of a profile that the benchmark has made; `given`: what it reads and its grades."""
    content = profile_content(record, source="benchmark")
    queries = interest_queries(content.interests, options=content.ranking, scoring=ScoringConfig())
    return Reader(
        profile=Profile(name="reader", content=content),
        options=content.ranking,
        queries=queries,
        query_vectors=embed(queries.texts),
        calibration=None,
        **given,
    )


def judge(reader: Reader, seed: int, *, ask: bool) -> dict[tuple[str, int], float]:
    """Return nDCG@10 of the unseen half by list and number of ratings, and how much learning counted."""
    chance = np.random.default_rng([seed, len(reader.grades)])
    drawn = chance.random(len(reader.grades))
    first = drawn < 0.5 if reader.earlier is None else reader.earlier & (drawn < READ_BEFORE)
    seen = np.flatnonzero(first)
    unseen = UnseenPapers(reader, np.flatnonzero(~first)) if reader.earlier is None else reader.later
    listed = reader.rated_first(seen, reader.ranking(seen))
    without = unseen.ndcg(unseen.by_formula)
    if np.isnan(without):  # nothing there is worth reading
        return {}
    formula = log_odds(unseen.relevance)
    figures: dict[tuple[str, int], float] = {}
    for count in COUNTS:
        if count > len(listed):
            break
        rated = chance.permutation(listed[:count])  # the order in which they were rated
        figures["without", count] = without
        known = rated_by(reader, rated, seen=seen)
        shifted_list(unseen, known, name="", figures=figures)
        draws: list[dict[tuple[str, int], float]] = [{} for _ in range(RANDOM_DRAWS)]
        for draw in draws:
            lots = chance.random(count) < 0.5
            shifted_list(unseen, replace(known, liked=lots), name="random", figures=draw)
        figures |= {key: float(np.mean([draw[key] for draw in draws])) for key in draws[0]}
        for name, scores in retrained(reader, rated, unseen.rows).items():
            figures[name, count] = unseen.ndcg_of(scores)
            figures[f"{name}, blended", count] = unseen.ndcg_of(standardised(scores) + standardised(formula))
        if ask and count >= 10:
            for name, extra in (("asked", asked_rows(reader, seen, listed, count)), ("at random", None)):
                chosen = (
                    chance.permutation(seen[reader.grades[seen] != UNJUDGED])[: count // 4] if extra is None else extra
                )
                top = listed[~np.isin(listed, chosen)][: count - len(chosen)]
                mixed = chance.permutation(np.concatenate([top, chosen]))
                figures[name, count] = unseen.ndcg_after(rated_by(reader, mixed, seen=seen))
    new_reader(reader, chance, seen, listed, unseen, figures)
    top = listed[:30]
    no, worth = top[reader.grades[top] < ON_TOPIC], top[reader.grades[top] >= ON_TOPIC]
    if len(no) >= 8 and len(worth) >= 2:
        rated = chance.permutation(np.concatenate([no[:8], worth[:2]]))
        shifted_list(unseen, rated_by(reader, rated, seen=seen), name="mostly no", figures=figures)
        figures["without", 10] = without
    for name, of_kind in (("no", no), ("worth", worth)):
        rated = chance.permutation(of_kind[:8])
        if len(rated) >= 5:
            figures["without", 8] = without
            shifted_list(unseen, rated_by(reader, rated, seen=seen), name=f"only {name}", figures=figures, count=8)
    return figures


def new_reader(
    reader: Reader,
    chance: np.random.Generator,
    seen: Rows,
    listed: Rows,
    unseen: UnseenPapers,
    figures: dict[tuple[str, int], float],
) -> None:
    """Add the figures of a first set of answers."""
    without = unseen.ndcg(unseen.by_formula)
    if len(listed) > FIRST_SET:
        figures["without", FIRST_SET] = without
        asked = chosen_rows(reader, reader.ranking(seen), listed, (), choose=first_set)
        for name, rated in (
            ("first set", chance.permutation(asked)),
            ("random set", chance.permutation(listed)[:FIRST_SET]),
            ("top of the list", chance.permutation(listed[:FIRST_SET])),
        ):
            figures[name, FIRST_SET] = unseen.ndcg_after(rated_by(reader, rated, seen=seen))


def chosen_rows(
    reader: Reader, ranking: Ranking, judged: Rows, rated: Sequence[int], *, choose: Choice = questions
) -> Rows:
    """Return the rows of the papers that a reader is asked about, out of the judged ones."""
    ids = reader.papers["paper_id"].to_pylist()
    number = {ids[row]: row for row in judged.tolist()}
    rows = [row for row in ranking.rows.to_pylist() if row["paper_id"] in number]
    vectors = {ids[row]: reader.vectors[row] for row in {*judged.tolist(), *rated}}
    found = choose(rows, {ids[row] for row in rated}, vectors=vectors)
    return np.array([number[each] for each in found], dtype=np.int64)


def shifted_list(
    unseen: UnseenPapers,
    rated: RatedPapers,
    *,
    name: str,
    figures: dict[tuple[str, int], float],
    count: int | None = None,
) -> None:
    """Add the figures of the list as it counts, of the whole model, and the share, for `count` ratings (default: so
    many as there are).
    """
    whole, share = learned(rated)
    of = count or len(rated.ids)
    for each, counts in (("learning", share), ("always", 1.0)):
        figures[f"{name}, {each}" if name else each, of] = unseen.ndcg(unseen.order(scaled(whole, counts)))
    figures[f"share {name}".strip(), of] = share


def standardised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z-scores, all 0 for equal scores."""
    spread = float(scores.std())
    found: NDArray[np.float64] = (scores - scores.mean()) / spread if spread else scores * 0.0
    return found


def learned(rated: RatedPapers) -> tuple[Preferences, float]:
    """Return the average in full, and its share."""
    evidence = weigh(rated, learning="auto")
    return train(rated, evidence.strengths), evidence.share


def rated_by(reader: Reader, rated: Rows, *, seen: Rows) -> RatedPapers:
    """Return these papers, out of the `seen` ones, as the reader rates them."""
    papers = reader.papers.take(rated)
    liked = (reader.grades[rated] >= ON_TOPIC).tolist()
    return rated_papers(
        papers,
        reader.ranking(np.concatenate([rated, reader.others(rated, seen)])).rows,
        reader.vectors[rated],
        liked=dict(zip(papers["paper_id"].to_pylist(), liked, strict=True)),
        library=reader.query_vectors[reader.queries.of_liked],
    )


def asked_rows(reader: Reader, seen: Rows, listed: Rows, count: int) -> Rows:
    """A quarter of the ratings are answers, three questions at a time, from a model of what was rated before."""
    answered: list[int] = []
    judged = seen[reader.grades[seen] != UNJUDGED]
    while len(answered) < count // 4:
        rated = np.array([*listed[: max(count // 2, 4)], *answered])
        taught = scaled(*learned(rated_by(reader, rated, seen=seen)))
        found = chosen_rows(reader, reader.ranking(seen, taught), judged, rated.tolist())
        if not len(found):
            break
        answered += found.tolist()
    return np.array(answered[: count // 4], dtype=np.int64)


def retrained(reader: Reader, rated: Rows, unseen: Rows) -> dict[str, NDArray[np.float64]]:
    """Return the scores that other rankers give the unseen papers after the same ratings."""
    from scipy.sparse import csr_array, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.svm import LinearSVC  # type: ignore[import-untyped]

    target = reader.grades[rated] >= ON_TOPIC
    rows = np.concatenate([rated, unseen])
    titles, abstracts = reader.papers["title"].to_pylist(), reader.papers["abstract"].to_pylist()
    texts = [f"{titles[row]}\n{abstracts[row]}" for row in rows]
    words = TfidfVectorizer(analyzer=_cut(), sublinear_tf=True).fit_transform(texts)
    features = hstack([words, csr_array(reader.vectors[rows].astype(np.float64))]).tocsr()
    held = np.unique(features[: len(rated)].indices)  # words of no rated paper get no weight
    known, asked = features[: len(rated), held], features[len(rated) :, held]
    both = 0 < target.sum() < len(target)
    nothing = np.zeros(len(unseen))
    liked, other = reader.vectors[rated[target]], reader.vectors[rated[~target]]
    centre = liked.mean(axis=0) if len(liked) else np.zeros(reader.vectors.shape[1])
    centre = centre - (0.25 * other.mean(axis=0) if len(other) else 0.0)  # Rocchio's usual .75 and .15 are near this
    regression = LogisticRegression(class_weight="balanced", max_iter=1000)
    machine = LinearSVC(C=0.1, class_weight="balanced", max_iter=10_000, random_state=0)
    return {
        "logistic regression": regression.fit(known, target).decision_function(asked) if both else nothing,
        "svm": machine.fit(known, target).decision_function(asked) if both else nothing,
        "rocchio": reader.vectors[unseen].astype(np.float64) @ centre,
    }


@cache
def _cut() -> Callable[[str], list[str]]:
    """Return the function that splits a text into words; it splits each text once."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    cut: Callable[[str], list[str]] = cache(TfidfVectorizer(stop_words="english").build_analyzer())
    return cut


def invented_ratings(count: int, *, by_lot: bool = False) -> RatedPapers:
    """Return ratings of papers on twenty topics: the reader likes eight of them nine times out of ten, or by lot."""
    from scipy.sparse import csr_array

    dimensions, stems, words_each, chance = 384, 8_000, 100, np.random.default_rng(0)
    topics = chance.integers(0, 20, count)
    vectors = chance.normal(size=(20, dimensions))[topics] + chance.normal(size=(count, dimensions))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    rows = np.repeat(np.arange(count), words_each)
    columns = (chance.pareto(0.6, len(rows)) * 20 + topics[rows] * 13).clip(max=stems - 1).astype(np.int64)
    words = csr_array((chance.uniform(0.5, 2, len(rows)), (rows, columns)), shape=(count, stems))
    words.sum_duplicates()
    words.data /= np.repeat(np.sqrt(np.add.reduceat(words.data**2, words.indptr[:-1])), np.diff(words.indptr))
    return RatedPapers(
        ids=tuple(f"{number:05}" for number in range(count)),
        liked=chance.random(count) < 0.5 if by_lot else (topics < 8) ^ (chance.random(count) < 0.1),
        odds=2.0 * chance.normal(size=count),
        vectors=vectors.astype(np.float32),
        words=words,
        stems=[f"stem{number:04}" for number in range(stems)],
        dimensions=chance.random((count, 4)),
    )


def figures(count: int, *, rounds: int) -> list[Figure]:
    """Compare the time of training and weighing with one fit of scikit-learn's logistic regression."""
    from scipy.sparse import csr_array, hstack
    from sklearn.linear_model import LogisticRegression

    def learn(rated: RatedPapers) -> None:
        train(rated, weigh(rated, learning="auto").strengths)

    def fit(rated: RatedPapers) -> None:
        features = hstack([rated.words, csr_array(rated.vectors.astype(np.float64)), csr_array(rated.dimensions)])
        LogisticRegression(max_iter=1000).fit(features.tocsr(), rated.liked)

    def seconds(work: Callable[[RatedPapers], None], by_lot: bool) -> float:
        taken = []
        for _ in range(rounds + 1):  # the first one imports
            rated = invented_ratings(
                count, by_lot=by_lot
            )  # a new object each time, because results computed from it are cached
            start = time.perf_counter()
            work(rated)
            taken.append(time.perf_counter() - start)
        return float(np.median(taken[1:]))

    found = []
    for by_lot in (False, True):
        stage, taken = f"{count:,} ratings{' by lot' if by_lot else ''}", seconds(learn, by_lot)
        alone = seconds(fit, by_lot)
        found += [
            Figure(stage=stage, baseline=name, seconds=taken, baseline_seconds=beside, target=target)
            for name, beside, target in (("a second", 1.0, 1.0), ("LogisticRegression", alone, None))
        ]
    return found


def report(by_reader: Sequence[Sequence[dict[tuple[str, int], float]]]) -> None:
    """Means over readers of the means over rounds; differences paired by reader."""
    keys = list(dict.fromkeys(key for rounds in by_reader for one in rounds for key in one))
    for count in sorted({of for _, of in keys}):
        readers = [[one for one in rounds if ("without", count) in one] for rounds in by_reader]
        print(f"\n{count} ratings, {sum(map(bool, readers))} readers")
        for name in (name for name, of in keys if of == count):
            values, gains = list[float](), dict[int, NDArray[np.float64]]()
            for number, rounds in enumerate(readers):
                if known := [one for one in rounds if (name, count) in one]:
                    values.append(float(np.mean([one[name, count] for one in known])))
                    gains[number] = np.array([one[name, count] - one["without", count] for one in known])
            line = f"  {name:26} {np.mean(values):.3f}"
            if not name.startswith("share") and name != "without":
                line += f"   {interval(np.array([each.mean() for each in gains.values()]))} against without"
                line += f", lowest reader {min(each.mean() for each in gains.values()):+.3f}, {len(gains)} readers"
            print(line)
            if name == "learning":
                drawn_often = [number for number, each in gains.items() if len(each) > 1]
                for number in sorted(drawn_often, key=lambda each: gains[each].mean())[:LOWEST]:
                    print(f"    reader {number:2}: {interval(gains[number])} over {len(gains[number])} rounds")


def interval(values: NDArray[np.float64]) -> str:
    """Return the mean in words, with its 95 % bootstrap interval."""
    mean, low, high = bootstrap_mean(values, seed=1, resamples=10_000, confidence=0.95)
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def main() -> None:
    """Simulate, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=Path)
    parser.add_argument("--papers", type=Path)
    parser.add_argument("--set", type=Path)
    parser.add_argument("--authors", type=Path)
    parser.add_argument("--each", type=int, default=4, help="queries of a profile, with --set")
    parser.add_argument("--most", type=int, default=24, help="authors, with --authors")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--narrow", action="store_true", help="the profile names the first of the reader's interests")
    parser.add_argument("--ask", action="store_true", help="questions too (L5), which take time")
    parser.add_argument("--time", action="store_true", help="only the time that 1,000 ratings take")
    given = parser.parse_args()
    if given.time:
        timed = figures(1_000, rounds=5)
        print(*timed, sep="\n")
        sys.exit(exit_status(timed))
    settings = load_settings(os.environ, Path.cwd())
    warehouse = Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
    model = load_embedder(settings.embedding_model)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        return remembered_vectors(warehouse, texts, model=model.name, encode=model.encode)

    if given.set:
        readers = labelled_readers(given.set, embed, queries_each=given.each)
    elif given.authors:
        readers = authors(given.authors, embed, most=given.most)
    else:
        readers = judged_readers(given.lists, given.papers, embed, narrow=given.narrow)
    report([[judge(reader, seed, ask=given.ask) for seed in range(given.rounds)] for reader in readers])


if __name__ == "__main__":
    main()
