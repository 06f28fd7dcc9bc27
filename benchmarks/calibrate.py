"""Fit the coefficients that make relevance a probability; evaluate them on profiles they were not fitted on.

    python -m benchmarks.calibrate --lists FOLDER --papers FILE [--as-of 2026-03-15] [--write]

FOLDER holds `profiles.json` and `grades.json` (profile -> paper id -> grade 0 to 3; 2 and 3 are on topic), FILE papers
as `paper-assets import` takes them. Candidates are the papers of the week up to `--as-of` in a profile's categories;
one without a grade counts as off topic. The background of the idf is all papers of the file. `--write` puts the
coefficients and the background into the package.

The figures printed are of the final list as the graph ranks it, each profile with coefficients fitted on all others.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper, embedded_text, papers_to_table
from paper_assets.profile import Interests, Profile, RankingOptions, profile_content
from paper_assets.ranking.calibration import COEFFICIENTS, FREQUENCIES, Calibration, Logit, calibration_from
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.interest_modes import interest_queries
from paper_assets.ranking.keywords import paper_texts
from paper_assets.ranking.probability import any_of, in_company, library_judged
from paper_assets.ranking.rank import rank
from paper_assets.ranking.relevance import cosines
from paper_assets.ranking.task import RankingTask, Vectors
from paper_assets.ranking.term_matching import tfidf_cosines, word_shares
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from paper_assets.text.bm25 import index_words
from paper_assets.text.stems import stems_in

Floats = NDArray[np.float64]

SCORING = ScoringConfig()
BACKGROUND_WEIGHT = 1000  # candidates; 300 to 3000 do as well, and without any twenty papers are misjudged
FEWEST_HOLDERS = 5  # a rarer stem counts as unknown
RIDGE = 1e-3
ON_TOPIC = 2
WORDS_PER_COSINE = 1.5  # in a library, TF-IDF against cosine: a free ratio does not carry over to other sets
LIKED = (1, 2, 3, 5, 8, 15)  # relevant papers of one profile that are taken as liked, and of two profiles each
LIKED_OF_TWO = (1, 2, 4)
DRAWS = 6
PURPOSES = ("own", "general", "literature_review", "implementation", "idea_generation")


@dataclass(frozen=True)
class Case:
    """A reader: interests with their weights, and n candidates with grades (NaN: not judged)."""

    interests: Interests
    rows: NDArray[np.intp]  # of the week's papers
    grades: Floats

    @property
    def on_topic(self) -> Floats:
        return (np.nan_to_num(self.grades) >= ON_TOPIC).astype(np.float64)


@dataclass(frozen=True)
class Parts:
    """What the logits of a case are made of, (interests, n) or (n,); `company` is words as they enter a logit."""

    own: Floats
    seed: Floats
    shares: Floats
    company: Floats
    seed_shares: Floats
    log_weights: Floats
    on_topic: Floats


class Week:
    """The papers of the week with vectors and words; texts of interests are embedded once."""

    def __init__(self, papers: Sequence[Paper], calibration: Calibration) -> None:
        self.papers, self.calibration = list(papers), calibration
        self.table = papers_to_table(self.papers)
        self.row = {paper.paper_id: row for row, paper in enumerate(self.papers)}
        self.embedder = load_embedder()
        self.vectors = self.embedder.encode([embedded_text(paper.title, paper.abstract) for paper in self.papers])
        self._of_text: dict[str, NDArray[np.float32]] = {}

    def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._of_text]
        if missing:
            self._of_text |= dict(zip(missing, self.embedder.encode(missing), strict=True))
        return np.array([self._of_text[text] for text in texts])

    def parts(self, case: Case) -> Parts:
        queries = interest_queries(case.interests, options=RankingOptions(), scoring=SCORING)
        lanes = queries.views[1]
        asked = self.vectors_of(queries.texts)
        near = cosines(self.vectors[case.rows], asked).T
        words = index_words(paper_texts(self.table.take(case.rows)))
        found = word_shares(words, queries.texts, background=self.calibration.background, k1=SCORING.bm25_k1).T
        alike = cosines(asked[1:], asked[1:])
        np.fill_diagonal(alike, 1.0)
        return Parts(
            own=near[1:],
            seed=near[0],
            shares=np.nan_to_num(found[1:]),
            company=np.nan_to_num((found[1:] + in_company(found[1:], alike)) / 2),
            seed_shares=np.nan_to_num(found[:1]),
            log_weights=np.log(np.array(lanes.weights))[:, None],
            on_topic=case.on_topic,
        )

    @cached_property
    def likeness(self) -> tuple[Floats, Floats]:
        """(n, n) cosines and TF-IDF cosines between all papers of the week."""
        texts = paper_texts(self.table)
        words = tfidf_cosines(index_words(texts), texts.to_pylist(), background=self.calibration.background)
        return cosines(self.vectors, self.vectors), words


@dataclass(frozen=True)
class Form:
    """One logit: its name, and the meaning and words (interests, n) that it is fitted to, either may be missing."""

    name: str
    meaning: Callable[[Parts], Floats] | None
    words: Callable[[Parts], Floats] | None
    levels: bool = True


FORMS = (
    Form("seed_and_lanes", lambda parts: (parts.own + parts.seed) / 2, lambda parts: parts.company),
    Form("seed_and_lanes_wordless", lambda parts: (parts.own + parts.seed) / 2, None),
    Form("lanes", lambda parts: parts.own, lambda parts: parts.company),
    Form("lanes_wordless", lambda parts: parts.own, None),
    Form("seed", lambda parts: parts.seed[None], lambda parts: parts.seed_shares, levels=False),
    Form("words_only", None, lambda parts: parts.shares),
)


def fitted(form: Form, cases: Sequence[Parts]) -> Logit:
    """Return the coefficients with the least log loss over the cases, each case weighted equally."""
    from scipy.optimize import minimize

    named = [(name, part) for name, part in (("meaning", form.meaning), ("words", form.words)) if part]
    inputs = [np.stack([part(case) for _, part in named]) for case in cases]

    def loss(values: Floats) -> float:
        total = RIDGE * float((values[1:] ** 2).sum())
        for case, given in zip(cases, inputs, strict=True):
            logits = values[0] + np.tensordot(values[1:], given, axes=1)
            total += log_loss(any_of(logits + (case.log_weights if form.levels else 0.0)), case.on_topic) / len(cases)
        return total

    start = np.array([-10.0, *(8.0 for _ in named)])
    found = minimize(loss, start, method="L-BFGS-B", bounds=[(None, None), *((0, None) for _ in named)]).x
    values = {name: rounded(value) for (name, _), value in zip(named, found[1:], strict=True)}
    return Logit(intercept=rounded(found[0]), **values)


def log_loss(logits: Floats, on_topic: Floats) -> float:
    """Summed over papers."""
    return float((np.logaddexp(0.0, logits) - on_topic * logits).sum())


def rounded(value: float) -> float:
    return round(float(value), 3)


def fitted_library(calibration: Calibration, week: Week, cases: Mapping[str, Case]) -> Calibration:
    """The coefficients of liked papers: relevant ones of a profile, or of two, are taken out and said to be liked."""
    chance, examples = np.random.default_rng(11), []
    for group in [(name,) for name in cases] + list(combinations(cases, 2)):
        case = merged([cases[name] for name in group])
        relevant = [np.flatnonzero(np.isin(case.rows, one.rows[one.on_topic > 0])) for one in map(cases.get, group)]
        said = any_of(logits_of(calibration.seed_and_lanes, FORMS[0], week.parts(case)))
        counts = [m for m in LIKED for _ in range(DRAWS)] if len(group) == 1 else LIKED_OF_TWO
        for count in counts:
            if len(group) == 1 and len(relevant[0]) < count + 5:
                continue
            liked = np.unique(np.concatenate([chance.choice(of, count, replace=False) for of in relevant]))
            rest = np.setdiff1d(np.arange(len(case.rows)), liked)
            meaning, words = (of[np.ix_(case.rows[liked], case.rows[rest])] for of in week.likeness)
            examples.append((meaning, words, case.on_topic[rest], said[rest], len(liked)))

    def pooled(*, with_meaning: bool) -> list[tuple[Floats, Floats]]:
        plain = replace(calibration, library=Logit(intercept=0.0, meaning=1.0, words=WORDS_PER_COSINE))
        plain = replace(plain, library_words_only=Logit(intercept=0.0, words=1.0))
        return [
            (library_judged(meaning if with_meaning else None, words, calibration=plain)[0].logits, on_topic)
            for meaning, words, on_topic, _, _ in examples
        ]

    intercept, slope = _line_fitted(pooled(with_meaning=True))
    alone, steepness = _line_fitted(pooled(with_meaning=False))
    found = replace(
        calibration,
        library=Logit(intercept=intercept, meaning=slope, words=rounded(WORDS_PER_COSINE * slope)),
        library_words_only=Logit(intercept=alone, words=steepness),
    )
    return replace(found, library_base=_base(found, examples))


def _line_fitted(examples: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    """Intercept and slope of one part."""
    from scipy.optimize import minimize

    def loss(values: Floats) -> float:
        each = [log_loss(values[0] + values[1] * part, on_topic) / len(part) for part, on_topic in examples]
        return float(np.mean(each)) + RIDGE * values[1] ** 2 / 1000

    found = minimize(loss, np.array([-8.0, 10.0]), method="L-BFGS-B", bounds=[(None, None), (0, None)]).x
    return rounded(found[0]), rounded(found[1])


def _base(calibration: Calibration, examples: Sequence[Any]) -> float:
    """The logit of a library from which on it raises what the interests say."""
    from scipy.optimize import minimize_scalar

    def loss(base: float) -> float:
        total = 0.0
        for meaning, words, on_topic, said, liked in examples:
            by_example = library_judged(meaning, words, calibration=calibration)[0].logits
            share = calibration.library_share * liked / (liked + calibration.library_half)
            total += log_loss(said + share * (by_example - base), on_topic) / len(on_topic)
        return total

    return rounded(minimize_scalar(loss, bounds=(-8, 0), method="bounded").x)


def logits_of(logit: Logit, form: Form, parts: Parts) -> Floats:
    """(interests, n)"""
    meaning = logit.meaning * form.meaning(parts) if form.meaning else 0.0
    words = logit.words * form.words(parts) if form.words else 0.0
    logits: Floats = logit.intercept + meaning + words + (parts.log_weights if form.levels else 0.0)
    return logits


def merged(cases: Sequence[Case]) -> Case:
    """Merge several readers into one."""
    rows = np.unique(np.concatenate([case.rows for case in cases]))
    grades = np.full(len(rows), np.nan)
    for case in cases:
        at = np.searchsorted(rows, case.rows)
        grades[at] = np.fmax(grades[at], case.grades)
    levels = {
        level: [text for case in cases for text in getattr(case.interests, level)]
        for level in ("primary", "secondary", "exploratory")
    }
    return Case(interests=Interests(**levels), rows=rows, grades=grades)


def calibrated(start: Calibration, cases: Sequence[Parts]) -> Calibration:
    """The coefficients of interests, fitted on these cases."""
    return replace(start, **{form.name: fitted(form, cases) for form in FORMS})


def figures(shown: Sequence[str], grades: Mapping[str, int]) -> tuple[float, float, float]:
    """P@5, P@10, nDCG@10 with gain 2^grade - 1; unjudged papers are off topic."""
    gains = [2.0 ** grades.get(paper_id, 0) - 1 for paper_id in shown[:10]]
    best = sorted((2.0**grade - 1 for grade in grades.values()), reverse=True)[:10]
    hits = [grades.get(paper_id, 0) >= ON_TOPIC for paper_id in shown[:10]]

    def discounted(values: Sequence[float]) -> float:
        return float(sum(value / np.log2(place + 2) for place, value in enumerate(values)))

    return sum(hits[:5]) / 5, sum(hits) / 10, discounted(gains) / discounted(best)


def ranked(week: Week, profile: Profile, purpose: str, calibration: Calibration, *, as_of: date) -> pa.Table:
    """Return all rows in final order."""
    content = profile.content
    options = content.ranking if purpose == "own" else content.ranking.model_copy(update={"purpose": purpose})
    rows = filter_papers(week.table, FilterCriteria(content=content, options=options, scoring=SCORING))
    categories = set(content.feed.categories or ())
    mine = [not categories or bool(categories.intersection(paper.categories)) for paper in week.papers]
    kept = np.flatnonzero(np.array(mine) & rows.column("passed").to_numpy())
    queries = interest_queries(content.interests, options=options, scoring=SCORING)
    return rank(
        RankingTask(
            candidates=week.table.take(kept),
            profile=profile,
            options=options,
            as_of=as_of,
            scoring=SCORING,
            queries=queries,
            vectors=Vectors(papers=week.vectors[kept], queries=week.vectors_of(queries.texts)),
        ),
        calibration=calibration,
    ).rows


def background_of(papers: Sequence[Paper]) -> str:
    """Return the lines of `stem_frequencies.tsv`."""
    holders = Counter(one for paper in papers for one in set(stems_in(f"{paper.title} . {paper.abstract}")))
    return "".join(f"{one}\t{count}\n" for one, count in sorted(holders.items()) if count >= FEWEST_HOLDERS)


def record_of(calibration: Calibration) -> dict[str, Any]:
    """Return the content of `calibration.json`."""
    logits = {name: getattr(calibration, name) for name in Calibration.__slots__}
    return {
        "background_papers": calibration.background.papers,
        "background_weight": calibration.background.weight,
        "library": {
            name: getattr(calibration, name) for name in ("library_base", "library_half", "library_share", "nearest")
        },
        "logits": {
            name: {part: value for part, value in asdict(logit).items() if part == "intercept" or value}
            for name, logit in logits.items()
            if isinstance(logit, Logit)
        },
    }


def main() -> None:
    """Fit, judge, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--papers", type=Path, required=True)
    parser.add_argument("--as-of", type=date.fromisoformat, default=date(2026, 3, 15))
    parser.add_argument("--write", action="store_true", help="keep the coefficients in the package")
    asked = parser.parse_args()
    everything = list({paper.paper_id: paper for paper in read_papers(asked.papers)}.values())
    folder = files("paper_assets.ranking")
    kept = json.loads((folder / COEFFICIENTS).read_text(encoding="utf-8"))
    frequencies = background_of(everything)
    kept |= {"background_papers": len(everything), "background_weight": BACKGROUND_WEIGHT}
    start = calibration_from(kept, frequencies=frequencies)
    first = asked.as_of - timedelta(days=6)
    week = Week([paper for paper in everything if paper.day and first <= paper.day <= asked.as_of], start)
    contents = json.loads((asked.lists / "profiles.json").read_text(encoding="utf-8"))
    grades: dict[str, dict[str, int]] = json.loads((asked.lists / "grades.json").read_text(encoding="utf-8"))
    profiles = {name: Profile(name=name, content=profile_content(each, source=name)) for name, each in contents.items()}
    cases = {}
    for name, profile in profiles.items():
        categories = set(profile.content.feed.categories or ())
        rows = [row for row, paper in enumerate(week.papers) if not categories or categories & set(paper.categories)]
        given = [grades[name].get(week.papers[row].paper_id, np.nan) for row in rows]
        cases[name] = Case(profile.content.interests, np.array(rows, dtype=np.intp), np.array(given, dtype=np.float64))
    parts = {name: week.parts(case) for name, case in cases.items()}

    found = fitted_library(calibrated(start, list(parts.values())), week, cases)
    print(json.dumps(record_of(found), indent=2))
    held_out = {name: calibrated(found, [parts[other] for other in parts if other != name]) for name in parts}
    print("\nP@5 / P@10 / nDCG@10 with coefficients fitted on the other profiles (and on all)")
    for purpose in PURPOSES:
        for what in ("final list", "relevance"):
            told = []
            for each in (held_out, dict.fromkeys(parts, found)):
                rows_of = {n: ranked(week, profiles[n], purpose, each[n], as_of=asked.as_of) for n in parts}
                if what == "relevance":
                    rows_of = {n: rows.sort_by([("semantic_relevance", "descending")]) for n, rows in rows_of.items()}
                values = [figures(rows.column("paper_id").to_pylist(), grades[n]) for n, rows in rows_of.items()]
                told.append(" / ".join(f"{value:.3f}" for value in np.mean(values, axis=0)))
            print(f"{purpose:18} {what:11} {told[0]}   ({told[1]})", flush=True)
    if asked.write:
        target = Path(str(folder))
        (target / COEFFICIENTS).write_text(
            json.dumps(record_of(found), indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        (target / FREQUENCIES).write_text(frequencies, encoding="utf-8")
        print(f"written to {target}")


if __name__ == "__main__":
    main()
