"""Tag ranked papers with what a reader should notice about them (SPEC G13).

To add a tag: add its words to `IN_WORDS` and its condition to `tags_of`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import ProfileContent
from paper_assets.ranking.avoided import Avoided
from paper_assets.settings import ScoringConfig
from paper_assets.text.names import name_forms
from paper_assets.text.words import normal_forms
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SOFT_PENALTY = "SOFT_PENALTY"
ALSO_AS, COPY_OF = "ALSO_AS", "COPY_OF"  # followed by the other paper's id: this one is shown, the other one is
AVOIDED_TOPIC, NEAR_AVOIDED = "AVOIDED_TOPIC", "NEAR_AVOIDED"  # followed by the topic: removed for it, lowered for it
LEARNED_NOTED = 0.05  # change of a probability from which a tag names the effect of ratings

CONTRASTIVE_IN_WORDS = {
    "CONTRASTIVE_PICK": "picked because it differs from the others",
    "CONTRASTIVE_METHOD": "same problem by another method",
    "CONTRASTIVE_ASSUMPTION": "same method under another learning assumption",
    "CONTRASTIVE_DOMAIN": "same technique in another field",
}
# In the order in which they are shown. They are followed by SOFT_PENALTY:<keyword> for each soft keyword found, by
# AVOIDED_TOPIC:<topic> or NEAR_AVOIDED:<topic>, and by the tags of the contrastive paper.
IN_WORDS = {
    "SEMANTIC_HIGH_MATCH": "very close to your interests",
    "PREFERRED_AUTHOR": "by an author you follow",
    "PERHAPS_AUTHOR": "perhaps by an author you follow",
    "PREFERRED_INSTITUTION": "from an institution you follow",
    "CODE_AVAILABLE": "code is published",
    "VERY_RECENT": "very recent",
    "ALREADY_DOWNLOADED": "already on your disk",
    "MUST_KEYWORD_MATCH": "contains one of your keywords",
    "LLM_VERIFIED": "relevance judged by a language model",
    "PROJECT_PAGE": "has a project page, which leads to the code",
    "LIKE_WORTH": "like papers that you rated worth reading",
    "LIKE_NO": "like papers that you rated not for you",
    "NO_CODE": "no code known",
    "OLDER_PAPER": "an older paper",
    "SURVEY": "a survey or review",
    "CONSIDERED_BEFORE": "considered for an earlier list",
}

_WITH_NAME = {
    SOFT_PENALTY: "avoided keyword:",
    AVOIDED_TOPIC: "removed, nearer than to any interest to what you avoid:",
    NEAR_AVOIDED: "near to what you avoid:",
    ALSO_AS: "the same paper as",
    COPY_OF: "the same paper as",
}
UNREMARKABLE = ("VERY_RECENT", "NO_CODE")  # true of most papers of a day


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFacts:
    """What tags depend on: dimensions (n, 6), ages in days (n,), keywords found (n, k), and other facts (n,)."""

    dimensions: Floats
    ages: Floats
    code: Bools
    project_page: Bools
    downloaded: Bools
    perhaps_followed: Bools  # a followed author may be among the authors
    must_found: Bools
    soft_found: Bools
    soft_keywords: Sequence[str]
    survey: Bools
    llm_verified: Bools
    considered: Bools
    content: ProfileContent | None
    learned: Floats | None = None  # by how much ratings change relevance; None if they do not count
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    avoided: Avoided | None = None


def tags_of(evidence: TagFacts) -> pa.ListArray:
    """Return the tags of each paper, in the order of IN_WORDS.

    PREFERRED_AUTHOR and PREFERRED_INSTITUTION require that the profile prefers one, because the dimension is 1 for all
    papers otherwise. MUST_KEYWORD_MATCH requires one of the must keywords.
    """
    scoring, content = evidence.scoring, evidence.content
    learned = np.zeros(len(evidence.ages)) if evidence.learned is None else evidence.learned
    column = dict(zip(DIMENSIONS, evidence.dimensions.T, strict=True))
    tagged = {
        "SEMANTIC_HIGH_MATCH": column["semantic_relevance"] >= scoring.high_match,
        "PREFERRED_AUTHOR": (column["author_trust"] == 1.0) & bool(content and content.preferred_authors),
        "PERHAPS_AUTHOR": evidence.perhaps_followed & (column["author_trust"] < 1.0),
        "PREFERRED_INSTITUTION": (column["institution_trust"] == 1.0)
        & bool(content and content.preferred_institutions),
        "CODE_AVAILABLE": evidence.code,
        "VERY_RECENT": evidence.ages <= scoring.very_recent_days,
        "ALREADY_DOWNLOADED": evidence.downloaded,
        "MUST_KEYWORD_MATCH": evidence.must_found.any(axis=1),
        "LLM_VERIFIED": evidence.llm_verified,
        "PROJECT_PAGE": evidence.project_page & ~evidence.code,
        "LIKE_WORTH": learned >= LEARNED_NOTED,
        "LIKE_NO": learned <= -LEARNED_NOTED,
        "NO_CODE": ~evidence.code & ~evidence.project_page,
        "OLDER_PAPER": evidence.ages >= scoring.older_days,
        "SURVEY": evidence.survey,
        "CONSIDERED_BEFORE": evidence.considered,
    }
    columns = [*(tagged[name] for name in IN_WORDS), evidence.soft_found]
    names = [*IN_WORDS, *(f"{SOFT_PENALTY}:{keyword}" for keyword in evidence.soft_keywords)]
    if (avoided := evidence.avoided) is not None:
        nearest = avoided.nearest[:, None] == np.arange(len(avoided.names))
        columns += [nearest & avoided.removed[:, None], nearest & ~avoided.removed[:, None]]
        names += [f"{tag}:{topic}" for tag in (AVOIDED_TOPIC, NEAR_AVOIDED) for topic in avoided.names]
    return named_where(np.column_stack(columns), names)


def removing_tag(tags: Sequence[str]) -> str | None:
    """Return the tag that names the topic to avoid for which a paper was removed; None for any other paper."""
    return next((tag for tag in tags if tag.startswith(f"{AVOIDED_TOPIC}:")), None)


def avoided_topic(tags: Sequence[str]) -> str | None:
    """Return the topic to avoid for which a paper with these tags was removed; None for any other paper."""
    tag = removing_tag(tags)
    return tag and tag.partition(":")[2]


def tag_in_words(tag: str) -> str:
    """Return what a tag says of a paper."""
    name, _, named = tag.partition(":")
    words = _WITH_NAME.get(name)
    return f"{words} {named}" if words else (IN_WORDS | CONTRASTIVE_IN_WORDS).get(tag, tag)


def named_where(matrix: Bools, names: Sequence[str]) -> pa.ListArray:
    """Return for each row of a matrix (n, k) the list of the names (k,) whose column is true."""
    offsets = np.concatenate(([0], np.cumsum(matrix.sum(axis=1)))).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(names, type=pa.string()).take(pa.array(np.nonzero(matrix)[1])))


def copies_of(papers: pa.Table) -> dict[int, int]:
    """Return by row of a paper stored twice (SPEC G20) the row of the one that it repeats, which has the smaller id.

    Two papers are the same if their titles are, and their abstracts or all their authors.
    """
    titles = normal_forms(papers.column("title").to_pylist())
    ids = papers.column("paper_id").to_pylist()
    by_title: dict[str, list[int]] = {}
    for row in np.argsort(ids, kind="stable").tolist():
        by_title.setdefault(titles[row], []).append(row)
    groups = [rows for title, rows in by_title.items() if title and len(rows) > 1]
    copies: dict[int, int] = {}
    for rows in groups:
        found = papers.take(rows)
        abstracts = normal_forms(found.column("abstract").to_pylist())
        authors = [sorted(name_forms(names)) for names in found.column("authors").to_pylist()]
        for at in range(1, len(rows)):
            same = [
                other
                for other in range(at)
                if rows[other] not in copies
                and (abstracts[at] == abstracts[other] or authors[at] == authors[other] != [])
            ]
            if same:
                copies[rows[at]] = rows[same[0]]
    return copies


def with_copies(tags: pa.ListArray, copies: Mapping[int, int], paper_ids: Sequence[str]) -> pa.ListArray:
    """Return the tags (n,) of papers with those that name the other paper."""
    by_row = tags.to_pylist()
    for copy, shown in sorted(copies.items(), key=lambda pair: paper_ids[pair[0]]):
        by_row[copy] = [*by_row[copy], f"{COPY_OF}:{paper_ids[shown]}"]
        by_row[shown] = [*by_row[shown], f"{ALSO_AS}:{paper_ids[copy]}"]
    return pa.array(by_row, type=pa.list_(pa.string()))
