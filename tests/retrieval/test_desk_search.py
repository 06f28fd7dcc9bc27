"""Searching the stored papers: filters are exact, results are ranked, marked and paged."""

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from paper_assets.errors import InvalidInput
from paper_assets.retrieval.desk_search import FoundPaper, search_desk, similar_papers
from paper_assets.retrieval.search import Corpus, papers_with_phrases
from paper_assets.retrieval.search_query import parse_search_query
from paper_assets.stores.feedback import NewRating, append_ratings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import paper
from tests.retrieval.invented_corpus import corpus_of, passage

MAPS = paper(
    "2603.00001",
    date(2026, 3, 2),
    title="Optimal transport maps from few samples",
    abstract="Moving mass cheaply is old. We estimate optimal transport maps from a handful of samples.",
    authors=("Ada Öhman", "Jun-ho Park"),
    categories=("stat.ML", "cs.LG"),
)
BUSES = paper(
    "2603.00002",
    date(2026, 3, 3),
    title="Transport planning in cities",
    abstract="Buses run late. We plan transport by optimal schedules for a mid-sized city.",
    authors=("Ada Lind",),
    categories=("cs.CY",),
    github_url="https://github.com/invented/buses",
)
SPACE = paper(
    "2603.00003",
    date(2026, 3, 4),
    title="State-space models remember longer",
    abstract="A state space model with a slower clock keeps what it has read.",
    authors=("Ngozi Okafor",),
    categories=("cs.LG",),
)
GONE = paper("2603.00004", date(2026, 3, 4), title="Optimal transport, withdrawn", withdrawn=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    own = passage(
        "pdf:1",
        MAPS.paper_id,
        "In section three the notation of couplings is fixed.",
        access_level="private",
        owner="lab",
    )
    corpus = corpus_of(tmp_path_factory.mktemp("desk"), [MAPS, BUSES, SPACE, GONE], {"lab/maps.pdf": [own]})
    append_ratings(
        corpus.warehouse,
        "lab",
        [NewRating(paper_id=MAPS.paper_id, rating="worth"), NewRating(paper_id=BUSES.paper_id, rating="no")],
        given_in="page",
        now=datetime(2026, 3, 5, tzinfo=UTC),
    )
    return corpus


def find(corpus: Corpus, query: str, **options: int) -> tuple[FoundPaper, ...]:
    return search_desk(corpus, parse_search_query(query), profile="lab", **options).papers


def ids(found: tuple[FoundPaper, ...]) -> list[str]:
    return [each.paper_id for each in found]


@pytest.mark.parametrize(
    ("phrase", "holds"),
    [
        ("Schrodinger operator", True),
        ("SCHRÖDINGER OPERATORS", True),
        ("operators on graphs", True),
        ("on graph", True),
        ("on a graph", False),
        ("perator on graphs", False),
        ("ροές θερμότητας", True),
        ("θερμότητας ροές", False),
        ("low rank", True),
        ("to be", True),
    ],
)
def test_a_phrase_is_found_in_any_script_whatever_its_accents_case_signs_and_plurals(
    tmp_path: Path, phrase: str, holds: bool
) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    text = "Low_rank Schrödinger\noperators on graphs are to be, or not: ΡΟΈΣ θερμότητας."
    merge_papers(warehouse, [paper("2603.00001", title="One", abstract=text), paper("2603.00002", title="On graphs")])
    corpus = Corpus(warehouse=warehouse, embedder=None)
    found = papers_with_phrases(corpus, [phrase, "graphs"], data_types=["abstract"], owner=None)
    assert ("2603.00001" in found.to_pylist()) == holds
    only = papers_with_phrases(corpus, ["graphs"], data_types=["abstract"], owner=None, only=pa.array(["2603.00002"]))
    assert only.to_pylist() == ["2603.00002"]


def test_words_rank_by_meaning_and_words_and_withdrawn_papers_are_left_out(corpus: Corpus) -> None:
    found = find(corpus, "optimal transport maps")
    assert ids(found)[0] == MAPS.paper_id
    assert GONE.paper_id not in ids(found)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"optimal transport"', [MAPS]),
        ('"state space model"', [SPACE]),
        ('"space state"', []),
        ("author:ohman", [MAPS]),
        ('author:"jun ho park"', [MAPS]),
        ("author:Ada author:Park", [MAPS]),
        ("author:Ada", [BUSES, MAPS]),
        ("author:hman", []),
        ("category:cs.LG", [SPACE, MAPS]),
        ("category:stat", [MAPS]),
        ("category:CS.lg|STAT", [SPACE, MAPS]),
        ("from:2026-03-03", [SPACE, BUSES]),
        ("to:2026-03-02", [MAPS]),
        ("is:worth", [MAPS]),
        ("is:worth|no", [BUSES, MAPS]),
        ("is:unseen", [SPACE]),
        ("has:code", [BUSES]),
        ("has:pdf", [MAPS]),
        ("in:lab", []),
        ("-category:cs.LG", [BUSES]),
        ("-author:Ada", [SPACE]),
        ("-is:worth -has:code", [SPACE]),
        ("category:cs.LG -from:2026-03-04", [MAPS]),
        ('-"optimal transport"', [SPACE, BUSES]),
        ("-bus", [SPACE, MAPS]),
    ],
)
def test_filters_are_exact_and_newest_papers_come_first(corpus: Corpus, query: str, expected: list[object]) -> None:
    assert ids(find(corpus, query)) == [each.paper_id for each in expected]  # type: ignore[attr-defined]


