"""Store what Semantic Scholar reports about papers (S4), so that an outage of it changes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import pyarrow as pa

from paper_assets.paper import Paper
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class ScholarRecord:
    """Represent the record of one paper; None and empty are unknown."""

    paper_id: str
    affiliations: tuple[str, ...] = ()
    github_url: str | None = None
    citation_count: int | None = None


def keep_records(warehouse: Warehouse, records: Iterable[ScholarRecord]) -> dict[str, ScholarRecord]:
    """Store new values, by paper id; unknown values never replace known ones. Returns the records as they are now."""
    incoming = {record.paper_id: record for record in records}
    before = records_of(warehouse, list(incoming))
    known = {paper_id: _joined(before.get(paper_id), record) for paper_id, record in incoming.items()}
    changed = [record for paper_id, record in known.items() if record != before.get(paper_id)]
    if changed:
        with warehouse.writing() as connection:
            connection.execute(
                "delete from scholar_records where paper_id in (select unnest($ids))",
                {"ids": [record.paper_id for record in changed]},
            )
            connection.register("changed", _table(changed))
            connection.execute("insert into scholar_records by name from changed")
    return known


def records_of(warehouse: Warehouse, paper_ids: Sequence[str]) -> dict[str, ScholarRecord]:
    """Return the records of these papers, by id; unknown papers are omitted."""
    rows = warehouse.records(
        """
        select paper_id, affiliations, github_url, citation_count
        from scholar_records
        where paper_id in (select unnest($ids::varchar[]))
        """,
        {"ids": list(paper_ids)},
    )
    return {row["paper_id"]: ScholarRecord(**row) for row in rows}


def filled(papers: Iterable[Paper], known: Mapping[str, ScholarRecord]) -> list[Paper]:
    """Fill in affiliations and code of papers where arXiv has none; arXiv's values are kept."""
    return [_filled(paper, known[paper.paper_id]) if paper.paper_id in known else paper for paper in papers]


def _filled(paper: Paper, record: ScholarRecord) -> Paper:
    return replace(
        paper,
        affiliations=paper.affiliations or record.affiliations,
        github_url=paper.github_url or record.github_url,
    )


def _joined(before: ScholarRecord | None, now: ScholarRecord) -> ScholarRecord:
    if before is None:
        return now
    return ScholarRecord(
        paper_id=now.paper_id,
        affiliations=now.affiliations or before.affiliations,
        github_url=now.github_url or before.github_url,
        citation_count=before.citation_count if now.citation_count is None else now.citation_count,
    )


def _table(records: Sequence[ScholarRecord]) -> pa.Table:
    kinds = {"affiliations": pa.list_(pa.string()), "citation_count": pa.int64()}
    names = [field.name for field in fields(ScholarRecord)]
    return pa.table(
        {name: pa.array([getattr(each, name) for each in records], kinds.get(name, pa.string())) for name in names}
    )
