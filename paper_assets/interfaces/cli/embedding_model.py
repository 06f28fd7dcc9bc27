"""Command `model`: list the embedding models, change to another one, remove the vectors of one."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    environment,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
)
from paper_assets.models.embedder import plain_name
from paper_assets.setup.embedding_model import MEASURED, keep_model, named_or_placed
from paper_assets.stores.embeddings import StoredModel, forget_vectors, stored_models
from paper_assets.text.numbers import count_of

model = typer.Typer(
    name="model",
    help="Choose the embedding model, which compares papers by meaning.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ModelName = Annotated[
    str, typer.Argument(metavar="NAME", help="A name such as all-mpnet-base-v2, or the folder of a model.")
]


@model.command(name="list")
def list_models(as_json: AsJson = False) -> None:
    """List the embedding models that were measured, and those that have vectors here."""
    stored = {plain_name(each.name): each for each in stored_models(open_warehouse())}
    in_use, measured = plain_name(read_settings().embedding_model), {each.name: each for each in MEASURED}
    names = list(dict.fromkeys([in_use, *measured, *stored]))
    if as_json:
        return print_json([{"name": name, "in_use": name == in_use, **_stored(stored.get(name))} for name in names])
    rows = []
    for name in names:
        known, vectors = measured.get(name), stored.get(name)
        size = f"{vectors.vectors:,} ({vectors.vectors * vectors.dimension * 4 / 1e6:,.0f} MB)" if vectors else "none"
        note = f"{known.price}; {known.gain}" if known else "not measured"
        rows.append((name, "in use" if name == in_use else "", size, note))
    print_table("embedding models", ["name", "", "vectors", "price and gain"], rows)


def _stored(found: StoredModel | None) -> dict[str, object]:
    return {"vectors": found.vectors, "dimension": found.dimension} if found else {"vectors": 0, "dimension": None}


@model.command()
def use(name: ModelName) -> None:
    """Use another embedding model: embed the papers that the newest lists read, then change to it.

    Lists stay as they are until all their papers have vectors of the new model. Stopped half-way, nothing has changed,
    and the same command goes on from there. The next run makes the lists and embeds all other papers, the newest first.
    """
    from paper_assets.pipeline.embeddings import embed_window  # imports DuckDB and numpy
    from paper_assets.pipeline.workspace import open_workspace

    settings, chosen = read_settings(), named_or_placed(name)
    settings = settings.model_copy(update={"embedding_model": chosen})
    workspace = open_workspace(settings, environment(), clock=lambda: datetime.now(UTC))
    with progress_bar(f"embedding papers with {plain_name(chosen)}") as count:
        embedded = embed_window(replace(workspace, progress=count))
    keep_model(settings.home, chosen, os.environ)
    say(
        f"{plain_name(chosen)} is in use ({count_of(embedded, 'paper')} embedded). `paper-assets run` makes the lists "
        "and embeds the other papers. `paper-assets up` restarts its programs itself; restart a desk that you started."
    )


@model.command()
def forget(name: ModelName) -> None:
    """Remove the vectors of a model that is not in use."""
    warehouse, chosen = open_warehouse(), plain_name(named_or_placed(name))
    if chosen == plain_name(read_settings().embedding_model):
        raise InvalidInput(f"{chosen} is in use; change to another model first")
    found = [each for each in stored_models(warehouse) if plain_name(each.name) == chosen]
    if not found:
        raise InvalidInput(f"no vectors of {chosen[:80]!r} are stored; `paper-assets model list` names the models")
    for each in found:
        forget_vectors(warehouse, model=each.name)
    say(f"{count_of(sum(each.vectors for each in found), 'vector')} of {chosen} removed.")
