"""Determine what is out of date, without the code that makes it: the one definition of due (A2).

`TRACKED` lists for each step the fingerprint of what a partition would be made from now, that of what it was made from,
and what it waits for. `run`, `status`, Health and the daemon's sensor ask it. `status` is to start quickly, so modules
that render pages, parse questions or load what is learned are imported where they are needed; none of them imports this
one.

To add a step, write both fingerprints here or in a module beside its step, add a line to `TRACKED`, and build the
`Step` from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from hashlib import sha256

from paper_assets.delivery.options import load_delivery
from paper_assets.errors import InvalidProfile, named_error
from paper_assets.pipeline.day_inputs import inputs_by_day
from paper_assets.pipeline.profiles import asks_for_rewrites, usable_profile
from paper_assets.pipeline.step import (
    WHOLE,
    Grid,
    Partition,
    Tracked,
    ascending,
    by_profile,
    days_of,
    on_request,
    stale,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.settings import RewritingConfig
from paper_assets.stores.deliveries import deliveries
from paper_assets.stores.digest_files import feed_is_complete, stored_version
from paper_assets.stores.digest_inputs import digests_made, inputs_of_digests
from paper_assets.stores.documents import inputs_of_retrievals, retrievals_of
from paper_assets.stores.embeddings import days_without_vectors
from paper_assets.stores.feedback import NOTHING_RATED, model_inputs, rated_profiles
from paper_assets.stores.papers import day_fingerprints
from paper_assets.stores.ranking_files import saved_file
from paper_assets.stores.rankings import Spans, latest_ranking_day, output_paths, stored_inputs
from paper_assets.stores.rewrite_progress import decided_items
from paper_assets.stores.rewrites import RewriteItem, items_of, rewrite_items
from paper_assets.stores.warehouse import Warehouse

GIVEN_UP_AFTER = timedelta(days=14)  # a rewrite that could not be continued for this long is no longer tried
SENT_WITHIN = timedelta(days=7)  # of its day a digest is sent
_NOTHING_ASKED, NO_REWRITES, UNFINISHED = "no questions", "none", "unfinished"


def embedding_version(papers: str, model: str) -> str:
    """Return the data version of a day's embeddings, which changes with the day's papers or the model."""
    return sha256(f"{papers} {model}".encode()).hexdigest()[:32]


def _embedding_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    """Return the versions of days with papers; nothing without a model, since there is nothing to make."""
    model, days = workspace.embedding_model(), days_of(partitions)
    if model is None or not days:
        return {}
    papers = day_fingerprints(workspace.warehouse, days[0], days[-1])
    return {each: embedding_version(papers[each.of_day], model) for each in partitions if each.of_day in papers}


def _stored_embeddings(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """Return the versions of days on which every paper has a vector."""
    model = workspace.embedding_model()
    if model is None:
        return {}
    unfinished = days_without_vectors(workspace.warehouse, model=model)
    current = _embedding_inputs(workspace, partitions)
    return {each: version for each, version in current.items() if each.of_day not in unfinished}


def _learning_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    found = dict.fromkeys(partitions, NOTHING_RATED)
    rated = set(rated_profiles(workspace.warehouse)) | set(model_inputs(workspace.warehouse))
    if with_ratings := [each for each in partitions if each.of_profile in rated]:
        from paper_assets.pipeline.learning_inputs import inputs_of_model  # imports the learning package

        found |= {each: inputs_of_model(workspace, each.of_profile) for each in with_ratings}
    return found


def _stored_models(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    trained = model_inputs(workspace.warehouse)
    return {each: trained.get(each.of_profile, NOTHING_RATED) for each in partitions}


def with_options(profile: Profile, options: Mapping[str, object]) -> Profile:
    """Override the profile's ranking options by those of the run (G1: run config > profile > default).

    Raises InvalidInput naming the option.
    """
    if not options:
        return profile
    from paper_assets.ranking.gatekeeper import ranking_options  # imports what ranks

    chosen = ranking_options(profile, options)
    return replace(profile, content=profile.content.model_copy(update={"ranking": chosen}))


def _ranking_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    model, llm = workspace.embedding_model(), workspace.load_verifier().model
    asked = [
        (with_options(usable_profile(workspace, name), workspace.options), days)
        for name, days in by_profile(partitions)
    ]
    found = inputs_by_day(workspace.warehouse, asked, model=model, llm=llm, settings=workspace.settings)
    return {
        Partition(day, name): " ".join(inputs) for name, of_days in found.items() for day, inputs in of_days.items()
    }


def _stored_rankings(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """Return what stored rankings were made from; one without its JSON file counts as missing."""
    spans, found = spans_of(partitions), dict[Partition, str | None]()
    with workspace.warehouse.read_together() as opened:
        kept, files = stored_inputs(opened, spans), output_paths(opened, spans)
    for each in partitions:
        day, name = each.of_day, each.of_profile
        if day in kept[name] and saved_file(workspace.settings.rankings_dir, name, files[name].get(day)):
            found[each] = " ".join(map(str, kept[name][day]))
    return found


def spans_of(partitions: Sequence[Partition]) -> Spans:
    """Return the first and the last day of each profile."""
    return {name: (days[0], days[-1]) for name, days in by_profile(partitions)}


def _retrieval_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    profiles = {name: usable_profile(workspace, name) for name, _ in by_profile(partitions)}
    found = dict.fromkeys(partitions, _NOTHING_ASKED)
    asked = [each for each in partitions if profiles[each.of_profile].questions]
    if not asked:
        return found
    from paper_assets.pipeline.question_inputs import inputs_of  # imports what parses questions

    model, judge = workspace.embedding_model(), workspace.load_judge().name
    writer = workspace.load_answering_context().model
    for each in asked:
        found[each] = inputs_of(
            workspace.warehouse,
            profiles[each.of_profile],
            each.of_day,
            model=model,
            judge=judge,
            writer=writer,
            settings=workspace.settings,
        )
    return found


def _stored_retrievals(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """Return what stored answers were made from. A profile that never had questions needs none; removed questions leave
    an empty set once.
    """
    found: dict[Partition, str | None] = {}
    known = inputs_of_retrievals(workspace.warehouse, [(each.of_day, each.of_profile) for each in partitions])
    for each in partitions:
        kept = known.get((each.of_day, each.of_profile))
        empty = kept is None or not retrievals_of(workspace.warehouse, each.of_day, each.of_profile)
        asks = bool(usable_profile(workspace, each.of_profile).questions)
        found[each] = _NOTHING_ASKED if empty and not asks else kept
    return found


def _rewrite_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    found = {}
    for each in partitions:
        profile = usable_profile(workspace, each.of_profile)
        found[each] = _named(_wanted(workspace.warehouse, profile, each.of_day) if asks_for_rewrites(profile) else ())
    return found


def _wanted(warehouse: Warehouse, profile: Profile, day: date) -> list[str]:
    from paper_assets.pipeline.rewrite_items import wanted_items  # imports the rewriting package

    return [item.item for item in wanted_items(warehouse, profile, day)]


def _stored_rewrites(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """Return the requested rewrites if they, and those decided on lately, are finished or wait for a person."""
    warehouse, found = workspace.warehouse, {}
    decided = decided_lately(warehouse, now=workspace.clock())
    requested = items_of(warehouse, [(each.of_day, each.of_profile) for each in partitions])
    for each in partitions:
        asked = requested.get((each.of_day, each.of_profile), [])
        items = rewrite_items(warehouse, dict.fromkeys([*asked, *decided]))
        left = [item for item in items if item.outcome is None]
        unfinished = left and not _all_wait(left, workspace.settings.rewriting)
        found[each] = f"{UNFINISHED}: {_progress(left)}" if unfinished else _named(asked)
    return found


def _progress(items: Sequence[RewriteItem]) -> str:
    """Return what changes with each attempt and decision."""
    return " ".join(f"{item.item} {len(item.attempts)} {len(item.decisions)}" for item in items)


def _all_wait(items: Iterable[RewriteItem], config: RewritingConfig) -> bool:
    from paper_assets.pipeline.rewrite_items import known_step  # imports the rewriting package
    from paper_assets.rewriting.policy import Wait

    return all(isinstance(known_step(item, config=config), Wait) for item in items)


def decided_lately(warehouse: Warehouse, *, now: datetime) -> list[str]:
    """Return unfinished items with a decision. Every run includes them, even if no profile's day requests them any
    more.
    """
    return decided_items(warehouse, since=now - GIVEN_UP_AFTER)


def _rewrites_wait_for(workspace: Workspace, partition: Partition) -> str | None:
    profile = usable_profile(workspace, partition.of_profile)
    if asks_for_rewrites(profile) and workspace.load_verifier().model is None:
        levels = ", ".join(profile.content.rewriting.target_levels)
        return f"no rewrites for {levels}: no language model is set up; set it up with `paper-assets llm set`"
    return None


def _named(items: Iterable[str]) -> str:
    return " ".join(items) or NO_REWRITES


def _digest_inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    asked = {(each.of_profile, each.of_day): each for each in partitions}
    made = digests_made(workspace.warehouse, [*asked])
    named = {key: made[key].papers if key in made else () for key in asked}
    found = inputs_of_digests(workspace.warehouse, named, settings=workspace.settings)
    return {asked[key]: inputs for key, inputs in found.items()}


def _stored_digests(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """Return what the pages were made from; pages that are missing, were edited or wait to be sent count as missing."""
    folder, asked = workspace.settings.digests_dir, {(each.of_profile, each.of_day): each for each in partitions}
    made = digests_made(workspace.warehouse, [*asked])
    found = {asked[key]: each.inputs for key, each in made.items() if stored_version(folder, *key) == each.version}
    # A writer that was killed between a page and the feed: the newest page is made again, and the feed with it.
    newest = {each.profile: each for each in ascending(partitions)}
    undone = {each for profile, each in newest.items() if not feed_is_complete(folder, f"{profile}")}
    due = {profile: _due(workspace, f"{profile}") for profile in newest}
    return {
        each: inputs for each, inputs in found.items() if each not in undone and each.of_day not in due[each.profile]
    }


def _due(workspace: Workspace, profile: str) -> set[date]:
    try:
        return due_days(workspace, profile)
    except InvalidProfile:  # the check reports it
        return set()


def due_days(workspace: Workspace, profile: str) -> set[date]:
    """Return the days of the profile whose digest is due: the newest one, and those that failed within a week.

    Raises InvalidProfile for an unreadable `delivery.json`.
    """
    channels = load_delivery(workspace.settings.profiles_dir, profile).channels
    newest = latest_ranking_day(workspace.warehouse, profile) if channels else None
    if newest is None:
        return set()
    since = workspace.clock().date() - SENT_WITHIN
    tried = deliveries(workspace.warehouse, [profile], since=since)
    due = {each.day for each in tried if each.state == "failed" and each.channel in channels}
    done = {each.channel for each in tried if each.day == newest}
    return due | ({newest} if newest >= since and set(channels) - done else set())


PAPERS = on_request("arxiv_papers", Grid.DAY)  # fetched at hours of the settings
EMBEDDINGS = Tracked(name="paper_embeddings", grid=Grid.DAY, inputs=_embedding_inputs, stored=_stored_embeddings)
LEARNING = Tracked(name="preference_model", grid=Grid.PROFILE, inputs=_learning_inputs, stored=_stored_models)
RANKINGS = Tracked(
    name="gatekeeper", grid=Grid.PROFILE_DAY, inputs=_ranking_inputs, stored=_stored_rankings, in_order=True
)
RETRIEVALS = Tracked(
    name="balanced_retrievals",
    grid=Grid.PROFILE_DAY,
    inputs=_retrieval_inputs,
    stored=_stored_retrievals,
    reads_all_days=True,
)
REWRITES = Tracked(
    name="paper_rewrites",
    grid=Grid.PROFILE_DAY,
    inputs=_rewrite_inputs,
    stored=_stored_rewrites,
    waits_for=_rewrites_wait_for,
    backfills=False,
)
ARCHIVE = on_request("best_practice_archive", Grid.WHOLE)  # due where Dagster knows another version than is stored
DIGESTS = Tracked(  # a decision on a rewrite and a failed delivery make earlier days due
    name="reading_digests",
    grid=Grid.PROFILE_DAY,
    inputs=_digest_inputs,
    stored=_stored_digests,
    days_back=GIVEN_UP_AFTER.days,
)

# In the order in which a day is made; pipeline/steps.py lists the steps in the same order.
TRACKED = (PAPERS, EMBEDDINGS, LEARNING, RANKINGS, RETRIEVALS, REWRITES, ARCHIVE, DIGESTS)


def partitions_of_days(
    step: Tracked, profiles: Mapping[str, Profile], days: Sequence[date], *, first_day: date
) -> list[Partition]:
    """Return the partitions of a step on which the lists of these profiles for these ascending days depend.

    Of a step by day these are all days of the longest window, from `first_day` on.
    """
    if step.grid is Grid.WHOLE:
        return [WHOLE]
    if step.grid is Grid.PROFILE:
        return [Partition(profile=name) for name in profiles]
    if step.grid is Grid.PROFILE_DAY:
        return [Partition(day, name) for name in profiles for day in (days if step.backfills else days[-1:])]
    longest = max((profile.content.feed.window_days for profile in profiles.values()), default=1)
    earliest = max(days[0] - timedelta(days=longest - 1), first_day)
    return [Partition(earliest + timedelta(days=at)) for at in range((days[-1] - earliest).days + 1)]


def late_assets(workspace: Workspace, partitions: Sequence[Partition]) -> dict[Partition, tuple[str, ...]]:
    """Return, for each profile's day, the steps that are out of date, with those that it depends on."""
    late: dict[Partition, list[str]] = {each: [] for each in partitions}
    for step in TRACKED:
        if step.grid is Grid.PROFILE_DAY:
            for each in _late_partitions(step, workspace, partitions):
                late[each].append(step.name)
            continue
        needed = {each: _needed(step, workspace, each) for each in partitions}
        together = ascending({needs for found in needed.values() for needs in found})
        outdated = set(_late_partitions(step, workspace, together))
        for each, needs in needed.items():
            if outdated & needs:
                late[each].append(step.name)
    return {each: tuple(names) for each, names in late.items()}


