"""Store readers' ratings (L1), the preference models trained from them, and what models must forget.

Ratings are appended and never rewritten; the latest rating of a paper by a profile counts. There is one preference
model per profile, replaced as a whole, with the evaluation that decides whether the ranking uses it. This module holds
the queries; learning/ratings.py decides what may be rated by whom.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.stores.warehouse import Warehouse, stored_time, value_of

NOTHING_RATED = "nothing rated"  # the inputs of a model without ratings

RatingValue = Literal["worth", "later", "no"]
Place = Literal["page", "command line", "mcp", "import"]
RATING_VALUES: tuple[RatingValue, ...] = get_args(RatingValue)
Forgettable = Literal["word", "paper"]
FORGETTABLE: tuple[Forgettable, ...] = get_args(Forgettable)
WITHDRAWN = "none"  # the value that removes a paper's rating


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRating:
    """Represent a rating to be stored; `title` and `abstract` only for papers that may not be stored (Z1)."""

    paper_id: str
    rating: str
    title: str | None = None
    abstract: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """Represent a stored rating: value, paper, time, where it was given, and the ranking that showed the paper, if any.

    `title` is the paper's stored title, or else the one given with the rating, or else None.
    """

    place: int
    paper_id: str
    rating: str
    rated_at: datetime
    given_in: str
    ranking_day: date | None
    ranking_inputs: str | None
    title: str | None
    abstract: str | None


def append_ratings(
    warehouse: Warehouse, profile: str, given: Iterable[NewRating], *, given_in: Place, now: datetime
) -> list[str]:
    """Append ratings that differ from the latest one, all or nothing; return the papers with a new rating, in the given
    order.

    A rating records the newest ranking of the profile that showed the paper. Raises StoreBusy, StoreUnwritable.
    """
    with warehouse.writing() as connection:
        latest, new = _last_values(connection, profile), list[NewRating]()
        for each in given:
            if latest.get(each.paper_id, WITHDRAWN) != each.rating:
                latest[each.paper_id] = each.rating
                new.append(each)
        if new:
            first = 1 + value_of(connection, "select coalesce(max(place), 0) from ratings")
            connection.register("incoming", _incoming(new, first))
            connection.execute(
                """
                insert into ratings by name
                with shown_on as (
                    select paper_id, max(day) as day
                    from rankings
                    where profile = $profile and shown
                    group by paper_id
                )
                select
                    incoming.*,
                    $profile as profile,
                    $now::timestamp as rated_at,
                    $given_in as given_in,
                    shown_on.day as ranking_day,
                    ranking_sets.inputs as ranking_inputs
                from incoming
                left join shown_on using (paper_id)
                left join ranking_sets on ranking_sets.day = shown_on.day and ranking_sets.profile = $profile
                """,
                {"profile": profile, "now": stored_time(now), "given_in": given_in},
            )
    return [each.paper_id for each in new]


def last_ratings(warehouse: Warehouse, profile: str) -> list[Rating]:
    """Return the profile's latest rating of each rated paper, in the order in which they were given."""
    if warehouse.answers is not None and profile not in warehouse.once("rated", lambda: rated_profiles(warehouse)):
        return []  # as for most of hundreds of profiles
    return [each for each in _read(warehouse, profile, only_last=True) if each.rating != WITHDRAWN]


def rating_history(warehouse: Warehouse, profile: str) -> list[Rating]:
    """Return every rating ever given in the profile, including removed ones, in the order in which they were given."""
    return _read(warehouse, profile, only_last=False)


def rated_profiles(warehouse: Warehouse) -> list[str]:
    """Return the profiles with at least one rating ever."""
    return warehouse.column("select distinct profile from ratings order by profile")


def delete_ratings(warehouse: Warehouse, profile: str) -> int:
    """Delete the profile's ratings, marks of seen papers and everything that was learned from them.

    Returns the number of ratings.
    """
    with warehouse.writing() as connection:
        count: int = value_of(connection, "select count(*) from ratings where profile = ?", [profile])
        for table in ("ratings", "forgotten", "seen_papers", "preference_models"):
            connection.execute(f"delete from {table} where profile = ?", [profile])  # noqa: S608  # a name of ours
        for kind in ("", "previous_"):
            connection.execute(
                f"update {kind}rankings set learned_words = null, learned_near = null where profile = ?",  # noqa: S608
                [profile],
            )
            connection.execute(
                f"""
                update {kind}ranking_sets set header = json_merge_patch(header, '{{"learning": null}}')
                where profile = ? and header ->> 'learning' is not null
                """,  # noqa: S608
                [profile],
            )
    return count


def _incoming(given: Sequence[NewRating], first: int) -> pa.Table:
    texts = [(name, pa.string()) for name in ("paper_id", "rating", "title", "abstract")]
    rows = [{"place": place, **asdict(each)} for place, each in enumerate(given, first)]
    return pa.Table.from_pylist(rows, pa.schema([("place", pa.int64()), *texts]))


