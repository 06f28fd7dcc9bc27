"""Train and store a profile's `preference_model` from its ratings (SPEC L2, L3).

Belongs here: loading the ratings, storing the trained model, and preparing it for a ranking. Not here: how a model is
trained and weighed (learning/), how it changes a ranking (ranking/preferences.py).
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date

import numpy as np

from paper_assets.learning.preference_model import Evidence, RatedPapers, rated_papers, train, weigh
from paper_assets.models.embedder import Embedder
from paper_assets.paper import embedded_text, papers_from_table, text_hash
from paper_assets.pipeline.day_inputs import profile_queries, query_vectors
from paper_assets.pipeline.learning_inputs import (
    CODE_VERSION,
    compared_papers,
    inputs_of_model,
    training_inputs,
    training_labels,
)
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.staleness import LEARNING
from paper_assets.pipeline.step import (
    Columns,
    Link,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Table,
    bars,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.preferences import (
    LEARNED_DIMENSIONS,
    Preferences,
    scaled,
)
from paper_assets.ranking.rank import RankingTask, Vectors, rank
from paper_assets.stores.embeddings import keep_vectors, vectors_of
from paper_assets.stores.feedback import NOTHING_RATED, StoredModel, model_inputs, replace_model, stored_model
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse

_ANY_DAY = date(2000, 1, 1)  # recency is not learned from, so any day will do


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
        inputs = inputs_of_model(workspace, name)
        if model_inputs(warehouse).get(name, NOTHING_RATED) == inputs:
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
    labels = training_labels(training_inputs(workspace.warehouse, profile.name))
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
    training = training_inputs(warehouse, profile.name)
    liked = training_labels(training)
    compared = [each for each, _ in compared_papers(warehouse, profile, liked, model=embedder.name)] if embedder else []
    embedded = set(compared)
    papers = papers_by_id(
        warehouse, [*(each for each in liked if each in embedded), *(each for each in compared if each not in liked)]
    )
    queries, vectors = profile_queries(warehouse, profile, settings=workspace.settings), None
    if embedder and papers.num_rows:
        vectors = Vectors(
            papers=vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)[0],
            queries=query_vectors(warehouse, queries, embedder),
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
        without_words=training.forgotten.words,
        library=vectors.queries[queries.of_liked] if vectors else None,
    )


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report how many ratings there are, how much they count and why.

    Words and papers that they teach about stay out of the event log, where they could not be erased; the page shows
    them.
    """
    stored = stored_model(workspace.warehouse, partition.of_profile)
    if stored is None:
        return Report(NOTHING_RATED)
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
            "ratings": bars({"worth reading": evidence.worth, "not for you": evidence.no}, title="Learned from"),
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
    tracked=LEARNING,
    products=(
        Product(
            name=LEARNING.name,
            description="What the reader's ratings teach about words, meaning and dimensions, how much it counts in "
            "the ranking, and the evidence for that.",
            kinds=frozenset({"duckdb"}),
            report=_report,
            deps=("reader_ratings", "research_profile", "paper_embeddings"),
            any_day=frozenset({"paper_embeddings"}),
        ),
    ),
    group="profiles",
    code_version=CODE_VERSION,
    make=_make,
)
