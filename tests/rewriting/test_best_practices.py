"""Test which rewrites are archived, which are refused and why, and which are recalled (B2, B3, TC7, TC8)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import load_embedder
from paper_assets.rewriting.best_practices import Archive, most_relevant, remove, retrieve_best_practices
from paper_assets.rewriting.measures import clean_keywords, copied_share, keywords_of
from paper_assets.settings import RetrievalConfig, RewritingConfig
from paper_assets.stores.best_practices import BestPractice, best_practice, best_practices
from paper_assets.stores.chroma import VectorIndex
from tests.chroma_folder import entries
from tests.counted_texts import share
from tests.rewriting.invented_archive import NOW, fill, invented_archive, invented_embedder, keep, practice


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return invented_archive(tmp_path)


def kept(archive: Archive) -> list[str]:
    return [each.original_text for each in best_practices(archive.warehouse, archive.collection)]


# keeping


@pytest.mark.parametrize("score", [0, 92, 94])
def test_a_rewrite_below_95_is_refused(archive: Archive, score: int) -> None:
    refused = keep(archive, "An original.", score=score)
    assert (refused.id, refused.refused) == (None, f"score {score} is below 95")
    assert kept(archive) == []


def test_a_rewrite_from_95_on_is_kept_with_all_that_is_known_of_it(archive: Archive) -> None:
    done = keep(archive, "An original.", "A rewrite.", score=95, keywords=["two words", "a, comma", "two words"])
    assert done.refused is None and done.note is None and done.id is not None
    assert best_practice(archive.warehouse, archive.collection, done.id) == practice(
        1,
        id=done.id,
        text="A rewrite.",
        original_text="An original.",
        score=95,
        target_level="public",
        keywords=("two words", "a comma"),
        made_at=NOW,
        category="cs.CL",
    )


def test_texts_and_keywords_are_kept_masked_and_masking_can_be_switched_off(tmp_path: Path) -> None:
    texts = {"original": "We call 010-1234-5678 (arXiv:2501.12345).", "rewrite": "They wrote to ada@example.edu."}
    masked, bare = (
        invented_archive(tmp_path / "a"),
        invented_archive(tmp_path / "b", config=RewritingConfig(mask_pii=False)),
    )
    for each in (masked, bare):
        assert keep(each, texts["original"], texts["rewrite"], keywords=["calls", "bo@example.edu"]).id
    [found] = best_practices(masked.warehouse, masked.collection)
    assert found.original_text == "We call *** (arXiv:2501.12345)."
    assert (found.text, found.keywords) == ("They wrote to ***.", ("calls", "***"))
    assert kept(bare) == [texts["original"]]


def test_texts_that_differ_only_in_a_phone_number_are_the_same_original(archive: Archive) -> None:
    first = keep(archive, "Call 010-1234-5678 for data.", "One.")
    refused = keep(archive, "Call 010-9876-5432 for data.", "Two.")
    assert refused.refused is not None and str(first.id) in refused.refused


@pytest.mark.parametrize(("cosine", "allowed"), [(0.9499, True), (0.95, False)])
def test_an_original_like_one_of_the_same_level_is_refused(tmp_path: Path, cosine: float, allowed: bool) -> None:
    vectors = {"first": [1.0], "second": [cosine, float(np.sqrt(1 - cosine**2))]}
    archive = invented_archive(tmp_path, invented_embedder(vectors))
    first = keep(archive, "first")
    again = keep(archive, "second")
    assert (again.id is not None) == allowed
    if not allowed:
        assert again.refused == f"its original is like that of {first.id}, kept for the same level with 96"
    assert keep(archive, "second", target_level="expert").id is not None, "another level is another matter"


def test_a_better_rewrite_of_the_same_original_takes_the_place_of_the_weaker_one(archive: Archive) -> None:
    weak = keep(archive, "An original.", "A rewrite.", score=95)
    other = keep(archive, "Another one.", "Its rewrite.", paper_id="2603.00002")
    better = keep(archive, "An original.", "A better rewrite.", score=98)
    assert better.id not in (None, weak.id)
    held = best_practices(archive.warehouse, archive.collection)
    assert {each.id for each in held} == {better.id, other.id}
    assert len(entries(archive.index, archive.collection)) == 2, "Chroma follows"
    worse = keep(archive, "An original.", "Yet another rewrite.", score=97)
    assert worse.refused == f"its original is like that of {better.id}, kept for the same level with 98"


def test_a_better_rewrite_of_another_paper_like_it_replaces_nothing(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path, invented_embedder({"first": [1.0], "second": [0.97, 0.243]}))
    first = keep(archive, "first", paper_id="2603.00001", score=95)
    assert keep(archive, "second", paper_id="2603.00002", score=99).refused is not None
    assert [each.id for each in best_practices(archive.warehouse, archive.collection)] == [first.id]


def test_the_same_rewrite_given_twice_is_kept_once_under_one_id(archive: Archive) -> None:
    first = keep(archive, "An original.", "A rewrite.")
    shown = best_practices(archive.warehouse, archive.collection)
    # A process killed after keeping it does it again, and by then recalls its own rewrite as an example.
    again = keep(archive, "An original.", "A rewrite.", shown=shown)
    assert (again.id, again.refused) == (first.id, None)
    assert len(kept(archive)) == 1


EXAMPLE = (
    "Picture a library in which every book whispers its summary to those who walk by. The researchers built a small "
    "program that listens to these whispers and finds the right shelf in a second."
)


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        (EXAMPLE, True),
        (EXAMPLE.upper().replace(".", "!"), True),
        (EXAMPLE.replace("library", "museum").replace("book", "painting").replace("shelf", "hall"), True),
        (
            "Each sound we hear reaches both ears. This study shows how machines use the small delay between them.",
            False,
        ),
        (
            "Picture a library in which every sound has its place. Machines can learn from the delay between two ears.",
            False,
        ),
    ],
    ids=["word for word", "other case and marks", "nouns exchanged", "its own words", "same opening"],
)
def test_a_rewrite_that_copies_a_shown_example_is_refused(archive: Archive, text: str, copy: bool) -> None:
    example = practice(7, text=EXAMPLE)
    done = keep(archive, "Sound localisation with two microphones.", text, shown=[practice(8), example])
    assert (done.refused is not None) == copy
    if copy:
        assert str(done.refused).startswith(f"copies the example {example.id}: ")
        assert keep(archive, "Sound localisation with two microphones.", text).id, "not shown, not copied"


def test_text_of_the_original_is_not_a_copy_of_an_example_that_contains_it_too() -> None:
    shared = "retrieval augmented generation with cited passages of long documents"
    assert copied_share(f"We present {shared}.", f"They show {shared}.", original="Nothing of it.") > 0.7
    assert copied_share(f"We present {shared}.", f"They show {shared}.", original=f"On {shared}.") == 0
    assert copied_share("Two words", "two WORDS.", original="") == 1
    assert copied_share("", "", original="") == 0
    assert copied_share("深層学習で文書を検索する手法", "深層学習で文書を検索する方法", original="") > 0.7


def test_without_an_embedding_model_nothing_is_kept_but_words_still_find(archive: Archive) -> None:
    fill(archive, [practice(number) for number in range(9)])
    blind = replace(archive, embedder=None)
    assert "no embedding model" in str(keep(blind, "An original.").refused)
    found = retrieve_best_practices(blind, "subject6", "public")
    assert [each.id for each in found] == [practice(6).id]


def test_empty_texts_are_refused(archive: Archive) -> None:
    assert keep(archive, "An original.", " \n").refused == "there is no text"
    assert keep(archive, " ", "A rewrite.").refused == "there is no text"


def test_keywords_are_taken_from_the_original_where_none_are_given(archive: Archive) -> None:
    text = "Sparse attention for long documents. Sparse attention halves the memory of long transformers."
    done = keep(archive, text)
    found = best_practice(archive.warehouse, archive.collection, str(done.id)).keywords
    assert found[0] == "sparse attention"
    assert "the" not in found and len(found) == 5
    assert keywords_of("") == ()
    assert clean_keywords([" a,b ", "", "a b"]) == ("a b",)


# Chroma follows


def test_chroma_holds_exactly_what_was_kept(archive: Archive) -> None:
    one = keep(archive, "The original.", "The rewrite.", keywords=["sheep", "memory"])
    keep(archive, "Another original.", category=None)
    held = entries(archive.index, "optim_best_practices_v1")[str(one.id)]
    assert held.document == "The rewrite."
    assert archive.embedder is not None
    assert np.allclose(held.vector, archive.embedder.encode(["The original."]), atol=1e-6), "of the original"
    assert held.metadata == {
        "original_text": "The original.",
        "score": 96,
        "target_level": "public",
        "keywords": "sheep, memory",
        "timestamp": "2026-03-02T09:30:00+00:00",
        "model_version": "actor-1",
        "paper_id": "2603.00001",
        "category": "cs.CL",
    }
    assert len(entries(archive.index, archive.collection)) == 2


def test_one_removed_is_gone_from_the_table_from_chroma_and_from_memory(archive: Archive) -> None:
    gone, stays = keep(archive, "The original."), keep(archive, "Another original.")
    assert len(retrieve_best_practices(archive, "The original.", "public")) == 2
    assert remove(archive, str(gone.id)) is None
    assert list(entries(archive.index, archive.collection)) == [stays.id]
    assert [each.id for each in retrieve_best_practices(archive, "The original.", "public")] == [stays.id]
    with pytest.raises(InvalidInput, match=r"no best practice .* in optim_best_practices_v1; .*archive list"):
        remove(archive, str(gone.id))


def test_nothing_is_lost_where_chroma_cannot_be_written(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    broken = replace(archive, index=VectorIndex(tmp_path / "file", deadline=0.1))
    done = keep(broken, "The original.")
    assert done.id is not None and "the index follows later" in str(done.note)
    assert keep(archive, "Another original.").note is None
    assert len(entries(archive.index, archive.collection)) == 2, "the next one takes it along"


# recall


def recall(archive: Archive, question: str, level: str = "public", n: int = 3) -> list[str]:
    return [each.id for each in retrieve_best_practices(archive, question, level, n)]


def test_recall_is_of_the_level_only_and_best_score_first(archive: Archive) -> None:
    fill(archive, [practice(number, score=92 + number) for number in range(6)])
    assert recall(archive, "subject0 subject1 subject2 subject3") == [practice(3).id, practice(0).id]


def test_the_most_relevant_is_shown_however_well_the_others_scored(tmp_path: Path) -> None:
    vectors = {"question": [1.0], "right": [0.8, 0.6], **{f"other {n}": [0.5, 0.1 * n, 0.8] for n in range(12)}}
    archive = invented_archive(tmp_path, invented_embedder(vectors))
    others = [practice(3 * n + 30, original_text=f"other {n}", keywords=(), score=100) for n in range(12)]
    fill(archive, [practice(3, original_text="right", keywords=(), score=92), *others])
    found = recall(archive, "question", n=2)
    assert practice(3).id in found and len(found) == 2
    assert found[-1] == practice(3).id, "shown the best score first"


def test_what_is_about_something_else_is_not_shown_and_other_levels_are_not_either(tmp_path: Path) -> None:
    vectors = {"question": [1.0], "near": [0.41, 0.912], "far": [0.39, 0.921]}
    archive = invented_archive(tmp_path, invented_embedder(vectors), config=RewritingConfig())
    fill(archive, [practice(3, original_text="near", keywords=()), practice(6, original_text="far", keywords=())])
    assert recall(archive, "question") == [practice(3).id]
    fill(archive, [practice(4, original_text="far", keywords=())])
    assert recall(archive, "question", "expert") == [practice(3).id]


def test_a_paper_is_never_shown_its_own_other_rewrite(archive: Archive) -> None:
    fill(archive, [practice(0), practice(3), practice(1)])
    asked = practice(3).original_text
    own = practice(3).paper_id
    assert [each.id for each in retrieve_best_practices(archive, asked, "public", paper_id=own)] == [practice(0).id]
    assert practice(1).id not in {
        each.id for each in retrieve_best_practices(archive, practice(1).original_text, "expert", paper_id="2603.00001")
    }


def test_what_scored_below_92_is_never_shown(archive: Archive) -> None:
    fill(archive, [practice(0, score=91), practice(3, score=92), practice(4, score=91)])
    assert recall(archive, practice(0).original_text) == [practice(3).id]
    assert recall(archive, practice(4).original_text, "student") == [practice(3).id]


def test_tc8_none_at_this_level_other_levels(archive: Archive) -> None:
    fill(archive, [practice(number) for number in (1, 2, 4, 5)])
    assert set(recall(archive, practice(4).original_text, "public", n=9)) == {practice(n).id for n in (1, 2, 4, 5)}
    fill(archive, [practice(0)])
    assert recall(archive, practice(4).original_text, "public") == [practice(0).id]


def test_an_empty_archive_recalls_nothing(archive: Archive) -> None:
    assert recall(archive, "anything") == []


def test_tc7_the_same_text_twice_is_a_cache_hit(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path, load_embedder())
    assert keep(archive, "Invented words about archived mushrooms.").id
    assert archive.embedder is not None
    question = "A question about mushrooms that nobody has put before."
    before = archive.embedder.cache_info()
    first = recall(archive, question)
    between = archive.embedder.cache_info()
    assert recall(archive, question) == first
    after = archive.embedder.cache_info()
    assert (between.misses - before.misses, after.misses - between.misses) == (1, 0)
    assert after.hits - between.hits == 1


def test_archiving_what_was_recalled_for_embeds_it_only_once(tmp_path: Path) -> None:
    archive = invented_archive(tmp_path)
    keep(archive, "Something kept before.")
    assert archive.embedder is not None
    recall(archive, "The original.")
    before = archive.embedder.cache_info().misses
    keep(archive, "The original.")
    assert archive.embedder.cache_info().misses == before


def test_meaning_and_words_both_find(tmp_path: Path) -> None:
    vectors = {"question zebra": [1.0], "far": [0.0, 1.0], "near": [0.9, 0.1]}
    archive = invented_archive(tmp_path, invented_embedder(vectors), config=RewritingConfig(recall_floor=-1))
    far = {practice(3 * n, original_text=f"other {n}") for n in range(3, 20)}
    near, named = practice(3, original_text="near"), practice(6, original_text="far", keywords=("zebra",))
    fill(archive, [*far, near, named])
    assert set(recall(archive, "question zebra", n=2)) == {near.id, named.id}


def plain_recall(
    kept: Sequence[BestPractice],
    vectors: Sequence[np.ndarray],
    asked: str,
    meant: np.ndarray,
    n: int,
    config: RewritingConfig,
) -> list[str]:
    """The same by loops over best practices of one level."""
    good = [at for at in range(len(kept)) if kept[at].score >= config.recalled]
    rows = [at for at in good if vectors[at] @ meant >= config.recall_floor]
    texts = [f"{kept[at].original_text} {' '.join(kept[at].keywords)}" for at in rows]
    words = share(texts, asked)
    fused: dict[str, float] = defaultdict(float)
    lexical = {at: words[place] for place, at in enumerate(rows) if words[place] > 0}
    for scores in (lexical, {at: vectors[at] @ meant for at in rows}):
        ranked = sorted(scores, key=lambda at: (-scores[at], kept[at].id))[: config.recall_depth]
        for place, at in enumerate(ranked, 1):
            fused[kept[at].id] += 1 / (60 + place)
    relevant = sorted(fused, key=lambda name: (-fused[name], name))[:n]
    return sorted(relevant, key=lambda name: -next(each.score for each in kept if each.id == name))


WORDS = st.sampled_from(["sparse", "attention", "memory", "sheep", "graph", "traffic", "speech", "rare"])


@given(
    texts=st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=14),
    asked=st.lists(WORDS, min_size=1, max_size=5).map(" ".join),
    scores=st.lists(st.integers(90, 97), min_size=14, max_size=14),
    n=st.integers(1, 4),
    floor=st.sampled_from([-1.0, 0.0, 0.3]),
    depth=st.integers(2, 9),
)
@settings(max_examples=40)
def test_recall_equals_its_plain_twin(
    texts: list[str], asked: str, scores: list[int], n: int, floor: float, depth: int
) -> None:
    config = RewritingConfig(recall_floor=floor, recall_depth=depth)
    embedder = invented_embedder()
    kept = [practice(at, original_text=f"{text} {at}", score=scores[at], keywords=()) for at, text in enumerate(texts)]
    vectors, meant = embedder.encode([each.original_text for each in kept]), embedder.encode([asked])[0]
    good = [at for at in range(len(kept)) if kept[at].score >= config.recalled]
    chosen, cosines = [kept[at] for at in good], np.array([vectors[at] @ meant for at in good])
    found = most_relevant(chosen, asked, cosines, n=n, config=config, retrieval=RetrievalConfig())
    assert [each.id for each in found] == plain_recall(kept, list(vectors), asked, meant, n, config)


def test_another_model_embeds_the_originals_again_and_finds_them(archive: Archive) -> None:
    fill(archive, [practice(number) for number in range(6)])
    assert len(recall(archive, "subject3")) == 2
    other = replace(archive, embedder=invented_embedder(name="other"))
    assert recall(other, "subject3")[0] in {practice(0).id, practice(3).id}
    counted = archive.warehouse.rows("select model, count(*) from embeddings group by all order by all")
    assert counted == [("invented", 6), ("other", 6)]


# The gate before the archive


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I'm sorry, but I cannot help with that request.", "a refusal"),
        ("\u200b\u200c\u2060" * 300, "no visible text"),
        ("It works well.", "3 words, where 120 to 200 were asked for"),
    ],
)
def test_nothing_that_the_gate_holds_back_is_archived_unless_a_person_released_it(
    archive: Archive, text: str, reason: str
) -> None:
    original = "On 47 farms a sieve counts sheep, and it needs half of the memory of the best earlier method. " * 5
    refused = keep(archive, original, text, released=False)
    assert refused.id is None and str(refused.refused).startswith("held back by the gate: ")
    assert reason in str(refused.refused)
    assert best_practices(archive.warehouse, archive.collection) == []
    assert keep(archive, original, text.replace("\u200b", "x")).id, "released"


def test_an_unconfirmed_name_keeps_a_text_out_of_the_archive_until_a_person_accepts_it(
    archive: Archive,
) -> None:
    text = "Nobody had counted so many sheep. Zorvax counts them with a small sieve."
    refused = keep(archive, "We count sheep with a sieve.", text, released=False).refused
    assert refused == "not checked against the original: Zorvax"
    assert keep(archive, "We count sheep with a sieve.", text, released=False, accepted=["zorvax"]).id
