"""Test what a reader wants to know first: what a paper does, which preferences it matches, why it has its rank."""

import pytest

from paper_assets.digests.entry import opening_of
from paper_assets.profile import profile_content
from tests.digests.invented import digest, paper, row

BACKGROUND = "Frogs matter, e.g. to storks. Ponds dry out. "
PROFILE = profile_content(
    {
        "interests": {"primary": ["loud frogs"]},
        "keywords": {"must_include": ["pond", "frog", "stork"]},
        "preferred_authors": ["Ada Moreau", "Bo Lund"],
        "preferred_institutions": ["Pond Lab"],
    },
    source="invented",
)


def test_a_long_abstract_opens_with_what_the_paper_does_and_keeps_the_rest_a_click_away() -> None:
    text = BACKGROUND * 4 + "We propose a pond that never dries. " + "It is wet. " * 40
    opening = opening_of(text.strip(), 100)
    assert opening.lead.startswith("We propose a pond that never dries.")
    assert (opening.rest, opening.skipped) == (text.strip(), True)


def test_an_abstract_that_fits_or_never_says_what_it_does_begins_at_its_beginning() -> None:
    short = BACKGROUND + "We propose a pond."
    assert opening_of(short, 400).lead == short
    silent = opening_of((BACKGROUND * 20).strip(), 100)
    assert silent.lead.startswith("Frogs matter") and not silent.skipped


def test_interest_author_institution_and_keywords_are_named_at_the_paper() -> None:
    tags = ["SEMANTIC_HIGH_MATCH", "PREFERRED_AUTHOR", "PREFERRED_INSTITUTION", "MUST_KEYWORD_MATCH"]
    met = paper(1, title="On ponds", authors=("Bo Lund", "Cy Ng", "Ada Moreau"), affiliations=("The Pond Lab, Turku",))
    [entry] = digest(met, rows=[row(1, met.paper_id, tags=tags, nearest="loud frogs")], content=PROFILE).entries
    assert dict(entry.tags) == {
        "SEMANTIC_HIGH_MATCH": "very close to your interest in loud frogs",
        "PREFERRED_AUTHOR": "by Bo Lund and Ada Moreau, whom you follow",
        "PREFERRED_INSTITUTION": "from Pond Lab, which you follow",
        "MUST_KEYWORD_MATCH": "your keywords: pond and frog",
    }


@pytest.mark.parametrize(("tag", "near"), [("SEMANTIC_HIGH_MATCH", "very close to"), ("NEAREST", "nearest to")])
def test_the_nearest_liked_paper_is_named_as_a_paper_and_not_as_an_interest(tag: str, near: str) -> None:
    liked = row(
        1, "2603.00001", tags=[each for each in [tag] if each != "NEAREST"], nearest="Frogs at night", library=0.9
    )
    [entry] = digest(paper(1), rows=[liked]).entries
    assert dict(entry.tags)[tag] == f"{near} “Frogs at night”, which you like"
    both = liked | {"nearest": "loud frogs", "interest_probability": 0.5}
    [entry] = digest(paper(1), rows=[both]).entries
    assert dict(entry.tags)[tag] == f"{near} your interest in loud frogs"


def test_a_wish_that_the_profile_does_not_state_has_no_separate_legend() -> None:
    wishes = {"must_keywords": 1.0, "author_trust": 1.0, "institution_trust": 1.0}
    rows = [row(1, "2603.00001", final=0.79, **wishes), row(2, "2603.00002", final=0.6, **wishes)]
    rows[1]["tags"] = ["PREFERRED_AUTHOR"]
    nobody, stated = digest(paper(1), paper(2), rows=rows).entries
    assert [part.name for part in nobody.parts] == ["for_all", "semantic_relevance", "recency"]
    assert "author_trust" in [part.name for part in stated.parts]
    assert sum(part.points for part in nobody.parts) == pytest.approx(0.79)
    assert "authors you follow" not in nobody.sum


def test_a_contrastive_paper_below_lower_scores_is_explained_and_the_others_are_not() -> None:
    rows = [
        row(1, "2603.00001", final=0.5, semantic_relevance=0.95),
        row(2, "2603.00002", final=0.6, semantic_relevance=0.82),
        row(3, "2603.00003", final=0.9, semantic_relevance=0.81, tags=["CONTRASTIVE_PICK"]),
    ]
    first, second, pick = digest(*map(paper, (1, 2, 3)), rows=rows, threshold=0.4).entries
    assert first.order is None and second.order is None
    assert pick.order is not None and "contrast" in pick.order
    assert all(entry.order is None for entry in digest(paper(1), paper(2)).entries)
