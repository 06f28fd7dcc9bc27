"""Test import and export: exported papers are read again unchanged, and works are matched by id or title."""

import gzip
import json
import re
import sqlite3
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput, InvalidPaper, InvalidProfile, NetworkError, RateLimited
from paper_assets.learning.ratings import erase_ratings, rate, ratings_by_id
from paper_assets.library.entries import Entry, import_library, library_id
from paper_assets.library.formats import FORMATS, is_name, keys_of, read_library, write_papers
from paper_assets.library.zotero import zotero_file, zotero_web
from paper_assets.paper import Paper, paper_from_mapping
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.paper_merging import replace_day
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable, readable_words
from tests.invented_papers import MONDAY, paper, papers_of
from tests.loopback import Answer, Request, serving

NOW = datetime(2026, 1, 7, 8, 30, tzinfo=UTC)
ODD = Paper(
    paper_id="2601.05001",
    title="R&D on {Graph}s: 100% of $O(n^2)$ #roads_ahead",
    abstract="We study José's graphs, 5 % faster & {unbalanced.",
    authors=("José Núñez", "van der Berg, Anna"),
    published=NOW,
    doi=None,
    categories=("cs.LG",),
    primary_category="cs.LG",
)


NAMES = (
    ("Lukas Höllein", "Höllein, Lukas", {"given": "Lukas", "family": "Höllein"}),
    (
        "José van der Berg",
        "van der Berg, José",
        {"given": "José", "non-dropping-particle": "van der", "family": "Berg"},
    ),
    ("Marco De Nadai", "De Nadai, Marco", {"given": "Marco", "non-dropping-particle": "De", "family": "Nadai"}),
    (
        "Martin Luther King Jr.",
        "King, Martin Luther, Jr.",
        {"given": "Martin Luther", "family": "King", "suffix": "Jr."},
    ),
    ("The Deep Collaboration", "The Deep Collaboration", {"literal": "The Deep Collaboration"}),
    ("Plato", "Plato", {"literal": "Plato"}),
)


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("P^2O for N_c colours", r"P{\textasciicircum}2O for N\_c colours"),
        ("On $x_1^2$ and x_1", r"On $x_1^2$ and x\_1"),
        (r"Escaped \_ and G\^odel", r"Escaped \_ and G\^odel"),
        ("One $ too many of a_b", r"One \$ too many of a\_b"),
    ],
)
def test_a_title_written_as_bibtex_compiles_and_is_read_again(tmp_path: Path, title: str, written: str) -> None:
    """LaTeX stops at `_` and `^` outside mathematics ("Missing $ inserted")."""
    text = write_papers([replace(ODD, title=title)], "bibtex")
    assert f"title = {{{{{written}}}}}" in text
    (tmp_path / "list.bib").write_text(text, encoding="utf-8")
    assert read_library(tmp_path / "list.bib")[0].title == one_line(readable_words(title))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_again_as_the_same_papers(name: str, tmp_path: Path) -> None:
    papers = [ODD, paper("hep-th/9901001"), paper("2601.05002", doi="10.1000/xyz")]
    file = tmp_path / f"list{FORMATS[name].endings[0]}"
    file.write_text(write_papers(papers, name), encoding="utf-8")
    entries = read_library(file)
    assert [library_id(entry) for entry in entries] == [each.paper_id for each in papers]
    assert [shown(entry.title) for entry in entries] == [shown(each.title) for each in papers]
    assert [shown(entry.abstract) for entry in entries] == [shown(each.abstract) for each in papers]


def test_reference_managers_get_characters_and_bibtex_its_tex() -> None:
    tex = replace(ODD, title=r"Schr\"odinger's $O(n^2)$ \emph{frogs}", abstract=r"\hs{} takes $\leq 2$ ponds.")
    for name in ("ris", "csl-json"):
        written = write_papers([tex], name)
        assert "Schrödinger's O(n²) frogs" in written
        assert "hs takes ≤ 2 ponds." in written
    assert r"$O(n^2)$" in write_papers([tex], "bibtex")


def shown(text: str) -> str:
    """The text as it is shown, without the braces that BibTeX uses itself and the spaces that only they divide."""
    return one_line(re.sub(r"[{}]", "", readable(one_line(text))))