def waits_of(workspace: Workspace, profile: str, day: date) -> list[str]:
    """Describe what is due for a profile's day and waits for something that no run can provide."""
    partition = Partition(day, profile)
    reasons = {step: step.waits_for(workspace, partition) for step in TRACKED if step.grid is Grid.PROFILE_DAY}
    return [reason for step, reason in reasons.items() if reason and stale(step, workspace, [partition])]


def _needed(step: Tracked, workspace: Workspace, partition: Partition) -> set[Partition]:
    """Return the partitions of a step on which a profile's day depends; without the profile's content, its day."""
    name, first_day = partition.of_profile, workspace.settings.first_day
    try:
        profiles = {name: usable_profile(workspace, name)} if step.grid is Grid.DAY else {}
    except Exception:  # comparing the ranking meets it again, and reports it
        profiles = {}
    if step.grid is Grid.PROFILE:
        return {Partition(profile=name)}
    return set(partitions_of_days(step, profiles, [partition.of_day], first_day=first_day))


def _late_partitions(step: Tracked, workspace: Workspace, partitions: Sequence[Partition]) -> list[Partition]:
    """Return the partitions of which the step is out of date; after an error each is checked alone."""
    try:
        return [each for each in stale(step, workspace, partitions) if step.waits_for(workspace, each) is None]
    except Exception as error:  # what it is made from is missing, or cannot be read: it is not current
        if len(partitions) != 1:
            return [each for alone in partitions for each in _late_partitions(step, workspace, [alone])]
        named_error(error, f"{step.name} of {partitions[0]}")
        return [*partitions]