def _last_values(connection: DuckDBPyConnection, profile: str) -> dict[str, str]:
    rows = connection.execute(
        "select paper_id, arg_max(rating, place) from ratings where profile = ? group by paper_id", [profile]
    ).fetchall()
    return dict(rows)


def _read(warehouse: Warehouse, profile: str, *, only_last: bool) -> list[Rating]:
    rows = warehouse.records(
        """
        select
            place,
            ratings.paper_id,
            rating,
            rated_at,
            given_in,
            ranking_day,
            ranking_inputs,
            coalesce(papers.title, ratings.title) as title,
            coalesce(papers.abstract, ratings.abstract) as abstract
        from ratings
        left join papers using (paper_id)
        where profile = $profile
        qualify not $only_last or row_number() over (partition by ratings.paper_id order by place desc) = 1
        order by place
        """,
        {"profile": profile, "only_last": only_last},
    )
    return [Rating(**row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """Represent a profile's linear model, what it was trained on (`inputs`), and its evaluation (`proof`)."""

    profile: str
    inputs: str
    version: str
    proof: Mapping[str, Any]
    vector: NDArray[np.float64]
    words: Mapping[str, float]
    dimensions: NDArray[np.float64]
    rated: tuple[str, ...]
    pull: NDArray[np.float64]


def replace_model(warehouse: Warehouse, model: StoredModel) -> None:
    """Store the model of its profile, replacing the previous one."""
    with warehouse.writing() as connection:
        connection.execute("delete from preference_models where profile = ?", [model.profile])
        connection.execute(
            "insert into preference_models values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                model.profile,
                model.inputs,
                model.version,
                json.dumps(dict(model.proof), sort_keys=True),
                model.vector.tolist(),
                list(model.words),
                list(model.words.values()),
                model.dimensions.tolist(),
                list(model.rated),
                model.pull.tolist(),
            ],
        )


def stored_model(warehouse: Warehouse, profile: str) -> StoredModel | None:
    """Return the profile's model; None if there is none."""
    rows = warehouse.rows("select * from preference_models where profile = ?", [profile])
    if not rows:
        return None
    [(_, inputs, version, proof, vector, words, weights, dimensions, rated, pull)] = rows
    return StoredModel(
        profile=profile,
        inputs=inputs,
        version=version,
        proof=json.loads(proof),
        vector=np.array(vector, dtype=np.float64),
        words=dict(zip(words, weights, strict=True)),
        dimensions=np.array(dimensions, dtype=np.float64),
        rated=tuple(rated),
        pull=np.array(pull, dtype=np.float64),
    )


def model_inputs(warehouse: Warehouse) -> dict[str, str]:
    """Return the inputs fingerprint of each profile's model."""
    return dict(warehouse.rows("select profile, inputs from preference_models"))


def mark_seen(warehouse: Warehouse, profile: str, paper_ids: Iterable[str], *, now: datetime) -> None:
    """Record that the reader has seen papers; nothing is learned from it. Raises StoreBusy, StoreUnwritable."""
    rows = [(profile, each, stored_time(now)) for each in paper_ids]
    with warehouse.writing() as connection:
        if rows:
            connection.executemany("insert into seen_papers values (?, ?, ?) on conflict do nothing", rows)


def unmark_seen(warehouse: Warehouse, profile: str, paper_ids: Iterable[str]) -> None:
    """Remove the mark of `mark_seen` from papers. Raises StoreBusy, StoreUnwritable."""
    warehouse.run(
        "delete from seen_papers where profile = ? and list_contains(?, paper_id)", [profile, list(paper_ids)]
    )


def seen_papers(warehouse: Warehouse, profile: str) -> frozenset[str]:
    """Return the papers that the reader has marked as seen."""
    return frozenset(warehouse.column("select paper_id from seen_papers where profile = ?", [profile]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a profile's model does not learn from: stems of words, and ids of rated papers, each in order of request."""

    words: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()


def forget(warehouse: Warehouse, profile: str, kind: Forgettable, name: str, *, now: datetime) -> None:
    """Record that the profile's model must not learn from a word or paper. Raises StoreBusy, StoreUnwritable."""
    warehouse.run(
        "insert into forgotten values (?, ?, ?, ?) on conflict do nothing",
        [profile, kind, name, stored_time(now)],
    )


def undo_forgetting(warehouse: Warehouse, profile: str, kind: Forgettable, name: str) -> None:
    """Let the profile's model learn from a word or paper again. Raises StoreBusy, StoreUnwritable."""
    warehouse.run("delete from forgotten where profile = ? and kind = ? and name = ?", [profile, kind, name])


def forgotten(warehouse: Warehouse, profile: str) -> Forgotten:
    """Return the words and papers from which the profile's model does not learn."""
    rows = warehouse.rows(
        "select kind, name from forgotten where profile = ? order by forgotten_at, kind, name", [profile]
    )
    return Forgotten(
        words=tuple(name for kind, name in rows if kind == "word"),
        papers=tuple(name for kind, name in rows if kind == "paper"),
    )