def test_words_are_ranked_within_the_filters(corpus: Corpus) -> None:
    assert ids(find(corpus, "transport category:cs.CY")) == [BUSES.paper_id]
    assert search_desk(corpus, parse_search_query("transport category:cs.CY"), profile="lab").matching == 1


def test_an_excluded_part_takes_its_papers_out_of_the_ranked_ones(corpus: Corpus) -> None:
    assert set(ids(find(corpus, "transport"))) == {MAPS.paper_id, BUSES.paper_id}
    assert ids(find(corpus, "transport -category:cs.CY")) == [MAPS.paper_id]
    assert ids(find(corpus, "transport -samples")) == [BUSES.paper_id]


def test_a_category_that_no_stored_paper_has_is_unknown(corpus: Corpus) -> None:
    for query in ("category:cs.XX", "maps category:cs.LG|cs.XX", "maps -category:cs.XX"):
        with pytest.raises(InvalidInput, match=r"category:cs\.XX is unknown; no stored paper has it"):
            find(corpus, query)


@pytest.mark.parametrize("query", ["???", "😀 category:cs.LG", "_"])
def test_a_query_of_symbols_only_finds_nothing_and_says_why(corpus: Corpus, query: str) -> None:
    found = search_desk(corpus, parse_search_query(query), profile="lab")
    assert (found.papers, found.matching, found.more) == ((), 0, False)
    assert "contains no letter or digit" in found.notes[0]


def test_an_id_or_link_finds_its_paper_and_one_that_is_not_stored_is_named(corpus: Corpus) -> None:
    for written in ("2603.00002", "arXiv:2603.00002v3", "https://arxiv.org/pdf/2603.00002", "2603.00002 is:later"):
        assert ids(find(corpus, written)) == [BUSES.paper_id]
    unknown = search_desk(corpus, parse_search_query("2603.09999"), profile="lab")
    assert (unknown.papers, unknown.named, unknown.notes) == ((), "2603.09999", ("2603.09999 is not stored",))


def test_hits_are_marked_where_the_words_occur(corpus: Corpus) -> None:
    [found] = find(corpus, '"optimal transport maps"')
    assert [found.title[hit.start : hit.end] for hit in found.hits if hit.field == "title"] == [
        "Optimal",
        "transport",
        "maps",
    ]
    assert found.passage == "We estimate optimal transport maps from a handful of samples."


def test_pages_are_stable_and_complete(corpus: Corpus) -> None:
    whole = ids(find(corpus, "optimal transport models", limit=10))
    pages = [ids(find(corpus, "optimal transport models", offset=start, limit=1)) for start in range(len(whole))]
    assert [paper_id for page in pages for paper_id in page] == whole
    assert len(set(whole)) == len(whole)


def test_a_private_full_text_is_found_by_its_owner_only(corpus: Corpus) -> None:
    query = parse_search_query("notation of couplings in:fulltexts")
    own = search_desk(corpus, query, profile="lab").papers
    assert [(each.paper_id, each.collection) for each in own] == [(MAPS.paper_id, "fulltext")]
    assert search_desk(corpus, query, profile="other").papers == ()
    assert search_desk(corpus, query, profile=None).papers == ()
    assert search_desk(corpus, parse_search_query("has:pdf"), profile="other").papers == ()


def test_ratings_belong_to_the_reader(corpus: Corpus) -> None:
    assert ids(search_desk(corpus, parse_search_query("is:worth"), profile="other").papers) == []
    with pytest.raises(InvalidInput, match="needs a profile"):
        search_desk(corpus, parse_search_query("is:worth"), profile=None)


def test_similar_papers_leave_out_the_paper_itself(corpus: Corpus) -> None:
    found = similar_papers(corpus, MAPS, limit=2)
    assert MAPS.paper_id not in ids(found)
    assert ids(similar_papers(corpus, MAPS, limit=1, offset=1)) == ids(found)[1:]


def test_without_a_model_words_alone_are_compared(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=30)
    merge_papers(warehouse, [MAPS, SPACE])
    result = search_desk(Corpus(warehouse=warehouse, embedder=None), parse_search_query("transport maps"), profile=None)
    assert ids(result.papers) == [MAPS.paper_id]
    assert any("only words" in note for note in result.notes)
