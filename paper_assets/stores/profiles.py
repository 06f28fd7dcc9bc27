"""Every content of a profile that something was computed from, by hash; the newest is the last good one (A1)."""

import json

from paper_assets.profile import Profile, profile_from_mapping, profile_to_mapping
from paper_assets.stores.warehouse import Warehouse


def keep_profile(warehouse: Warehouse, profile: Profile) -> None:
    """Remember the profile as the newest under its name; nothing is written if it is that already."""
    newest = last_good_profile(warehouse, profile.name)
    if newest and newest.content_hash == profile.content_hash:
        return
    key = {"profile": profile.name, "hash": profile.content_hash}
    with warehouse.writing() as connection:
        connection.execute("delete from profile_versions where profile = $profile and hash = $hash", key)
        connection.execute(
            """
            insert into profile_versions
            select $profile, $hash, $content, coalesce(max(place), 0) + 1
            from profile_versions
            """,
            {**key, "content": json.dumps(profile_to_mapping(profile), ensure_ascii=False)},
        )


def last_good_profile(warehouse: Warehouse, name: str) -> Profile | None:
    """The content that the profile's newest results were computed from; None if there is none."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select content from profile_versions where profile = ? order by place desc limit 1", [name]
        ).fetchall()
    return profile_from_mapping(name, json.loads(rows[0][0])) if rows else None


def profile_version(warehouse: Warehouse, name: str, content_hash: str) -> Profile | None:
    """The content a ranking's `profile_hash` stands for; None if it is not kept."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select content from profile_versions where profile = ? and hash = ?", [name, content_hash]
        ).fetchall()
    return profile_from_mapping(name, json.loads(rows[0][0])) if rows else None
