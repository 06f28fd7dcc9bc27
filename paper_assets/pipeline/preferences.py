"""Train and store a profile's `preference_model` from its ratings (SPEC L2, L3).

Belongs here: loading the ratings, storing the trained model, and preparing it for a ranking. Not here: how a model is
trained and weighed (learning/), how it changes a ranking (ranking/preferences.py).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from hashlib import sha256

import numpy as np

from paper_assets.learning.preference_model import SIGNAL_WEIGHTS, Evidence, RatedPapers, rated_papers, train, weigh
from paper_assets.learning.ratings import TrainingInputs, training_inputs_of
from paper_assets.models.embedder import Embedder
from paper_assets.paper import embedded_text, papers_from_table, text_hash
from paper_assets.pipeline.profile_queries import profile_queries, query_vectors
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.staleness import PREFERENCES
from paper_assets.pipeline.step import (
    Bars,
    Columns,
    Grid,
    Link,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Table,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.preferences import (
    LEARNED_DIMENSIONS,
    Preferences,
    scaled,
)
from paper_assets.ranking.rank import RankingTask, Vectors, rank
from paper_assets.stores.embeddings import embedded_with_others, keep_vectors, vectors_of
from paper_assets.stores.feedback import StoredModel, model_inputs, replace_model, stored_model
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "9"  # raise it when the training or the weighing changes
OTHERS = 500  # papers among which the formula judges the rated ones, about as many as a list has candidates
_ANY_DAY = date(2000, 1, 1)  # recency is not learned from, so any day will do
_NOTHING = "nothing rated"


def training_labels(training: TrainingInputs, profile: Profile) -> tuple[dict[str, bool], dict[str, float]]:
    """Return by paper id, in order of time, whether it is liked, and the weight of that: 1 for a rating.

    Imported papers are liked papers, which the library view compares with (G4), and teach nothing. A paper kept for
    later is liked a little, and so is one with a reading signal that is not rated; the strongest signal counts.
    """
    rated = {each.paper_id for each in training.ratings}
    found = [
        (each.rated_at, each.paper_id, each.rating == "worth", 1.0)
        for each in training.ratings
        if each.rating != "later" and each.given_in != "import"
    ]
    if profile.content.ranking.learn_from_reading:
        found += [
            (each.first_at, each.paper_id, True, SIGNAL_WEIGHTS[each.kind])
            for each in training.signals
            if each.paper_id not in rated
        ]
        found += [
            (each.rated_at, each.paper_id, True, SIGNAL_WEIGHTS["shelf"])
            for each in training.ratings
            if each.rating == "later"
        ]
    liked, weights = dict[str, bool](), dict[str, float]()
    for _, paper_id, worth, weight in sorted(found):
        if paper_id not in training.forgotten.papers:
            liked[paper_id] = worth
            weights[paper_id] = max(weight, weights.get(paper_id, 0.0))
    return liked, weights


def _training_inputs(workspace: Workspace, name: str) -> TrainingInputs:
    return training_inputs_of(workspace.warehouse, name, before=workspace.clock().date())


def current_preferences(
    warehouse: Warehouse, profile: Profile, *, model: str | None
) -> tuple[Preferences | None, Evidence | None]:
    """Return the profile's model, weighed by its evidence (None: it has no weight), and the evidence (None: no model).

    `model` is the embedding model's name; without one nothing is learned.
    """
    stored = stored_model(warehouse, profile.name) if model else None
    if stored is None or model is None:
        return None, None
    evidence = _evidence(stored, profile)
    share = evidence.share
    if not share:
        return None, evidence
    vectors, found = vectors_of(warehouse, list(stored.rated), model=model)
    whole = Preferences(
        vector=stored.vector,
        words=stored.words,
        dimensions=stored.dimensions,
        rated=tuple(paper_id for paper_id, known in zip(stored.rated, found, strict=True) if known),
        vectors=vectors[found],
        pull=stored.pull[found],
        version=stored.version,
    )
    return scaled(whole, share), evidence


def evidence_of(warehouse: Warehouse, profile: Profile) -> Evidence | None:
    """Return how much the profile's ratings count, and why; None if nothing was learned yet."""
    stored = stored_model(warehouse, profile.name)
    return _evidence(stored, profile) if stored else None


