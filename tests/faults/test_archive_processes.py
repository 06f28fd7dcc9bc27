"""Concurrent and killed processes on one archive lose and double nothing (B6)."""

import random
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from paper_assets.rewriting.best_practices import retrieve_best_practices, sync_archive
from paper_assets.stores.best_practices import best_practices
from paper_assets.stores.vectors import self_check
from tests.chroma_folder import entries
from tests.invented_papers import process
from tests.rewriting.invented_archive import fill, invented_archive, keep, practice

EACH = 3


def archive_some(answers, folder: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    """Archive some rewrites of this process, alternating with some whose originals all processes share."""
    archive = invented_archive(folder)
    answers.send("ready")
    answers.recv()
    for number in range(EACH):
        mine = keep(archive, f"Original {number} of {name}.")
        shared = keep(archive, f"Original {number} of all.", f"Written by {name}.")
        answers.send((mine.id, shared.id, mine.note, shared.note))


def test_two_processes_archiving_at_once_lose_nothing_and_keep_one_of_each(tmp_path: Path) -> None:
    with ExitStack() as running:
        writers = [running.enter_context(process(archive_some, tmp_path, name))[1] for name in ("one", "other")]
        assert [answers.recv() for answers in writers] == ["ready"] * 2
        for answers in writers:
            answers.send("go")
        answers_by_writer = [[answers.recv() for _ in range(EACH)] for answers in writers]
    archive = invented_archive(tmp_path)
    kept = {each.id: each.original_text for each in best_practices(archive.warehouse, archive.collection)}
    assert sorted(kept.values()) == sorted(
        f"Original {number} of {name}." for number in range(EACH) for name in ("one", "other", "all")
    )
    own = [mine for each in answers_by_writer for mine, _, _, _ in each]
    shared = [(first[1], second[1]) for first, second in zip(*answers_by_writer, strict=True)]
    assert None not in own
    assert all((first is None) != (second is None) for first, second in shared), "one was kept, the other refused"
    assert {note for each in answers_by_writer for *_, first, second in each for note in (first, second)} == {None}
    assert sync_archive(archive).upserted == 0, "Chroma has followed already"
    ids = sorted(kept)
    assert archive.embedder is not None
    vectors = archive.embedder.encode([kept[each] for each in ids])
    assert self_check(archive.index, archive.collection, ids, vectors) == []


def recall_when_asked(answers, folder: Path) -> None:  # type: ignore[no-untyped-def]
    archive = invented_archive(folder)
    while True:
        question = answers.recv()
        answers.send([each.original_text for each in retrieve_best_practices(archive, question, "public")])


def test_a_process_that_recalls_sees_what_another_keeps_and_removes(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path)
    with process(recall_when_asked, tmp_path) as (_, answers):
        for number in range(3):
            done = keep(archive, f"Sheep number {number}.")
            answers.send(f"Sheep number {number}.")
            assert f"Sheep number {number}." in answers.recv()
        archive.warehouse.run("delete from best_practices where id = ?", [done.id])
        answers.send("Sheep number 2.")
        assert "Sheep number 2." not in answers.recv()


def archive_for_ever(answers, folder: Path) -> None:  # type: ignore[no-untyped-def]
    archive = invented_archive(folder)
    for number in count():
        answers.send(keep(archive, f"Original {number}.").id)


def test_a_process_killed_at_any_moment_leaves_an_archive_that_still_works(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path)
    fill(archive, [practice(number) for number in range(20)])
    chance = random.Random(3)
    for _ in range(3):
        seen: set[str] = set()
        with process(archive_for_ever, tmp_path) as (writer, answers):
            seen.add(answers.recv())
            writer.join(chance.uniform(0, 0.5))  # it does not end: kill it at some moment of the next one
            writer.kill()
            writer.join()
            with suppress(EOFError):
                while True:
                    seen.add(answers.recv())
        kept = best_practices(archive.warehouse, archive.collection)
        assert seen <= {each.id for each in kept}
        assert len({each.original_text for each in kept}) == len(kept)
        sync_archive(archive)
        held = entries(archive.index, archive.collection)
        assert {name: entry.document for name, entry in held.items()} == {each.id: each.text for each in kept}