@pytest.mark.shared_data
@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_recorded_papers_come_back_field_by_field_and_each_once(
    shared_data: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    papers = data.draw(st.lists(st.sampled_from(recorded(shared_data)), min_size=1, max_size=25, unique_by=id_of))
    file = tmp_path / f"list{FORMATS[name].endings[0]}"
    file.write_text(write_papers(papers, name), encoding="utf-8")
    entries = read_library(file)
    assert [library_id(entry) for entry in entries] == [each.paper_id for each in papers]
    for entry, each in zip(entries, papers, strict=True):
        assert entry.fault == ""
        assert [shown(entry.title), shown(entry.abstract)] == [shown(each.title), shown(each.abstract)]
        assert (entry.doi or "").lower() in ((each.doi or "").lower(), f"10.48550/arxiv.{each.paper_id}".lower())
    for work, each in zip(json.loads(file.read_text("utf-8")) if name == "csl-json" else (), papers, strict=False):
        parts = ("literal", "given", "non-dropping-particle", "family", "suffix")
        names = [" ".join(author[part] for part in parts if part in author) for author in work["author"]]
        assert [shown(author) for author in names] == [shown(author) for author in each.authors]


def id_of(each: Paper) -> str:
    return each.paper_id


@cache
def recorded(folder: Path) -> list[Paper]:
    """One in ten of the recorded papers, so that a test of all formats takes seconds."""
    found: dict[str, Paper] = {}
    for name in ("arxiv_papers/papers.jsonl.gz", "arxiv_odd_records/records.jsonl.gz"):
        with gzip.open(folder / name, "rt", encoding="utf-8") as lines:
            for line in islice(lines, 0, None, 10):
                record = json.loads(line)
                version = record.get("version")
                record = {**record, "paper_id": record.pop("id"), "version": version and int(f"{version}".lstrip("v"))}
                with suppress(InvalidPaper):
                    each = paper_from_mapping(record)
                    if all(map(is_name, each.authors)):
                        found[each.paper_id] = each
    assert len(found) > 800
    return list(found.values())


@pytest.mark.parametrize("name", FORMATS)
def test_names_are_written_in_parts_and_a_colon_is_not_an_author(name: str) -> None:
    authors = tuple(written for written, *_ in NAMES)
    text = write_papers([paper("2601.05009", authors=("The Group", ":", *authors))], name)
    if name == "bibtex":
        assert "{The Group} and Höllein, Lukas and van der Berg, José and De Nadai, Marco" in text
        assert "King, Jr., Martin Luther and {The Deep Collaboration} and {Plato}" in text
    if name == "ris":
        assert text.startswith("TY  - ")
        assert [line for line in text.splitlines() if line.startswith("AU")][1:] == [
            f"AU  - {ris}" for _, ris, _ in NAMES
        ]
    if name == "csl-json":
        assert json.loads(text)[0]["author"][1:] == [csl for *_, csl in NAMES]


@pytest.mark.parametrize(
    ("abstract", "read"),
    [
        (r"We file reports\footnote{Our code is free, and more.", "We file reports Our code is free, and more."),
        (r"We file reports\footnote{Our code is free} and more.", "We file reports (Our code is free) and more."),
        (r"An \emph{old dog and \alpha} cat", "An old dog and \u03b1 cat"),
    ],
)
def test_a_command_without_an_end_is_read_from_bibtex_as_the_page_shows_it(
    abstract: str, read: str, tmp_path: Path
) -> None:
    file = tmp_path / "list.bib"
    file.write_text(write_papers([paper("2601.05009", abstract=abstract)], "bibtex"), encoding="utf-8")
    [entry] = read_library(file)
    assert entry.abstract == read == shown(abstract)


def test_keys_are_family_name_year_and_first_word_and_all_differ() -> None:
    works = [
        (["Lukas Höllein"], 2026, "MorphAny: Shapes from Anything"),
        ([":", "Lukas Höllein"], 2026, "The MorphAny Model"),
        ([], None, "On $x$"),
    ]
    assert keys_of(works) == ["hollein2026morphany", "hollein2026morphany2", "unknownx"]


def test_bibtex_entries_that_cannot_be_read_are_listed_with_their_line_and_hide_no_other(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "broken.bib"
    file.write_text(
        """@string{jml = "Journal"}
@article{first, title={Alpha graphs}, year=2020, journal=jml}
@article{nocomma title={Beta graphs}, year={2021}}
@article{nobrace,
  title={Gamma {graphs}, year={2022}

@article{between, title={Delta graphs}, year={2023}}
@article{last, title={Epsilon graphs}, year={2024}}
""",
        encoding="utf-8",
    )
    entries = read_library(file)
    assert [entry.title for entry in entries if not entry.fault] == ["Alpha graphs", "Delta graphs", "Epsilon graphs"]
    found = import_library(warehouse, "lab", entries, now=NOW, profiles_dir=tmp_path / "profiles")
    assert (found.read, len(found.new)) == (3, 3)
    assert [line.partition(":")[0] for line in found.left_out] == [
        "broken.bib, line 3 (@article{nocomma)",
        "broken.bib, line 4 (@article{nobrace)",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (r"howpublished={\url{https://arxiv.org/abs/2501.12345v2}}", "2501.12345"),
        ("note={arXiv:2501.12345}", "2501.12345"),
        ("journal={arXiv preprint arXiv:2501.12345}", "2501.12345"),
        ("journal={CoRR}, volume={abs/2501.12345}", "2501.12345"),
        ("note={Extends arXiv:2501.12345}, doi={10.1000/abc}", "doi:10.1000/abc"),
        ("eprint={2501.12345}, eprinttype={jstor}, doi={10.1000/abc}", "doi:10.1000/abc"),
    ],
)
def test_bibtex_names_an_arxiv_id_in_any_of_its_fields_and_overrides_months_silently(
    tmp_path: Path, fields: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own.bib").write_text(f'@string{{jan = "1"}}\n@misc{{a, title={{T}}, {fields}}}', encoding="utf-8")
    assert [library_id(entry) for entry in read_library(tmp_path / "own.bib")] == [expected]
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("T2  - arXiv preprint arXiv:2501.12345", "2501.12345"),
        ("T2  - arXiv\nM1  - 2501.12345", "2501.12345"),
        ("M1  - arXiv:2501.12345", "2501.12345"),
        ("T2  - Nature\nM1  - 2501.12345", None),
    ],
)
def test_ris_names_an_arxiv_id_in_any_of_its_fields(tmp_path: Path, record: str, expected: str | None) -> None:
    (tmp_path / "own.ris").write_text(f"TY  - JOUR\n{record}\nER  - \n", encoding="utf-8")
    assert [library_id(entry) for entry in read_library(tmp_path / "own.ris")] == [expected]