def _evidence(stored: StoredModel, profile: Profile) -> Evidence:
    return replace(Evidence(**stored.proof), learning=profile.content.ranking.learning)


def preferences_inputs(warehouse: Warehouse, profile: str) -> str | None:
    """Return what identifies the profile's model for its rankings; it changes with each new model. None without one."""
    return model_inputs(warehouse).get(profile)


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Train and weigh each profile's model again if its ratings or its profile have changed."""
    embedder = workspace.embedder()

    def make(partition: Partition) -> bool:
        name, warehouse = partition.of_profile, workspace.warehouse
        profile = usable_profile(workspace, name)
        if embedder:
            _embed_rated(workspace, profile, embedder)
        inputs = _inputs_of(workspace, name)
        if model_inputs(warehouse).get(name, _NOTHING) == inputs:
            return False
        rated = _rated(workspace, profile, embedder)
        evidence = weigh(rated, learning=profile.content.ranking.learning)
        trained = train(rated, evidence.strengths)
        replace_model(
            warehouse,
            StoredModel(
                profile=name,
                inputs=inputs,
                version=trained.version,
                proof=asdict(evidence),
                vector=trained.vector,
                words=trained.words,
                dimensions=trained.dimensions,
                rated=trained.rated,
                pull=trained.pull,
            ),
        )
        workspace.log.info(f"{name}: {evidence.sentence}")
        return True

    new, failures = make_each(partitions, make, progress=workspace.progress)
    return Made(new=new, failures=failures)


def _embed_rated(workspace: Workspace, profile: Profile, embedder: Embedder) -> None:
    """Embed the rated and read papers without a vector: `run` embeds the other papers last, and `start` does not."""
    labels, _ = training_labels(_training_inputs(workspace, profile.name), profile)
    papers = papers_by_id(workspace.warehouse, list(labels))
    _, found = vectors_of(workspace.warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)
    without = papers_from_table(papers.filter(~found))
    if texts := [embedded_text(paper.title, paper.abstract) for paper in without]:
        keep_vectors(workspace.warehouse, list(map(text_hash, texts)), embedder.encode(texts), model=embedder.name)


def _rated(workspace: Workspace, profile: Profile, embedder: Embedder | None) -> RatedPapers:
    """Return the rated papers in the order of rating, without those that were removed or have no vector yet.

    The formula judges them among other papers, as it does in a list: a cosine is standardized among these.
    """
    warehouse = workspace.warehouse
    training = _training_inputs(workspace, profile.name)
    liked, weights = training_labels(training, profile)
    compared = [each for each, _ in _compared(warehouse, profile, liked, model=embedder.name)] if embedder else []
    embedded = set(compared)
    papers = papers_by_id(
        warehouse, [*(each for each in liked if each in embedded), *(each for each in compared if each not in liked)]
    )
    queries, vectors = profile_queries(warehouse, profile, settings=workspace.settings), None
    if embedder and papers.num_rows:
        vectors = Vectors(
            papers=vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)[0],
            queries=query_vectors(warehouse, profile, queries, embedder),
            model=embedder.name,
        )
    by_formula = rank(
        RankingTask(
            candidates=papers,
            profile=profile,
            options=profile.content.ranking,
            as_of=_ANY_DAY,
            scoring=workspace.settings.scoring,
            queries=queries,
            pdf_names=profile.pdf_names,
            vectors=vectors,
        )
    )
    count = sum(paper_id in liked for paper_id in papers.column("paper_id").to_pylist())
    return rated_papers(
        papers.slice(0, count),
        by_formula.rows,
        vectors.papers[:count] if vectors else np.zeros((0, 0), dtype=np.float32),
        liked=liked,
        weights=weights,
        without_words=training.forgotten.words,
        library=vectors.queries[queries.of_liked] if vectors else None,
    )


