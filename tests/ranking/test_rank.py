import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from zlib import crc32

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paper_assets.paper import Paper, papers_to_table
from paper_assets.profile import Profile
from paper_assets.ranking.explain import order_parts, recompute, what_was_missing
from paper_assets.ranking.final_list import match_of
from paper_assets.ranking.levels import LIKELY, probability_of
from paper_assets.ranking.preferences import log_odds
from paper_assets.ranking.rank import Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig
from paper_assets.stores.rankings import ranking_schema
from paper_assets.weights import DIMENSIONS
from tests.ranking.invented import AS_OF, KEYWORDS, paper, papers, profile, profiles, unit_vectors
from tests.ranking.plain_relevance import PlainInterests, final_order, plain_matches
from tests.ranking.plain_twin import PlainGatekeeper

SCORING = ScoringConfig()
seeds = st.integers(0, 2**32 - 1)


def ranked(papers: list[Paper], wanted: Profile | None, *, seed: int | None = 7, **given: object) -> Ranking:
    """The papers ranked with random vectors that depend on the id, the text and the seed; None: without vectors."""
    options = (wanted or profile()).content.ranking.model_copy(update=given)
    queries = interest_queries(wanted.content.interests, options=options, scoring=SCORING) if wanted else None
    vectors = query_vectors = None
    if seed is not None:
        vectors = unit_vectors(100, seed=seed)[[hash_of(one) for one in papers]].reshape(len(papers), 24)
        texts = queries.texts if queries else []
        query_vectors = np.array([vector_of(text, seed) for text in texts], dtype=np.float32).reshape(len(texts), 24)
    return rank(
        RankingTask(
            candidates=papers_to_table(papers),
            profile=wanted,
            options=options,
            as_of=AS_OF,
            scoring=SCORING,
            queries=queries,
            pdf_names=("2603.00003v1.pdf", "2603.00004.pdf"),
            vectors=None
            if vectors is None or query_vectors is None
            else Vectors(papers=vectors, queries=query_vectors),
        )
    )


def vector_of(text: str, seed: int) -> list[float]:
    return unit_vectors(1, seed=crc32(text.encode()) ^ seed)[0].tolist()


def hash_of(one: Paper) -> int:
    return int(one.paper_id[-2:])


@given(papers=papers(), profile=profiles(), seed=seeds, with_model=st.booleans())
def test_ranking_agrees_with_the_plain_one(papers: list[Paper], profile: Profile, seed: int, with_model: bool) -> None:
    assume(len({(one.title, one.abstract) for one in papers}) == len(papers))  # copies are tested separately
    options = profile.content.ranking
    fused = options.interest_mode != "seed"
    assume(not (fused and with_model and options.purpose == "idea_generation"))  # variety is tested separately
    assume(fused or with_model)  # the replacement of the cosine in mode `seed` is tested separately
    twin = PlainGatekeeper(profile, options, AS_OF, SCORING)
    vectors = unit_vectors(100, seed=seed).tolist()
    fields = [(one.title, one.abstract) for one in papers]
    interests = PlainInterests(profile, options, (lambda text: vector_of(text, seed)) if with_model else None)
    relevance, serves = interests.judge(fields, [vectors[hash_of(one)] for one in papers])
    scored = [
        (one, twin.score(one, value, has_pdf=one.paper_id in {"2603.00003", "2603.00004"}))
        for one, value in zip(papers, relevance, strict=True)
    ]
    floor = (SCORING.floor if options.threshold is None else options.threshold) if fused else None
    assume(all(far_from(value, floor) for value in relevance))
    assume(are_distinguishable([scores for _, scores in scored], plain_matches(scored, options) if fused else None))
    order, shown = final_order(scored, serves, options, floor)
    ranking = ranked(papers, profile, seed=seed if with_model else None)
    rows = ranking.rows.to_pylist()
    assert [row["paper_id"] for row in rows] == [papers[at].paper_id for at in order]
    assert [row["shown"] for row in rows] == [place < shown for place in range(len(papers))]
    for row, at in zip(rows, order, strict=True):
        for name, value in scored[at][1].items():
            assert row[name] == (pytest.approx(value, rel=0, abs=1e-9) if isinstance(value, float) else value), name


def far_from(value: float, floor: float | None) -> bool:
    """Not so near to the floor or to a tenth that the last bits decide, unless it is nothing."""
    near = [abs(value - border) for border in (*np.arange(1, 10) / 10, floor or 0.0)]
    return floor is None or value < 1e-6 or min(near) > 1e-9


