"""Numbers and names that a person has accepted for a paper, though its original does not say them (B2).

A claim is kept in the form in which `rewriting/faithfulness.py` compares it (`claim_key`).
"""

from collections.abc import Iterable
from datetime import datetime

from paper_assets.stores.times import stored_time
from paper_assets.stores.warehouse import Warehouse


def accept_claims(warehouse: Warehouse, paper_id: str, claims: Iterable[str], *, now: datetime) -> None:
    """Remember claims for every rewrite of the paper, those written and those to come."""
    rows = [(paper_id, claim, stored_time(now)) for claim in sorted(set(claims))]
    if rows:
        with warehouse.writing() as connection:
            connection.executemany("insert into accepted_claims values (?, ?, ?) on conflict do nothing", rows)