@pytest.mark.parametrize(
    "fields", [{"container-title": "arXiv:2501.12345"}, {"container-title": "arXiv", "number": "2501.12345v2"}]
)
def test_csl_names_an_arxiv_id_in_any_of_its_fields(tmp_path: Path, fields: dict[str, str]) -> None:
    (tmp_path / "own.json").write_text(json.dumps([{"id": "a", "title": "T", **fields}]), encoding="utf-8")
    assert [library_id(entry) for entry in read_library(tmp_path / "own.json")] == ["2501.12345"]


def test_a_record_of_ris_without_an_end_is_read_and_so_is_the_next(tmp_path: Path) -> None:
    text = "TY  - JOUR\nTI  - First\nTY  - JOUR\nTI  - Second\nER  - \nTY  - JOUR\nTI  - Third\n"
    (tmp_path / "own.ris").write_text(text, encoding="utf-8")
    assert [entry.title for entry in read_library(tmp_path / "own.ris")] == ["First", "Second", "Third"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("own.bib", "@misc{a, title={Flüsse in Öl}}"),
        ("own.ris", "TY  - JOUR\nTI  - Flüsse in Öl\nER  - \n"),
        ("own.json", '[{"title": "Flüsse in Öl"}]'),
    ],
)
def test_a_library_is_read_in_its_encoding(tmp_path: Path, name: str, text: str, encoding: str) -> None:
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert [entry.title for entry in read_library(tmp_path / name)] == ["Flüsse in Öl"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"arxiv": "arXiv:2501.12345v2 [cs.CL]"}, "2501.12345"),
        ({"doi": "10.48550/arXiv.2501.12345"}, "2501.12345"),
        ({"url": "https://arxiv.org/pdf/2501.12345v3.pdf"}, "2501.12345"),
        ({"doi": "https://doi.org/10.1000/ABC.1", "title": "On graphs"}, "doi:10.1000/abc.1"),
        ({"title": "On  Graphs!"}, library_id(Entry(where="", title="on graphs"))),
        ({}, None),
    ],
)
def test_a_work_is_known_by_its_arxiv_id_its_doi_or_its_title(entry: dict[str, str], expected: str | None) -> None:
    assert library_id(Entry(where="here", **entry)) == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.bib", "no bibtex at all"),
        ("a.ris", "no ris at all"),
        ("a.json", "{"),
        ("a.json", '{"a": 1}'),
        ("a.pdf", ""),
        ("none.bib", None),
    ],
)
def test_an_invalid_library_is_refused_in_one_line_that_names_the_file(
    name: str, content: str | None, tmp_path: Path
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        read_library(file)
    assert str(file) in str(refused.value) and "\n" not in str(refused.value)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Two stored papers and a profile."""
    found = Warehouse(tmp_path / "warehouse.duckdb", deadline=30)
    replace_day(found, MONDAY, papers_of(MONDAY, 2))
    folder = tmp_path / "profiles" / "lab"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text('{"interests": {"primary": ["graphs"]}}', encoding="utf-8")
    return found


ENTRIES = (
    Entry(where="entry 1", arxiv="2601.05000"),
    Entry(where="entry 2", title="On 2601.05001", doi="10.1000/other"),
    Entry(where="entry 3", title="Elsewhere", abstract="We look elsewhere.", doi="10.1000/xyz"),
    Entry(where="entry 4"),
    Entry(where="entry 5", arxiv="2301.00001"),
)


def test_a_library_is_liked_once_and_what_cannot_be_matched_is_listed(warehouse: Warehouse) -> None:
    folder = warehouse.path.parent / "profiles"
    first = import_library(warehouse, "lab", ENTRIES, now=NOW, profiles_dir=folder)
    assert first.new == ("2601.05000", "2601.05001", "doi:10.1000/xyz")
    assert (first.read, first.stored) == (5, 2)
    assert [line.partition(":")[0] for line in first.left_out] == ["entry 4", "entry 5"]
    assert import_library(warehouse, "lab", ENTRIES, now=NOW, profiles_dir=folder).new == ()
    [*_, elsewhere] = last_ratings(warehouse, "lab")
    assert (elsewhere.title, elsewhere.abstract, elsewhere.given_in) == ("Elsewhere", "We look elsewhere.", "import")


def test_an_import_overwrites_no_rating_given_elsewhere_and_is_erased_with_the_ratings(warehouse: Warehouse) -> None:
    folder = warehouse.path.parent / "profiles"
    rate(warehouse, "lab", "2601.05000", "no", given_in="page", now=NOW, profiles_dir=folder)
    import_library(warehouse, "lab", ENTRIES, now=NOW, profiles_dir=folder)
    assert ratings_by_id(warehouse, "lab")["2601.05000"] == "no"
    with pytest.raises(InvalidProfile):
        import_library(warehouse, "nobody", ENTRIES, now=NOW, profiles_dir=folder)
    assert erase_ratings(warehouse, "lab", profiles_dir=folder) == 3
    assert last_ratings(warehouse, "lab") == []


def zotero_library(file: Path) -> None:
    """The tables of Zotero's own schema that a library is read from."""
    with sqlite3.connect(file) as connection:
        connection.executescript(
            """
            create table itemTypes (itemTypeID integer primary key, typeName text);
            create table items (itemID integer primary key, itemTypeID int, key text);
            create table fields (fieldID integer primary key, fieldName text);
            create table itemDataValues (valueID integer primary key, value);
            create table itemData (itemID int, fieldID int, valueID int);
            create table deletedItems (itemID integer primary key);
            insert into itemTypes values (1, 'preprint'), (2, 'attachment');
            insert into items values (1, 1, 'AAAA'), (2, 1, 'BBBB'), (3, 1, 'GONE'), (4, 2, 'FILE');
            insert into fields values (1, 'title'), (2, 'archiveID'), (3, 'abstractNote'), (4, 'DOI');
            insert into itemDataValues values
                (1, 'On 2601.05000'), (2, 'arXiv:2601.05000'), (3, 'Elsewhere'), (4, '10.1000/xyz'), (5, 'Gone');
            insert into itemData values (1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 4, 4), (3, 1, 5), (4, 1, 5);
            insert into deletedItems values (3);
            """
        )


def test_zoteros_file_is_read_from_a_copy_without_deleted_works_and_attachments(tmp_path: Path) -> None:
    file = tmp_path / "zotero.sqlite"
    zotero_library(file)
    before = file.read_bytes()
    holder = sqlite3.connect(file)
    holder.execute("begin exclusive")  # as Zotero holds it while it runs
    try:
        assert [library_id(entry) for entry in zotero_file(file)] == ["2601.05000", "doi:10.1000/xyz"]
    finally:
        holder.close()
    assert file.read_bytes() == before
    (tmp_path / "other.sqlite").write_text("no database", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"other\.sqlite is not a Zotero library"):
        zotero_file(tmp_path / "other.sqlite")


def test_items_of_feeds_are_left_out_and_collections_select(tmp_path: Path) -> None:
    file = tmp_path / "zotero.sqlite"
    zotero_library(file)
    with sqlite3.connect(file) as connection:
        connection.executescript(
            """
            create table libraries (libraryID integer primary key, type text);
            create table feedItems (itemID integer primary key, guid text);
            create table collections (collectionID integer primary key, collectionName text, parentCollectionID int);
            create table collectionItems (collectionID int, itemID int);
            alter table items add column libraryID int default 1;
            insert into libraries values (1, 'user'), (2, 'feed');
            insert into items values (5, 1, 'FEED', 2), (6, 1, 'NEWS', 1);
            insert into itemData values (5, 1, 5), (6, 1, 5);
            insert into feedItems values (6, 'guid');
            insert into collections values (1, 'Thesis', null), (2, 'Chapter 2', 1), (3, 'Other', null);
            insert into collectionItems values (2, 1), (3, 2);
            """
        )

    def chosen(*collections: str) -> list[str | None]:
        return [library_id(entry) for entry in zotero_file(file, collections)]

    assert chosen() == ["2601.05000", "doi:10.1000/xyz"]
    assert chosen("thesis") == ["2601.05000"]
    with pytest.raises(InvalidInput, match="no collection 'Theses'"):
        chosen("Theses")


def test_five_thousand_works_come_in_pages_of_a_hundred_and_a_second_sync_adds_what_is_new(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    works = [
        {"key": f"K{number}", "data": {"itemType": "preprint", "title": f"Work {number}", "collections": ["C2"]}}
        for number in range(5_000)
    ]
    works[7]["data"]["collections"] = []  # type: ignore[index]
    collections = [
        {"key": "C1", "data": {"name": "Thesis", "parentCollection": False}},
        {"key": "C2", "data": {"name": "Chapter 2", "parentCollection": "C1"}},
    ]
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        start, limit = int(request.query.get("start", 0)), int(request.query.get("limit", 25))
        found = collections if request.path.endswith("/collections") else works
        more = f'<{address}{request.path}?start={start + limit}&limit={limit}>; rel="next"'
        headers = {"Content-Type": "application/json", **({"Link": more} if start + limit < len(found) else {})}
        return Answer(body=json.dumps(found[start : start + limit]).encode(), headers=headers)

    def synced() -> int:
        entries = zotero_web("4711", kind="user", key=None, url=address, timeout=60, collections=["Thesis"])
        return len(import_library(warehouse, "lab", entries, now=NOW, profiles_dir=tmp_path / "profiles").new)

    with serving(answer) as address:
        assert synced() == 4_999
        assert len(asked) == 51
        works.append({"key": "NEW", "data": {"itemType": "preprint", "title": "A New Work", "collections": ["C1"]}})
        assert synced() == 1


def test_a_library_on_zoteros_server_is_read_page_by_page(tmp_path: Path) -> None:
    asked = []

    def answer(request: Request) -> Answer:
        asked.append((request.path, request.headers.get("authorization"), request.headers.get("zotero-api-key")))
        start = int(request.query.get("start", 0))
        items = [
            {
                "key": "AAAA",
                "data": {"key": "AAAA", "itemType": "preprint", "title": "A", "archiveID": "arXiv:2601.05000"},
            },
            {"key": "NOTE", "data": {"key": "NOTE", "itemType": "note"}},
            {"key": "BBBB", "data": {"key": "BBBB", "itemType": "journalArticle", "title": "B", "DOI": "10.1000/xyz"}},
        ]
        more = f'<{address}{request.path}?start=2&format=json>; rel="next"' if start == 0 else ""
        headers = {"Content-Type": "application/json", "Total-Results": "3", **({"Link": more} if more else {})}
        page = items[:2] if start == 0 else items[2:]
        return Answer(body=json.dumps(page).encode(), headers=headers)

    with serving(answer) as address:
        entries = zotero_web("4711", kind="user", key="invented-key", url=address, timeout=60)
    assert [library_id(entry) for entry in entries] == ["2601.05000", "doi:10.1000/xyz"]
    assert {path for path, *_ in asked} == {"/users/4711/items/top"}
    assert all("invented-key" in f"{one}{other}" for _, one, other in asked)


@pytest.mark.parametrize(("step", "pages"), [(0, 2), (100, 5)])  # the same link again, and always another one
def test_pages_of_zoteros_server_without_end_are_one_line(
    step: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paper_assets.library.zotero._MOST_PAGES", 5)
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        more = f'<{address}{request.path}?start={len(asked) * step}>; rel="next"'
        return Answer(body=b"[]", headers={"Content-Type": "application/json", "Link": more})

    with serving(answer) as address, pytest.raises(NetworkError, match=f"pages do not end .stopped after {pages}."):
        zotero_web("4711", kind="user", key=None, url=address, timeout=60)
    assert len(asked) == pages


@pytest.mark.parametrize(("status", "error"), [(403, InvalidInput), (404, InvalidInput), (500, NetworkError)])
def test_a_refusal_of_zoteros_server_is_one_line_without_the_key(status: int, error: type[Exception]) -> None:
    with serving(lambda _: Answer(body=b"no", status=status)) as address, pytest.raises(error) as refused:
        zotero_web("4711", kind="group", key="invented-key", url=address, timeout=60)
    assert "invented-key" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "slow", [Answer(body=b"[" + b" " * 998 + b"]", drip=0.05, pieces=1_000), Answer(drip_head=0.05)]
)
def test_an_answer_of_zoteros_server_that_comes_byte_by_byte_is_given_up_in_time(slow: Answer) -> None:
    with serving(lambda _: slow) as address, pytest.raises(NetworkError, match=r"no whole answer within 0\.3 s"):
        zotero_web("4711", kind="user", key=None, url=address, timeout=0.3)


def test_a_long_pause_that_zoteros_server_asks_for_is_reported_and_not_waited_for() -> None:
    refused = Answer(status=429, headers={"Retry-After": "3600"})
    with serving(lambda _: refused) as address, pytest.raises(RateLimited, match="wait 3600 s"):
        zotero_web("4711", kind="user", key=None, url=address, timeout=60)
    last = Answer(body=b"[]", headers={"Content-Type": "application/json", "Backoff": "3600"})
    with serving(lambda _: last) as address:
        assert zotero_web("4711", kind="user", key=None, url=address, timeout=60) == []


def test_a_short_pause_that_zoteros_server_asks_for_is_waited_for_and_the_page_asked_for_again() -> None:
    whole = Answer(body=b"[]", headers={"Content-Type": "application/json"})
    answers = [
        Answer(status=429, headers={"Retry-After": "0"}),
        Answer(status=503, headers={"Retry-After": "0"}),
        whole,
    ]
    with serving(lambda _: answers.pop(0)) as address:
        assert zotero_web("4711", kind="user", key=None, url=address, timeout=60) == []
    assert answers == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<html>Log in"),
        ("application/json", b'{"a": 1}'),
        ("application/json", b'[{"data": 7}]'),
        ("application/json", b"null"),
        ("application/json", b"[" * 100_000),
        ("", b"[]"),
    ],
)
def test_an_answer_that_is_not_a_zotero_library_is_one_line(kind: str, body: bytes) -> None:
    answer = Answer(body=body, headers={"Content-Type": kind} if kind else {})
    with serving(lambda _: answer) as address, pytest.raises(NetworkError, match="not a Zotero library"):
        zotero_web("4711", kind="user", key=None, url=address, timeout=60)
