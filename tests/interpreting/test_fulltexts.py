"""Test that a profile's PDFs become its private passages, each once, and that a damaged one does not affect others."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.interpreting import fulltexts as fulltext
from paper_assets.interpreting.fulltexts import PASSAGE, import_pdfs, keep_fulltext
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import Paper
from paper_assets.retrieval.search import Corpus, search
from paper_assets.stores.documents import FIELDS, origins_of
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.invented_pdfs import pdf, scanned_pdf

KELP = "Kelp forests shelter young fish. They grow where the water is cold."
PAPER = Paper(
    paper_id="2603.00017",
    title="Kelp and its fish",
    abstract="We dive.",
    authors=("A. Diver",),
    version=2,
    published=datetime(2026, 3, 4, tzinfo=UTC),
    categories=("q-bio.PE", "cs.LG"),
    primary_category="q-bio.PE",
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse.duckdb", deadline=5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "profiles" / "kelp" / "pdf"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load_embedder()


def bring_in(warehouse: Warehouse, folder: Path, embedder: Embedder | None = None) -> dict[str, str]:
    return import_pdfs(warehouse, embedder, "kelp", folder)


def documents(warehouse: Warehouse, **wanted: object) -> list[dict[str, object]]:
    found = warehouse.table("from retrievable where data_type = 'fulltext' order by doc_id").to_pylist()
    return [each for each in found if all(each[name] == value for name, value in wanted.items())]


def test_a_pdf_named_after_a_paper_carries_what_is_known_of_the_paper(warehouse: Warehouse, folder: Path) -> None:
    merge_papers(warehouse, [PAPER])
    (folder / "2603.00017v1 kelp.pdf").write_bytes(pdf(KELP, "A second page."))
    assert bring_in(warehouse, folder) == {}
    (found,) = documents(warehouse)
    assert found["doc_id"].startswith("pdf:kelp/2603.00017v1 kelp.pdf#")
    assert {name: found[name] for name in ("text", *FIELDS)} == {
        "text": f"{KELP} A second page.",
        "paper_id": "2603.00017",
        "title": "Kelp and its fish",
        "date_int": 20260304,
        "primary_category": "q-bio.PE",
        "categories": ["q-bio.PE", "cs.LG"],
        "topic_id": "q-bio",
        "data_type": "fulltext",
        "access_level": "private",
        "language": "en",
        "version": 1,
        "url": "https://arxiv.org/abs/2603.00017",
        "owner": "kelp",
    }


def test_any_other_pdf_is_called_by_its_file_name(warehouse: Warehouse, folder: Path) -> None:
    (folder / "Notes on kelp.PDF").write_bytes(pdf(KELP))
    (folder / "hep-th_9901001.pdf").write_bytes(pdf("Strings."))
    bring_in(warehouse, folder)
    notes, strings = sorted(documents(warehouse), key=lambda found: str(found["title"]))
    assert (notes["title"], notes["paper_id"]) == ("Notes on kelp", "pdf:kelp/Notes on kelp")
    assert (notes["url"], notes["date_int"], notes["language"]) == (None, None, None)
    assert (strings["title"], strings["paper_id"]) == ("hep-th_9901001", "hep-th/9901001")
    assert {found["access_level"] for found in (notes, strings)} == {"private"}
    assert {found["owner"] for found in (notes, strings)} == {"kelp"}


def test_a_long_pdf_is_many_passages_in_their_order(warehouse: Warehouse, folder: Path) -> None:
    sentences = [f"Sentence {at} says that kelp grows where the water is cold." for at in range(60)]
    (folder / "long.pdf").write_bytes(pdf("\n".join(sentences[:30]), "\n".join(sentences[30:])))
    bring_in(warehouse, folder)
    found = sorted(documents(warehouse), key=lambda each: int(str(each["doc_id"]).rpartition("/")[2]))
    assert len(found) > 1
    assert max(len(str(each["text"])) for each in found) <= PASSAGE
    assert " ".join(str(each["text"]) for each in found) == " ".join(sentences)


def test_a_pdf_is_read_once(warehouse: Warehouse, folder: Path, embedder: Embedder, monkeypatch) -> None:
    (folder / "a.pdf").write_bytes(pdf(KELP))
    bring_in(warehouse, folder, embedder)
    before = origins_of(warehouse, "fulltext")

    def never(*_arguments: object, **_options: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(fulltext, "pdf_text", never)
    monkeypatch.setattr("paper_assets.stores.documents.keep_vectors", never)
    bring_in(warehouse, folder, embedder)
    assert origins_of(warehouse, "fulltext") == before


def test_a_copy_under_another_name_is_kept_once(warehouse: Warehouse, folder: Path) -> None:
    for name in ("a.pdf", "a (copy).pdf"):
        (folder / name).write_bytes(pdf(KELP))
    bring_in(warehouse, folder)
    assert [found["title"] for found in documents(warehouse)] == ["a (copy)"]
    (folder / "a (copy).pdf").unlink()
    bring_in(warehouse, folder)
    assert [found["title"] for found in documents(warehouse)] == ["a"]


def test_a_changed_pdf_replaces_its_passages_and_a_removed_one_takes_them_along(
    warehouse: Warehouse, folder: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf(KELP))
    (folder / "b.pdf").write_bytes(pdf("Urchins eat kelp."))
    bring_in(warehouse, folder)
    (folder / "a.pdf").write_bytes(pdf("Otters eat urchins."))
    (folder / "b.pdf").unlink()
    bring_in(warehouse, folder)
    assert [found["text"] for found in documents(warehouse)] == ["Otters eat urchins."]


def test_a_paper_that_becomes_known_later_names_its_pdf(warehouse: Warehouse, folder: Path) -> None:
    (folder / "2603.00017.pdf").write_bytes(pdf(KELP))
    bring_in(warehouse, folder)
    assert [(found["title"], found["version"]) for found in documents(warehouse)] == [("2603.00017", 1)]
    merge_papers(warehouse, [PAPER])
    bring_in(warehouse, folder)
    assert [(found["title"], found["version"]) for found in documents(warehouse)] == [("Kelp and its fish", 2)]


def test_a_bad_pdf_is_named_and_leaves_the_others_and_its_own_last_text(warehouse: Warehouse, folder: Path) -> None:
    for name in ("a.pdf", "b.pdf", "c.pdf"):
        (folder / name).write_bytes(pdf(f"{KELP} {name}"))
    bring_in(warehouse, folder)
    (folder / "b.pdf").write_bytes(pdf(f"{KELP} b.pdf")[:-40])
    (folder / "d.pdf").write_bytes(scanned_pdf())
    (folder / "e.pdf").mkdir()
    failures = bring_in(warehouse, folder)
    assert failures["b.pdf"].startswith("b.pdf is cut off")
    assert failures["d.pdf"].startswith("d.pdf has no text layer")
    assert failures["e.pdf"].startswith("e.pdf is not a file")
    assert len(documents(warehouse)) == 3


def test_a_folder_that_is_not_there_holds_nothing_and_one_that_cannot_be_listed_removes_nothing(
    warehouse: Warehouse, folder: Path, monkeypatch
) -> None:
    (folder / "a.pdf").write_bytes(pdf(KELP))
    bring_in(warehouse, folder)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as refusing:
        refusing.setattr(Path, "iterdir", refuse)
        with pytest.raises(InvalidInput, match="cannot be listed"):
            bring_in(warehouse, folder)
    assert len(documents(warehouse)) == 1
    (folder / "a.pdf").unlink()
    folder.rmdir()
    bring_in(warehouse, folder)
    assert documents(warehouse) == []


def test_the_same_pdf_of_two_profiles_belongs_to_each_alone(warehouse: Warehouse, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf(KELP))
    for profile in ("kelp", "kelp2"):
        import_pdfs(warehouse, None, profile, folder)
    assert [found["owner"] for found in documents(warehouse)] == ["kelp", "kelp2"]
    (folder / "a.pdf").unlink()
    bring_in(warehouse, folder)
    assert [found["owner"] for found in documents(warehouse)] == ["kelp2"]
    assert documents(warehouse, access_level="public") == []


def test_passages_kept_without_a_model_are_embedded_by_the_next_call(
    warehouse: Warehouse, folder: Path, embedder: Embedder
) -> None:
    (folder / "a.pdf").write_bytes(pdf(KELP))
    bring_in(warehouse, folder)
    (by_words,) = found_by_words_and_meaning(warehouse, embedder, "kelp")
    assert found_by_words_and_meaning(warehouse, embedder, "juvenile animals hiding") == []
    import_pdfs(warehouse, embedder, "kelp", folder)
    assert found_by_words_and_meaning(warehouse, embedder, "juvenile animals hiding") == [by_words]


def found_by_words_and_meaning(warehouse: Warehouse, embedder: Embedder, question: str) -> list[str]:
    corpus = Corpus(warehouse=warehouse, embedder=embedder)
    found = search(corpus, question, data_type="fulltext", where=None, k=5, method="hybrid")
    return [candidate.doc_id for candidate in found.candidates]


def test_a_fetched_paper_is_public_and_a_newer_version_replaces_it(warehouse: Warehouse, embedder: Embedder) -> None:
    assert keep_fulltext(warehouse, embedder, PAPER, [KELP, "A second page."])
    assert not keep_fulltext(warehouse, embedder, PAPER, [KELP, "A second page."])
    (found,) = documents(warehouse)
    assert (found["doc_id"], found["version"]) == ("paper:2603.00017v2/0", 2)
    assert (found["access_level"], found["owner"], found["date_int"]) == ("public", None, 20260304)
    newer = Paper(**{name: getattr(PAPER, name) for name in PAPER.__slots__} | {"version": 3})
    assert keep_fulltext(warehouse, None, newer, ["Otters eat urchins."])
    assert [(found["text"], found["version"]) for found in documents(warehouse)] == [("Otters eat urchins.", 3)]


def test_a_file_name_that_is_not_valid_unicode_can_be_stored(warehouse: Warehouse, folder: Path) -> None:
    (folder / "kelp\udcff.pdf").write_bytes(pdf(KELP))
    (folder / "kelp\udcfe.pdf").write_bytes(pdf("Urchins."))
    bring_in(warehouse, folder)
    assert [found["title"] for found in documents(warehouse)] == ["kelp?", "kelp?"]
    before = origins_of(warehouse, "fulltext")
    bring_in(warehouse, folder)
    assert origins_of(warehouse, "fulltext") == before
