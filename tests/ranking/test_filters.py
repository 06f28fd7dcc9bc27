from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper import Paper, papers_to_table
from paper_assets.profile import Profile, RankingOptions
from paper_assets.ranking.explain import why_removed
from paper_assets.ranking.filters import FILTERS, FilterCriteria, filter_papers, shown_before
from paper_assets.settings import ScoringConfig
from tests.ranking.invented import AS_OF, paper, papers, profile, profiles
from tests.ranking.plain_twin import PlainGatekeeper

OLD = datetime(2020, 12, 31, 23, 59, tzinfo=UTC)


def reasons(papers: list[Paper], given: Profile | None, **criteria: object) -> list[str | None]:
    options = given.content.ranking if given else RankingOptions()
    asked = FilterCriteria(content=given.content if given else None, options=options)
    rows = filter_papers(papers_to_table(papers), replace(asked, **criteria))
    assert rows.column_names == ["paper_id", "title", "passed", "reason", "phase"]
    assert rows.column("paper_id").to_pylist() == [one.paper_id for one in papers]
    assert rows.column("passed").to_pylist() == [reason is None for reason in rows.column("reason").to_pylist()]
    return rows.column("reason").to_pylist()


def test_the_first_reason_in_the_order_of_the_specification_is_kept() -> None:
    asked = profile(keywords={"exclude": {"hard": ["clinical"]}}, constraints={"min_year": 2024, "require_code": True})
    worst = paper(abstract="A clinical trial.", published=OLD)
    ids = frozenset({worst.paper_id})
    everything = {"read_ids": ids, "shown_ids": ids}
    code = "https://github.com/a/b"
    assert reasons([replace(worst, withdrawn=True)], asked, **everything) == ["WITHDRAWN"]
    assert reasons([worst], asked, **everything) == ["ALREADY_READ"]
    assert reasons([worst], asked, shown_ids=ids) == ["BLACKLIST_KEYWORD:clinical"]
    assert reasons([replace(worst, abstract="")], asked, shown_ids=ids) == ["TOO_OLD:2020"]
    assert reasons([replace(worst, abstract="", published=None)], asked, shown_ids=ids) == ["NO_CODE_REQUIRED"]
    assert reasons([paper(github_url=code)], asked, shown_ids=ids) == ["ALREADY_SHOWN"]
    assert reasons([paper(github_url=code)], asked) == [None]
    assert len(FILTERS) == 7


def test_a_paper_in_an_excluded_category_is_removed_by_any_or_only_by_its_first_category() -> None:
    both, second = paper(categories=("cs.CL", "cs.CV")), paper(categories=("cs.CV", "cs.CL"))
    assert reasons([both, second], profile(feed={"exclude_categories": ["cs.cv"]})) == ["EXCLUDED_CATEGORY:cs.CV"] * 2
    by_first = profile(feed={"exclude_categories": ["primary:cs.CV"]})
    assert reasons([both, second], by_first) == [None, "EXCLUDED_CATEGORY:cs.CV"]


def test_every_reason_has_a_distinct_code_and_words_for_one_paper_and_for_many() -> None:
    assert len({each.code for each in FILTERS}) == len(FILTERS)
    for each in FILTERS:
        for detail in ("", ":detail"):
            sentence = why_removed(each.code + detail)
            assert sentence.startswith("Not ranked: ") and each.words in sentence and each.code not in sentence
        assert each.words.strip() and each.counted.strip() and each.code not in each.counted


def test_history_is_compared_without_version() -> None:
    papers = [paper("2603.00001"), paper("2603.00002"), paper("hep-th/9901001")]
    read = frozenset({"2603.00001v3", "arXiv:hep-th/9901001"})
    assert reasons(papers, profile(), read_ids=read) == ["ALREADY_READ", None, "ALREADY_READ"]


def test_the_excluded_keyword_is_named_as_the_profile_writes_it_and_the_first_counts() -> None:
    asked = profile(keywords={"exclude": {"hard": ["drug-discovery", "Clinical"]}})
    found = reasons([paper(title="Clinical drug discovery"), paper("2603.00002", abstract="clinical")], asked)
    assert found == ["BLACKLIST_KEYWORD:drug-discovery", "BLACKLIST_KEYWORD:Clinical"]


def test_a_literature_review_reads_five_years_further_back() -> None:
    asked = profile(constraints={"min_year": 2025}, ranking={"purpose": "literature_review"})
    papers = [paper(published=OLD), paper("2603.00002", published=datetime(2019, 12, 31, tzinfo=UTC))]
    assert reasons(papers, asked) == [None, "TOO_OLD:2019"]
    assert reasons(papers, profile(constraints={"min_year": 2025})) == ["TOO_OLD:2020", "TOO_OLD:2019"]


def test_an_unknown_date_is_never_too_old() -> None:
    assert reasons([paper(published=None)], profile(constraints={"min_year": 2026})) == [None]


def test_purpose_implementation_requires_code() -> None:
    papers = [paper(), paper("2603.00002", github_url="https://github.com/a/b")]
    assert reasons(papers, profile(ranking={"purpose": "implementation"})) == ["NO_CODE_REQUIRED", None]


def test_without_a_profile_only_what_needs_none_is_filtered() -> None:
    papers = [paper(), paper("2603.00002", withdrawn=True), paper("2603.00003", published=OLD)]
    assert reasons(papers, None, read_ids=frozenset({"2603.00001"})) == ["ALREADY_READ", "WITHDRAWN", None]


def test_no_papers_are_not_an_error() -> None:
    assert reasons([], profile(keywords={"exclude": {"hard": ["x"]}}, constraints={"min_year": 2026})) == []


@given(papers=papers(), profile=profiles(), read=st.sets(st.integers(0, 30), max_size=3))
def test_filters_agree_with_the_plain_ones(papers: list[Paper], profile: Profile, read: set[int]) -> None:
    ids = frozenset(f"2603.{number:05d}" for number in read)
    twin = PlainGatekeeper(profile, profile.content.ranking, AS_OF, ScoringConfig())
    assert reasons(papers, profile, read_ids=ids) == [twin.reason(one, ids) for one in papers]


def test_a_project_page_counts_as_code_for_a_profile_that_requires_code() -> None:
    asked = profile(constraints={"require_code": True})
    assert reasons([paper(comment="Project page: https://some-lab.github.io/thing")], asked) == [None]
    assert reasons([paper(github_url="https://huggingface.co/datasets/lab/set")], asked) == ["NO_CODE_REQUIRED"]


def test_the_papers_that_an_earlier_list_has_shown_are_known() -> None:
    window = [paper(paper_id="2603.00001"), paper(paper_id="2603.00002")]
    for shown, known in (
        (frozenset({window[1].paper_id}), [window[1].paper_id]),
        (frozenset({"2601.99999"}), []),
        (frozenset(), []),
    ):
        criteria = FilterCriteria(content=None, options=RankingOptions(), shown_ids=shown)
        assert shown_before(filter_papers(papers_to_table(window), criteria)) == known