def are_distinguishable(scored: list[dict[str, object]], matches: list[float] | None) -> bool:
    """Whether no two papers have nearly the same score or match from different parts, so that the last bits decide."""
    finals = [float(str(one["final"])) for one in scored]
    values = np.array([finals, finals if matches is None else matches])
    return all(
        (np.abs(values[:, one] - values[:, other]) > 1e-9).all()
        or all(scored[one][name] == scored[other][name] for name in scored[one] if name != "tags")
        for one, other in combinations(range(len(scored)), 2)
    )


@given(papers=papers(), profile=profiles(), seed=seeds, data=st.data())
def test_the_order_of_the_papers_changes_no_bit(
    papers: list[Paper], profile: Profile, seed: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(papers))
    for vectors in (seed, None):
        one, other = ranked(papers, profile, seed=vectors), ranked(shuffled, profile, seed=vectors)
        assert one.rows.equals(other.rows)
        assert one.header == other.header


@given(papers=papers(), profile=st.none() | profiles(), seed=st.none() | seeds)
def test_every_score_is_in_range_and_follows_from_its_parts(
    papers: list[Paper], profile: Profile | None, seed: int | None
) -> None:
    ranking = ranked(papers, profile, seed=seed)
    rows, final = ranking.rows, ranking.rows.column("final").to_numpy()
    assert rows.schema.equals(ranking_schema())
    parts = np.column_stack([rows.column(name).to_numpy() for name in DIMENSIONS])
    assert ((parts >= 0) & (parts <= 1)).all()
    assert ((final >= -0.5) & (final <= 1.5)).all()
    assert np.array_equal(recompute(rows, ranking.header["weights"], SCORING), final)
    assert rows.column("rank").to_pylist() == list(range(1, len(papers) + 1))
    floor, top_k = ranking.header["threshold"], ranking.header["top_k"]
    possible = [floor is None or probability_of(row) >= floor for row in rows.to_pylist()]
    assert possible == sorted(possible, reverse=True)
    assert rows.column("shown").to_pylist() == [place < top_k and may for place, may in enumerate(possible)]
    assert sum(ranking.header["weights"].values()) == pytest.approx(1.0)


@given(papers=papers(), profile=profiles(), seed=seeds)
def test_the_header_names_only_papers_of_the_list_so_that_today_reads_no_more(
    papers: list[Paper], profile: Profile, seed: int
) -> None:
    ranking = ranked(papers, profile, seed=seed)
    shown = set(ranking.shown.column("paper_id").to_pylist())
    header = json.dumps(ranking.header)
    assert [each.paper_id for each in papers if each.paper_id not in shown and each.paper_id in header] == []


@given(papers=papers(), wanted=profiles(), keyword=st.sampled_from(KEYWORDS))
def test_adding_an_asked_keyword_to_a_paper_never_lowers_it(papers: list[Paper], wanted: Profile, keyword: str) -> None:
    assume(papers and keyword != "++")
    # Nor its likeness to interests; likeness to liked papers is one of whole texts, and may fall.
    content = wanted.content.model_copy(
        update={"interests": wanted.content.interests.model_copy(update={"papers": []})}
    )
    keywords = content.keywords.model_copy(
        update={"must_include": [keyword, *content.keywords.must_include], "exclude": type(content.keywords.exclude)()}
    )
    query_vectors = replace(wanted, content=content.model_copy(update={"keywords": keywords}))
    richer = [replace(papers[0], abstract=f"{papers[0].abstract} | {keyword}."), *papers[1:]]
    before, after = (
        next(row for row in ranked(some, query_vectors).rows.to_pylist() if row["paper_id"] == papers[0].paper_id)
        for some in (papers, richer)
    )
    assert after["must_keywords"] >= before["must_keywords"]
    assert after["final"] >= before["final"]
    assert after["rank"] <= before["rank"]


def test_without_a_profile_only_recency_and_practicality_count() -> None:
    papers = [
        paper("2603.00010"),
        paper("2603.00004"),
        paper("2603.00012", github_url="https://github.com/a/b", published=datetime(2020, 1, 1, tzinfo=UTC)),
    ]
    ranking = ranked(papers, None)
    rows = ranking.rows.to_pylist()
    assert [row["paper_id"] for row in rows] == ["2603.00004", "2603.00010", "2603.00012"]
    assert rows[0]["final"] == pytest.approx((0.2 * 1.0 + 0.15 * 0.3) / 0.35)
    assert {row["evaluation_method"] for row in rows} == {"profile_free"}
    assert ranking.header["profile_hash"] is None
    assert rows[0]["tags"] == ["VERY_RECENT", "ALREADY_DOWNLOADED", "NO_CODE"]


