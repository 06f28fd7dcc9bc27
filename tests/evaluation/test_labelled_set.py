"""Test that labelled sets are read in every usual spelling, and that an error names its place."""

import json
from datetime import date
from pathlib import Path

import pytest

from benchmarks.evaluation.labelled_set import LabelledSet, load_labelled_set
from paper_assets.errors import InvalidInput
from tests.evaluation.sets import DOCS, QUERIES, pack, write_set


def judged(labelled: LabelledSet) -> dict[str, dict[str, float]]:
    return {
        query_id: {
            labelled.documents[position].doc_id: grade for position, grade in zip(k.positions, k.grades, strict=True)
        }
        for query_id, k in labelled.judgements.items()
    }


EXPECTED = {"q1": {"d1": 2.0, "d3": 1.0}, "q2": {"d4": 1.0, "d1": 0.0}}


def test_documents_queries_and_grades_are_joined_by_id(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path))
    assert judged(labelled) == EXPECTED
    assert [query.query_id for query in labelled.judged_queries] == ["q1", "q2"]
    assert [query.query_id for query in labelled.queries] == ["q1", "q2", "q3"]


@pytest.mark.parametrize(
    "qrels",
    [
        "q1\td1\t2\nq1\td3\t1\nq2\td4\t1\nq2\td1\t0\n",
        "q1 0 d1 2\nq1 0 d3 1\nq2 0 d4 1\nq2 0 d1 0\n",
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t1\nq2\td4\t1\nq2\td1\t0\n",
        "doc_id\tgrade\tqid\nd1\t2\tq1\nd3\t1.0\tq1\nd4\t1\tq2\nd1\t-1\tq2\n",
        "q1\td1\t2\r\nq1\td3\t1\r\n\r\nq2\td4\t1\r\nq2\td1\t0\r\n",
        "q1\td1\t1\nq1\td1\t2\nq1\td1\t1\nq1\td3\t1\nq2\td4\t1\nq2\td1\t0\n",
    ],
    ids=["no header", "trec", "beir", "other order", "windows", "repeated"],
)
def test_judgements_are_understood_in_the_usual_spellings(qrels: str, tmp_path: Path) -> None:
    assert judged(load_labelled_set(write_set(tmp_path, qrels=qrels))) == EXPECTED


def test_a_judgement_without_a_grade_is_binary(tmp_path: Path) -> None:
    assert judged(load_labelled_set(write_set(tmp_path, qrels="q1\td1\nq2\td4\n"))) == {
        "q1": {"d1": 1},
        "q2": {"d4": 1},
    }


def test_packed_files_lists_and_other_keys_give_the_same_set(tmp_path: Path) -> None:
    write_set(tmp_path)
    renamed = [{"doc_id": doc["id"], "title": doc["title"], "text": doc["abstract"]} for doc in DOCS]
    (tmp_path / "docs.jsonl").unlink()
    (tmp_path / "corpus.json").write_text(json.dumps(renamed), encoding="utf-8")
    questions = "".join(json.dumps({"query_id": query["id"], "question": query["text"]}) + "\n" for query in QUERIES)
    (tmp_path / "queries.jsonl").write_text(questions, encoding="utf-8")
    pack(tmp_path / "queries.jsonl")
    pack(tmp_path / "qrels.tsv")
    labelled = load_labelled_set(tmp_path)
    assert judged(labelled) == EXPECTED
    assert labelled.queries[0].text == "frogs"
    assert labelled.documents[0].text == "Frogs of the marsh\n\nFrogs sing at dusk."


def test_numeric_ids_match_their_text(tmp_path: Path) -> None:
    write_set(tmp_path, docs=[{"id": 7, "text": "seven"}], queries=[{"id": 1, "text": "which"}], qrels="1\t7\t1\n")
    assert judged(load_labelled_set(tmp_path)) == {"1": {"7": 1.0}}


def test_a_date_may_be_a_moment_a_month_or_a_year(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path, docs=[*DOCS, {"id": "d5", "text": "x", "published": "soon"}]))
    days = [document.published for document in labelled.documents]
    assert days == [date(2026, 3, 1), date(2026, 3, 3), date(2026, 2, 1), date(2019, 1, 1), None]


def test_a_line_break_that_is_not_a_newline_does_not_end_a_record(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path, docs=[{**DOCS[0], "abstract": "one\u2028two"}, *DOCS[1:]]))
    assert labelled.documents[0].abstract == "one\u2028two"


PROFILE = {
    "id": "q1",
    "interests": {"primary": ["frogs"], "secondary": ["ponds"], "exploratory": ["stones"], "papers": ["d2"]},
}


