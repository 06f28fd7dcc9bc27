"""The Chroma collections of documents, one per data type and named after it, made from what the database holds.

Abstracts are synced by day (the asset knows which), passages and rewrites all at once, spread over 256 partitions by
the hash of their ids, so that one document more or less touches few others. Metadata are the fields that filters name,
in Chroma's own types; what is unknown is left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from paper_assets.stores.copied_batches import copied_batches
from paper_assets.stores.documents import FIELDS, DataType
from paper_assets.stores.index_content import VectorBatch
from paper_assets.stores.vectors import SyncReport, VectorIndex, sync
from paper_assets.stores.warehouse import Warehouse

FORM = 1  # of the metadata; with a higher one every index is brought up to date

_PARTITIONS = tuple(f"{number:02x}" for number in range(256))


def sync_documents(
    warehouse: Warehouse, index: VectorIndex, data_type: Literal["fulltext", "rewrite"], *, model: str
) -> SyncReport:
    """Make the collection hold the documents of the type that have a vector of `model`; nothing is opened if it does.

    Raises StoreBusy, StoreUnwritable, StoreError; the next sync puts all right.
    """
    with warehouse.reading() as connection:
        found = connection.execute(
            """
            select left(sha256(doc_id), 2) as partition, sha256(string_agg(held::varchar, chr(10) order by doc_id))[:32]
            from (select * exclude (text) from retrievable where data_type = $data_type) as held
            semi join (from embeddings where model = $model) using (text_hash)
            group by partition
            """,
            {"data_type": data_type, "model": model},
        ).fetchall()
    versions = {**dict.fromkeys(_PARTITIONS, "empty"), **{name: f"{FORM} {content}" for name, content in found}}

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        return document_batches(warehouse, data_type, partitions, model=model)

    return sync(index, data_type, model=model, wanted=versions, everything=lambda: versions, batches=batches)


def document_batches(
    warehouse: Warehouse, data_type: DataType, partitions: Sequence[str], *, model: str
) -> Iterator[VectorBatch]:
    """The documents of the partitions (abstracts: days like 2026-03-01) that have a vector, with their metadata.

    The warehouse is not held while the caller takes them.
    """
    batches = copied_batches(
        warehouse,
        """
        with placed as (
            select
                *,
                case data_type
                    when 'abstract' then strptime(date_int::varchar, '%Y%m%d')::date::varchar
                    else left(sha256(doc_id), 2)
                end as partition
            from retrievable
            where data_type = $data_type
        )
        select * exclude (text, text_hash, origin, withdrawn)
        from placed
        join (select unnest($partitions::varchar[]) as partition) using (partition)
        join (from embeddings where model = $model) using (text_hash)
        """,
        {"data_type": data_type, "partitions": list(partitions), "model": model},
    )
    for batch in batches:
        yield from _by_partition(batch)


def _by_partition(batch: Any) -> Iterator[VectorBatch]:
    ids = batch["doc_id"].to_pylist()
    vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)
    metadatas = [{**row, "categories": row["categories"] or None} for row in batch.select(FIELDS).to_pylist()]
    names, of_row = np.unique(batch["partition"].to_numpy(zero_copy_only=False), return_inverse=True)
    order = np.argsort(of_row, kind="stable")
    for name, rows in zip(names.tolist(), np.split(order, np.cumsum(np.bincount(of_row))[:-1]), strict=True):
        yield VectorBatch(
            partition=name,
            ids=[ids[row] for row in rows],
            vectors=vectors[rows],
            metadatas=[metadatas[row] for row in rows],
        )