def _compared(warehouse: Warehouse, profile: Profile, rated: Collection[str], *, model: str) -> list[tuple[str, str]]:
    """Return (id, text hash) of the rated papers with a vector, and of others of their days.

    A new day changes nothing here until one of its papers is rated.
    """
    categories = profile.content.feed.categories
    return embedded_with_others(warehouse, list(rated), categories=categories, most=OTHERS, model=model)


def _inputs_of(workspace: Workspace, name: str) -> str:
    warehouse, profile = workspace.warehouse, usable_profile(workspace, name)
    training, model = _training_inputs(workspace, name), workspace.embedding_model()
    if not training.ratings and not training.signals and name not in model_inputs(warehouse):
        return _NOTHING
    compared = _compared(warehouse, profile, training_labels(training, profile)[0], model=model) if model else []
    parts = (
        CODE_VERSION,
        training.version,
        profile.content_hash,
        model or "",
        standard_calibration().version,
        *profile_queries(warehouse, profile, settings=workspace.settings).texts,
        *(" ".join(each) for each in compared),
    )
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    return {each: _inputs_of(workspace, each.of_profile) for each in partitions}


def _stored(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    kept = model_inputs(workspace.warehouse)
    return {each: kept.get(each.of_profile, _NOTHING) for each in partitions}


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report how many ratings there are, how much they count and why.

    Words and papers that they teach about stay out of the event log, where they could not be erased; the page shows
    them.
    """
    stored = stored_model(workspace.warehouse, partition.of_profile)
    if stored is None:
        return Report(_NOTHING)
    profile = usable_profile(workspace, partition.of_profile)
    evidence = _evidence(stored, profile)
    return Report(
        stored.inputs,
        {
            "dagster/row_count": len(stored.rated),
            "dagster/column_schema": Columns(
                [
                    ("vector", "list<double>", "weight of each component of a paper's vector"),
                    ("words", "list<string>", "stems, most telling first"),
                    ("word_weights", "list<double>", "their weights"),
                    ("dimensions", "list<double>", f"weights of {', '.join(LEARNED_DIMENSIONS)}"),
                    ("rated", "list<string>", "rated papers that it was trained on"),
                    ("pull", "list<double>", "how strongly each draws papers like it"),
                ]
            ),
            "counts": evidence.share,
            "why": evidence.sentence,
            "ratings": Bars(
                {"worth reading": evidence.worth, "not for you": evidence.no, "reading signals": evidence.signals},
                title="Learned from",
            ),
            "gain_on_later_ratings": evidence.gain,
            "pairs_in_order_with": evidence.with_learning,
            "pairs_in_order_without": evidence.without,
            "pairs": evidence.pairs,
            "words_learned": len(stored.words),
            "what_they_teach": Link(f"{workspace.settings.desk_url}/p/{partition.of_profile}/learned"),
            "coefficients": Table(
                ["of", "weight"], list(zip(LEARNED_DIMENSIONS, stored.dimensions.tolist(), strict=False))
            ),
            "version": stored.version,
        },
    )


STEP = Step(
    name=PREFERENCES,
    products=(
        Product(
            name=PREFERENCES,
            description="What the reader's ratings teach about words, meaning and dimensions, how much it counts in "
            "the ranking, and the evidence for that.",
            kinds=frozenset({"duckdb"}),
            report=_report,
            deps=("reader_ratings", "research_profile", "paper_embeddings"),
            any_day=frozenset({"paper_embeddings"}),
        ),
    ),
    grid=Grid.PROFILE,
    group="profiles",
    code_version=CODE_VERSION,
    inputs=_inputs,
    stored=_stored,
    make=_make,
    trigger="new_ratings",
)
