"""Test that a withdrawal notice is recognised and the mere word is not (S6)."""

import gzip
import json

import pytest

from paper_assets.sources.paper_fields import is_withdrawn

ABSTRACT = "We study how invented things behave and find that they behave well."


@pytest.mark.parametrize(
    "notice",
    [
        "This paper has been withdrawn by the author due to an error in equation 3",
        "This paper has been withdrawn by the author(s), due to an error.",
        "Withdrawn due to a sign error",
        "withdrawn",
        "Paper withdrawn by author.",
        "This submission has been withdrawn by arXiv administrators because of overlap",
        "This has been withdrawn by arXiv administrators",
        "The article was withdrawn at the request of the second author",
        "This paper (12 pages) has been withdrawn",
        "12 pages, 3 figures. This manuscript is withdrawn pending a new proof",
        "7 pages, this paper has been withdrawn by the authors",
        "The authors have withdrawn this paper because Lemma 2 is wrong",
        "We wish to withdraw this article",
        "This paper has been retracted by the authors",
        "This article has been removed by arXiv administrators as it copies others",
    ],
)
def test_a_notice_in_the_comment_withdraws(notice):
    assert is_withdrawn(notice, ABSTRACT)


@pytest.mark.parametrize(
    "notice",
    [
        "This paper has been withdrawn.",
        "This article has been withdrawn because it was merged with another one by the same authors.",
        "Paper withdrawn due to a possible error in the numerical calculation",
        "Withdrawn by the author.",
    ],
)
def test_an_abstract_that_is_a_notice_withdraws(notice):
    assert is_withdrawn(None, notice)


@pytest.mark.parametrize(
    "text",
    [
        "12 pages, 3 figures",
        "Withdrawn from the journal's special issue; now under review elsewhere",
        "Supersedes a note that was not accepted; the withdrawn claim is corrected",
        "Unintended file upload removed by arXiv admin",
        "Section 5 of the first version was withdrawn",
        "Not withdrawn",
        "",
        None,
    ],
)
def test_a_comment_without_notice_does_not(text):
    assert not is_withdrawn(text, ABSTRACT)


@pytest.mark.parametrize(
    "abstract",
    [
        "Patients withdrawn from the dataset are counted apart.",
        "Withdrawn students are rarely asked why. We ask them.",
        "We show that users withdraw money late, and that the offer has been withdrawn by then.",
        "This paper studies why papers are withdrawn by their authors.",
        "Every neighbourhood retracts onto a smaller one. This paper has few pages.",
    ],
)
def test_an_abstract_that_only_uses_the_word_does_not(abstract):
    assert not is_withdrawn(None, abstract)


def test_real_records(shared_data):
    def withdrawn(file):
        with gzip.open(shared_data / file) as stream:
            return {one["id"] for one in map(json.loads, stream) if is_withdrawn(one["comment"], one["abstract"])}

    # All records with a withdrawal in comment or abstract, verified by reading; none of the others.
    assert withdrawn("arxiv_odd_records/records.jsonl.gz") == {
        *("0704.0156", "0704.0213", "0704.0374", "0704.0480", "0704.0525"),
        *("0704.0615", "0704.0644", "0704.0840", "0906.3336", "2101.10016"),
    }
    assert withdrawn("arxiv_papers/papers.jsonl.gz") == {"2601.11665"}
