from pathlib import Path

from paper_assets.profile import Profile, profile_content
from paper_assets.stores.profiles import keep_profile, last_good_profile, profile_version
from paper_assets.stores.warehouse import Warehouse


def profile(interest: str) -> Profile:
    content = profile_content({"interests": {"primary": [interest]}}, source="test")
    return Profile(name="ann", content=content, read_ids=frozenset({"2501.12345"}), pdf_names=("2501.12345v1.pdf",))


def test_the_last_good_profile_is_the_one_kept_last_even_when_it_returns(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    first, second = profile("graphs"), profile("proteins")
    assert last_good_profile(warehouse, "ann") is None
    for kept in (first, second, first, first):
        keep_profile(warehouse, kept)
        assert last_good_profile(warehouse, "ann") == kept
    assert profile_version(warehouse, "ann", second.content_hash) == second


def test_one_profile_is_not_another_s_last_good_one(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    keep_profile(warehouse, profile("graphs"))
    assert last_good_profile(warehouse, "bob") is None
