"""The bundled example: which of its invented papers are stored, and a profile for a reader without one."""

import json
from functools import cache
from importlib.resources import files

from paper_assets.setup.draft import ProfileDraft
from paper_assets.small_files import is_present
from paper_assets.stores.feedback import last_ratings, rated_profiles
from paper_assets.stores.papers import paper_counts, papers_by_id
from paper_assets.stores.warehouse import Warehouse

PROFILE = ProfileDraft(
    name="example",
    interests=("accelerating large language model inference", "retrieval-augmented generation"),
    secondary=("hallucination and citation faithfulness of language models",),
)


@cache
def example_ids() -> tuple[str, ...]:
    """Return the ids of the invented papers."""
    text = (files("paper_assets.setup") / "example_papers.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines() if line]
    return tuple(dict.fromkeys(str(record.get("paper_id") or record.get("id")) for record in records))


def holds_only_the_example(warehouse: Warehouse) -> bool:
    """Return whether all stored papers are invented, and no imported library would be lost with them."""
    if not is_present(warehouse.path):
        return False
    stored = sum(paper_counts(warehouse).values())
    if not stored or stored > len(example_ids()):
        return False
    if papers_by_id(warehouse, example_ids()).num_rows < stored:
        return False
    ratings = (each for profile in rated_profiles(warehouse) for each in last_ratings(warehouse, profile))
    return not any(each.given_in == "import" for each in ratings)
