"""Rank many profiles' days on a Dask cluster: day after day, the profiles of one day in parallel (X4).

This process alone reads and writes the stores; only the rankings are computed elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from paper_assets.cluster.client import Cluster, Connection, connected
from paper_assets.cluster.tasks import rankings_of
from paper_assets.errors import ClusterUnavailable, PaperAssetsError, RateLimited, StoreBusy
from paper_assets.pipeline.rankings import Work, finish_ranking, start_ranking
from paper_assets.pipeline.step import Partition, ascending, one_by_one
from paper_assets.ranking.rank import Ranking, rank
from paper_assets.ranking.task import RankingTask
from paper_assets.ranking.verifier import Verifier

_ENDS_ALL = (RateLimited, StoreBusy, ClusterUnavailable)


@dataclass(slots=True)
class _Done:
    new: dict[Partition, bool] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)


def day_by_day(
    cluster: Cluster,
    partitions: Sequence[Partition],
    *,
    prepare: Callable[[Partition], bool],
    work_of: Callable[[Partition], Work],
    verifier: Verifier,
    tell: Callable[[Partition, bool], None] = lambda partition, new: None,
) -> tuple[dict[Partition, bool], dict[Partition, PaperAssetsError]]:
    """Rank each partition; `prepare` makes its candidates and returns whether they are new, `work_of` starts its
    ranking.

    As in `one_by_one`, a profile's later days depend on its earlier ones, and a failure stops no other profile; after a
    failure of the cluster or a store nothing more is tried. Returns (new, failures).
    """
    done = _Done()
    try:
        with connected(cluster, model=None) as connection:
            for _, of_day in groupby(ascending(partitions), key=lambda each: each.of_day):
                failed = {each.profile for each in done.failures}
                asked = [each for each in of_day if each.profile not in failed]
                _one_day(connection, asked, done, prepare=prepare, work_of=work_of, verifier=verifier)
                for each in asked:
                    if each in done.new:
                        tell(each, done.new[each])
                if any(
                    isinstance(each, RateLimited | StoreBusy | ClusterUnavailable) for each in done.failures.values()
                ):
                    break
    except ClusterUnavailable as failure:
        left = [each for each in ascending(partitions) if each not in done.new and each not in done.failures]
        done.failures |= dict.fromkeys(left[:1], failure)
    return done.new, done.failures


def _one_day(
    connection: Connection,
    asked: list[Partition],
    done: _Done,
    *,
    prepare: Callable[[Partition], bool],
    work_of: Callable[[Partition], Work],
    verifier: Verifier,
) -> None:
    works: dict[Partition, Work] = {}
    tasks: dict[Partition, RankingTask] = {}

    def begin(partition: Partition) -> bool:
        prepare(partition)
        works[partition] = work_of(partition)
        task = start_ranking(works[partition])
        if task is not None:
            tasks[partition] = task
        return task is not None

    begun_new, failures = one_by_one(asked, begin)
    done.failures |= failures
    done.new |= {partition: False for partition, new in begun_new.items() if not new}
    try:
        for partition, found in _found(connection, tasks, verifier):
            try:
                if isinstance(found, PaperAssetsError):
                    raise found
                done.new[partition] = finish_ranking(works[partition], found)
            except ClusterUnavailable:
                raise
            except PaperAssetsError as failure:
                done.failures[partition] = failure
    finally:
        for work in works.values():
            work.close()


def _found(
    connection: Connection, tasks: Mapping[Partition, RankingTask], verifier: Verifier
) -> Iterator[tuple[Partition, Ranking | PaperAssetsError]]:
    """Yield rankings as they arrive. Rank in this process if a language model is used or only one profile has work."""
    asks = [each for each, task in tasks.items() if verifier.model and task.options.enable_llm_verification]
    sent = [each for each in tasks if each not in asks]
    if len(sent) == 1:
        asks, sent = [*asks, *sent], []
    # A verifier with a model holds its key and the store; it is not used here.
    travelling = verifier if verifier.model is None else None
    if sent:
        for place, found in rankings_of(connection, [tasks[each] for each in sent], verifier=travelling):
            yield sent[place], found
    for each in asks:
        yield each, rank(tasks[each], verifier=verifier)