def test_without_vectors_keywords_judge() -> None:
    papers = [paper("2603.00010"), paper("2603.00011", title="Graph learning")]
    for mode in ("seed", "hybrid"):
        ranking = ranked(papers, profile(), seed=None, interest_mode=mode)
        assert ranking.header["evaluation_method"] == "keyword"
        assert ranking.rows.column("paper_id").to_pylist() == ["2603.00011", "2603.00010"]
        relevance = ranking.rows.column("semantic_relevance").to_pylist()
        assert relevance == [1.0, 0.0] if mode == "seed" else relevance[0] > 0.3 > relevance[1]


def test_purpose_and_mode_are_those_asked_for() -> None:
    ranking = ranked([paper()], profile(), purpose="implementation", ranking_mode="novelty", top_k=3)
    assert ranking.header["weights"]["practicality"] == 0.4
    assert ranking.rows.column("bonus").to_pylist() == [pytest.approx(0.1)]
    assert (ranking.header["purpose"], ranking.header["ranking_mode"], ranking.header["top_k"]) == (
        "implementation",
        "novelty",
        3,
    )


def test_tags_say_what_is_special_and_only_where_it_was_asked_for() -> None:
    special = paper(
        title="A survey of RL",
        abstract="RL and datasets.",
        authors=("Müller, Ana",),
        affiliations=("MIT",),
        github_url="https://github.com/a/b",
        published=datetime(2025, 12, 31, tzinfo=UTC),
    )
    query_vectors = profile(
        keywords={
            "must_include": ["RL", "robots"],
            "exclude": {"soft": ["abstract:dataset", "Survey", "datasets", "robots"]},
        },
        preferred_authors=["Ana Muller"],
        preferred_institutions=["MIT"],
    )
    (row,) = ranked([special], query_vectors).rows.to_pylist()
    assert row["tags"] == [
        "PREFERRED_AUTHOR",
        "PREFERRED_INSTITUTION",
        "CODE_AVAILABLE",
        "MUST_KEYWORD_MATCH",
        "OLDER_PAPER",
        "SOFT_PENALTY:abstract:dataset",
        "SOFT_PENALTY:Survey",
    ]
    assert (row["penalty_keywords"], row["soft_penalty"]) == (
        ["abstract:dataset", "Survey"],
        -0.3,
    )  # "datasets" is only in the abstract
    (row,) = ranked([special], profile()).rows.to_pylist()
    assert row["tags"] == ["CODE_AVAILABLE", "OLDER_PAPER"]
    assert (row["author_trust"], row["institution_trust"], row["must_keywords"]) == (1.0, 1.0, 1.0)


def test_a_project_page_is_tagged_and_counts_as_code_and_a_data_set_does_not() -> None:
    page = "Project page: https://some-lab.github.io/thing"
    papers = [
        paper("2603.00010", comment=page),
        paper("2603.00011", abstract=f"{page}."),
        paper("2603.00013", comment=page, github_url="https://github.com/a/b"),
        paper("2603.00014"),
        paper("2603.00015", github_url="https://huggingface.co/datasets/lab/set"),
    ]
    rows = {row["paper_id"]: row for row in ranked(papers, None).rows.to_pylist()}
    tags = {"PROJECT_PAGE", "CODE_AVAILABLE", "NO_CODE"}
    assert [tags.intersection(rows[each.paper_id]["tags"]) for each in papers] == [
        {"PROJECT_PAGE"},
        {"PROJECT_PAGE"},
        {"CODE_AVAILABLE"},
        {"NO_CODE"},
        {"NO_CODE"},
    ]
    assert [rows[each.paper_id]["practicality"] for each in papers] == [0.5, 0.5, 0.5, 0.0, 0.0]


def test_a_close_paper_is_tagged_as_such() -> None:
    vector = np.array([[1.0, 0.0], [0.7, 0.714], [0.69, 0.724]], dtype=np.float32)
    papers = [paper("2603.00011"), paper("2603.00012", published=None), paper("2603.00013", published=None)]
    options = profile(ranking={"interest_mode": "seed"}).content.ranking
    rows = rank(
        RankingTask(
            candidates=papers_to_table(papers),
            profile=profile(),
            options=options,
            as_of=AS_OF,
            scoring=SCORING,
            vectors=Vectors(papers=vector, queries=vector[:1]),
        )
    ).rows.to_pylist()
    assert [row["tags"] for row in rows] == [
        ["SEMANTIC_HIGH_MATCH", "VERY_RECENT", "NO_CODE"],
        ["SEMANTIC_HIGH_MATCH", "NO_CODE"],
        ["NO_CODE"],
    ]