@pytest.mark.parametrize(
    "record",
    [PROFILE, {"profile_id": "q1", "profile": {"interests": PROFILE["interests"]}}],
    ids=["flat", "nested"],
)
def test_a_profile_asks_by_its_interests_and_names_what_it_likes(record: dict, tmp_path: Path) -> None:
    qrels = "profile_id\tdoc_id\trelevance\tinterest\nq1\td1\t2\tfrogs\nq1\td2\t1\tponds\nq1\td3\t1\tfrogs\n"
    labelled = load_labelled_set(write_set(tmp_path, queries=[record], qrels=qrels, asked="profiles"))
    (query,) = labelled.queries
    assert query.interests and query.interests.secondary == ["ponds"]
    assert query.text.count("frogs") > query.text.count("ponds") > query.text.count("stones") > 0
    assert query.liked == ("d2",)
    assert labelled.judgements["q1"].interests == ("frogs", "ponds", "frogs")


def test_a_folder_of_profiles_is_a_set_of_profiles(tmp_path: Path) -> None:
    write_set(tmp_path, qrels="marsh\td1\t1\n")
    (tmp_path / "queries.jsonl").unlink()
    (tmp_path / "profiles" / "marsh").mkdir(parents=True)
    (tmp_path / "profiles" / "marsh" / "profile.json").write_text('{"interests": {"primary": ["frogs"]}}')
    assert [query.query_id for query in load_labelled_set(tmp_path).judged_queries] == ["marsh"]


def test_judgements_of_absent_documents_and_queries_are_counted_not_hidden(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path, qrels="q1\td1\t1\nq1\tgone\t1\nnobody\td1\t1\n"))
    assert labelled.unknown == 2
    assert judged(labelled) == {"q1": {"d1": 1.0}}


def test_a_query_judged_but_without_a_relevant_document_is_not_scored(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path, qrels="q1\td1\t1\nq2\td4\t0\n"))
    assert [query.query_id for query in labelled.judged_queries] == ["q1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("docs.jsonl", '{"id": "d1"}\n{"id": ', "docs.jsonl:2: not valid JSON"),
        ("docs.jsonl", "[1]\n", "docs.jsonl:1: expected an object"),
        ("docs.jsonl", '{"title": "x"}\n', "docs.jsonl:1: no id"),
        ("docs.jsonl", '{"id": "d1"}\n{"id": "d1"}\n', "id d1 is there twice"),
        ("docs.jsonl", "", "docs.jsonl is empty"),
        ("docs.jsonl", '{"id": "d1", "abstract": null}\n', "no document has a title or a text"),
        ("queries.jsonl", '{"id": "q1"}\n', "queries.jsonl:1: neither a text nor interests"),
        ("queries.jsonl", '{"id": "q1", "interests": {"primary": "x"}}\n', "interests.primary must be a list"),
        ("qrels.tsv", "q1\td1\tyes\n", "qrels.tsv:1: the grade must be a number, got 'yes'"),
        ("qrels.tsv", "q1\td1\tnan\n", "the grade must be a number, got 'nan'"),
        ("qrels.tsv", "q1\n", "qrels.tsv:1: expected a query, a document"),
        ("qrels.tsv", "query_id\trelevance\nq1\t1\n", "expected columns named like query_id and doc_id"),
        ("qrels.tsv", "x\ty\t1\n", "no judgement names both"),
        ("qrels.tsv", "", "qrels.tsv is empty"),
    ],
)
def test_a_set_that_cannot_be_read_says_where_and_why(name: str, content: str, message: str, tmp_path: Path) -> None:
    write_set(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput) as error:
        load_labelled_set(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a folder"):
        load_labelled_set(tmp_path / "absent")
    write_set(tmp_path)
    (tmp_path / "qrels.tsv").unlink()
    with pytest.raises(InvalidInput, match=r"found no qrels"):
        load_labelled_set(tmp_path)
    (tmp_path / "qrels.tsv.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidInput, match=r"qrels.tsv.gz: the gzip data is damaged"):
        load_labelled_set(tmp_path)


def test_a_liked_paper_may_be_given_by_its_text_and_one_without_id_or_title_is_refused(tmp_path: Path) -> None:
    liked = ["d2", {"id": "d3"}, {"title": "Newts", "abstract": "Newts hide."}]
    profiles = [{"id": "ann", "interests": {"primary": ["frogs"], "papers": liked}}]
    (query,) = load_labelled_set(write_set(tmp_path / "a", queries=profiles, qrels="ann\td1\t1\n")).queries
    assert query.liked == ("d2", "d3")
    assert query.liked_texts == (("Newts", "Newts hide."),)
    profiles = [{"id": "ann", "text": "frogs", "liked": [{"abstract": "no title"}]}]
    with pytest.raises(InvalidInput, match=r"queries\.jsonl.*neither an id nor a title"):
        load_labelled_set(write_set(tmp_path / "b", queries=profiles, qrels="ann\td1\t1\n"))