def test_a_literature_review_puts_surveys_first() -> None:
    papers = [
        paper("2603.00001", title="Graph learning for roads", abstract="Graph learning."),
        paper("2603.00002", title="A survey of graph learning", abstract="Graph learning."),
        paper("2603.00003", title="Stones", abstract="Old survey data of stones."),
    ]
    general, review = (
        ranked(papers, profile(ranking={"purpose": purpose}), seed=None) for purpose in ("general", "literature_review")
    )
    first, *others = review.rows.to_pylist()
    assert (first["paper_id"], first["bonus"]) == ("2603.00002", SCORING.survey_bonus) and "SURVEY" in first["tags"]
    assert all(row["bonus"] == 0 for row in others)
    assert all(row["bonus"] == 0 and "SURVEY" not in row["tags"] for row in general.rows.to_pylist())


@pytest.mark.parametrize("purpose", ["general", "literature_review", "implementation", "idea_generation"])
def test_the_parts_of_a_match_add_up_to_the_number_that_orders_the_list(purpose: str) -> None:
    papers = [
        paper("2603.00001", title="Graph learning and graph learning", abstract="Graph learning."),
        paper("2603.00002", title="A survey of graph learning", abstract="Roads."),
        paper("2603.00003", title="Stones", abstract="Learning."),
    ]
    ranking = ranked(papers, profile(ranking={"purpose": purpose}), seed=None)
    rows = ranking.rows.to_pylist()
    for row in rows:
        parts = sum(points for _, _, points in order_parts(row, ranking.header))
        assert parts == pytest.approx(match_of(row, ranking.header), abs=1e-9)
    likely = [match_of(row, ranking.header) for row in rows if row["semantic_relevance"] >= LIKELY]
    assert likely == sorted(likely, reverse=True)


def test_a_rare_keyword_that_is_asked_for_outweighs_what_interests_say_and_a_common_one_does_not() -> None:
    papers = [
        *(paper(f"2603.1{number:04d}", title=f"Trees {number}", abstract="On common trees.") for number in range(200)),
        paper("2603.00001", title="The geometry of rareword", abstract="Trees."),
        paper("2603.00002", title="Other trees", abstract="With rareword in it."),
    ]
    wishes = {"interests": {"primary": ["training of networks"]}}
    odds = [
        {
            row["paper_id"]: log_odds_of(row)
            for row in ranked(papers, profile(**wishes, **more), seed=None).rows.to_pylist()
        }
        for more in ({}, {"keywords": {"must_include": ["rareword", "common"]}})
    ]
    gain = {each: odds[1][each] - odds[0][each] for each in odds[0]}
    assert gain["2603.00001"] == pytest.approx(gain["2603.00002"])
    assert gain["2603.00002"] > 2 > 1 > gain["2603.10003"] > 0


def log_odds_of(row: dict[str, object]) -> float:
    return float(log_odds(np.float64(str(row["semantic_relevance"]))))


def test_the_same_paper_under_two_ids_takes_one_place_and_names_the_other() -> None:
    words = {"title": "Graph learning", "abstract": "On graphs."}
    papers = [paper("2603.00002", **words), paper("2603.00001", **words), paper("2603.00003", title="Graph learning")]
    papers[2] = replace(papers[2], authors=("Somebody Else",))
    found = ranked(papers, profile(ranking={"top_k": 3}), seed=None)
    shown = found.shown.to_pylist()
    assert [row["paper_id"] for row in shown if "ALSO_AS:2603.00002" in row["tags"]] == ["2603.00001"]
    assert "2603.00002" not in [row["paper_id"] for row in shown]
    assert "2603.00003" in [row["paper_id"] for row in shown], "an equal title alone is another paper"
    missing = what_was_missing("2603.00002", found.rows.to_pylist(), found.header) or ""
    assert missing.endswith("it is the same paper as 2603.00001, which stands for both.")
    in_seed = ranked(papers, profile(ranking={"top_k": 3, "interest_mode": "seed"}), seed=1)
    assert in_seed.shown.num_rows == 3
