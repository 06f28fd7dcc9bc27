"""Match a draft of a profile with the stored papers: categories to follow, matching papers, a first list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput, ModelUnavailable, NotComputed
from paper_assets.models.embedder import Embedder
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.preview import Preview, preview
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.keywords import keywords_in, paper_texts
from paper_assets.ranking.levels import LIKELY
from paper_assets.retrieval.search import Corpus, open_corpus, search
from paper_assets.setup.categories import (
    MOST_PROPOSED,
    Category,
    all_categories,
    by_votes,
    by_words,
    with_machine_learning,
)
from paper_assets.setup.draft import LikedWork, ProfileDraft, draft_content
from paper_assets.small_files import is_present
from paper_assets.stores.papers import latest_day, papers_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.acronyms import meanings
from paper_assets.text.languages import is_ordinary_word
from paper_assets.text.words import singular, words_in

MOST_ASKED = 20  # interests of a draft that are searched and counted one by one, each in about a quarter of a second
_SIMILAR = 40  # stored papers per interest whose categories vote
_BY_MEANING = 3  # categories proposed by their phrases
_MOST_BY_MEANING = 6  # the same for several texts
_SECOND_PHRASE = 0.4  # weight of a category's second nearest phrase, chosen on 1,500 titles (docs/decisions.md)
_LEAST_COSINE = 0.25  # between an interest and a category's phrases
_LEAST_RATIO = 0.7  # of that cosine to the best category's; chosen on titles whose primary category is known
_SURE_RATIO = 0.9  # the same for a category that is followed without being asked for
_LEAST_UNKNOWN = 0.37  # the same for a text of unknown words: "asdf qwer" has 0.36 to its nearest category, QCD 0.40
_EXAMPLES = 2  # papers shown for an interest, which the reader may like or exclude
_WINDOW = 7  # days of papers that matches are counted in
_NOT_EMBEDDED = "There is no preview yet: the newest stored papers are not embedded. The first ranking does that."
DRAFT = "draft"  # the name of a profile in a preview; nothing is stored under it


@dataclass(frozen=True, slots=True)
class KeywordMatch:
    """A keyword and how many of the papers contain it."""

    keyword: str
    papers: int
    of: int

    @property
    def is_frequent(self) -> bool:
        """Return whether a fifth of all papers or more contain the keyword, which then distinguishes few papers."""
        return self.of >= 10 and self.papers * 5 >= self.of


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """How the stored papers of the newest days fit a draft.

    `interests`: for each interest the number of papers on topic. `examples`: for each interest its two best papers on
    topic, as id and title. `list`: the list that the profile would have. `note` says why there is none.
    """

    first: date | None = None
    last: date | None = None
    papers: int = 0
    interests: Mapping[str, int] | None = None
    examples: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    keywords: tuple[KeywordMatch, ...] = ()
    list: Preview | None = None
    note: str | None = None


def proposed_categories(
    workspace: Workspace, texts: Sequence[str], papers: Sequence[LikedWork] = ()
) -> dict[Category, bool]:
    """Propose categories for interests and liked papers: of similar stored papers, then those with similar phrases.

    The value says whether a category is sure enough to be followed without being asked for. Only the first `MOST_ASKED`
    interests are searched. Raises StoreError.
    """
    asked = [text for text in texts if text.strip()][:MOST_ASKED]
    works = [f"{work.title} {work.abstract[:300]}".strip() for work in papers if work.title]
    ids = [work.paper_id for work in papers if work.paper_id]
    voting: list[Sequence[str]] = []
    embedder = workspace.embedder()
    if is_present(workspace.warehouse.path):
        stored = papers_from_table(papers_by_id(workspace.warehouse, ids)) if ids else []
        voting += [paper.categories for paper in stored] * 3  # a liked paper counts more than a similar one
        corpus = open_corpus(workspace.settings, workspace.warehouse, embedder)
        for text in (*asked, *works[:10]):
            voting += _categories_of_similar(corpus, text)
    voted = by_votes(voting)
    if not asked and not works:
        return dict.fromkeys(voted[:MOST_PROPOSED], True)
    named = _by_meaning(workspace, [*asked, *works[:10]]) or dict.fromkeys(by_words([*asked, *works]), True)
    learning = [] if voted else [each for each in with_machine_learning(list(named)) if each not in named]
    named = dict(list(named.items())[: max(1, MOST_PROPOSED - len(voted[:3]))] if voted else named)
    return {**named, **dict.fromkeys((*voted[:3], *learning), True)}


def unknown_interests(workspace: Workspace, interests: Sequence[str]) -> tuple[str, ...]:
    """Return those of the first `MOST_ASKED` interests with unknown words that no category and no stored paper is near.

    Raises StoreError.
    """
    asked = [each for each in interests[:MOST_ASKED] if not _has_known_word(each)]
    return tuple(each for each in asked if not proposed_categories(workspace, [each]))


def unknown_note(unknown: Sequence[str]) -> str | None:
    """Say that nothing is near these interests; None if there are none."""
    if not unknown:
        return None
    named = ", ".join(f"“{text[:60]}”" for text in unknown[:3])
    return f"no stored paper and no arXiv category is near {named}; try other words"


def _has_known_word(text: str) -> bool:
    """Return whether the text contains an English word, a word of the abstracts or an acronym."""
    known = standard_calibration().background.words
    return any(
        is_ordinary_word(word) or singular(word) in known or singular(word) in meanings() for word in words_in(text)
    )


def _categories_of_similar(corpus: Corpus, text: str) -> list[Sequence[str]]:
    try:
        result = search(corpus, text, data_type="abstract", where=None, k=_SIMILAR)
    except InvalidInput:
        return []
    floor = 1.5 * corpus.config.floors[result.method]  # only clear matches vote
    ids = [each.source_id for each in result.candidates if each.score >= floor]
    return [paper.categories for paper in papers_from_table(papers_by_id(corpus.warehouse, ids))]


def _by_meaning(workspace: Workspace, texts: Sequence[str]) -> dict[Category, bool]:
    """Return the categories with phrases that mean nearly what a text says, the best of each text first, and whether
    each is the best of a text or nearly as good.

    Without a model there are none.
    """
    try:
        embedder = workspace.load_embedder()
    except ModelUnavailable:
        return {}
    categories, first, phrases = _category_vectors(embedder)
    similar = np.split(embedder.encode(list(texts)) @ phrases.T, first[1:], axis=1)  # texts x phrases, by category
    best = np.stack([_of_two_phrases(np.sort(each, axis=1)) for each in similar], axis=1)  # texts x categories
    floors = [_LEAST_COSINE if _has_known_word(text) else _LEAST_UNKNOWN for text in texts]
    least = np.maximum(floors, _LEAST_RATIO * best.max(axis=1))
    order = np.argsort(-best, axis=1, kind="stable")[:, :_BY_MEANING]
    in_turns = [(text, at) for place in order.T for text, at in enumerate(place)]  # each text's best first
    near: dict[Category, bool] = {}
    for text, at in in_turns:
        if best[text, at] >= least[text]:
            sure = bool(best[text, at] >= _SURE_RATIO * best[text].max())
            near[categories[at]] = near.get(categories[at], False) or sure
    return dict(list(near.items())[: min(max(_BY_MEANING, len(texts) + 1), _MOST_BY_MEANING)])


def _of_two_phrases(similar: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how near a category is, from its sorted similarities: the second phrase confirms the first."""
    nearest, second = similar[:, -1], similar[:, max(similar.shape[1] - 2, 0)]
    return (1.0 - _SECOND_PHRASE) * nearest + _SECOND_PHRASE * second


@lru_cache(maxsize=1)
def _category_vectors(embedder: Embedder) -> tuple[list[Category], list[int], NDArray[np.float32]]:
    """Return the categories, the index of each one's first phrase, and the phrases' vectors; half a second."""
    categories = list(all_categories().values())
    ends = list(accumulate(len(each.phrases) for each in categories))
    return categories, [0, *ends[:-1]], embedder.encode([phrase for each in categories for phrase in each.phrases])


def matches(workspace: Workspace, draft: ProfileDraft) -> Matches:
    """Count what matches the draft in the newest stored days of its categories, and rank them as a run would.

    Counts the first `MOST_ASKED` interests. Stores nothing.

    Raises InvalidInput or InvalidProfile for a draft that no profile could have, StoreError.
    """
    content = draft_content(draft)
    warehouse, today = workspace.warehouse, workspace.clock().date()
    if not is_present(warehouse.path) or (last := latest_day(warehouse, until=today)) is None:
        return Matches(note="The list appears here once papers are stored; the next page fetches them.")
    first = last - timedelta(days=_WINDOW - 1)
    stored = papers_between(warehouse, first, last, categories=content.feed.categories or None)
    profile = Profile(name=DRAFT, content=content)
    try:
        whole = preview(workspace, profile, last)
        asked = list(dict.fromkeys(draft.in_words))[:MOST_ASKED]
        found = {text: on_topic(preview(workspace, _alone(profile, text), last)) for text in asked}
        note = None
    except NotComputed:
        whole, found, note = None, {}, _NOT_EMBEDDED
    best = {text: ids[:_EXAMPLES] for text, ids in found.items()}
    titles = _titles(warehouse, [paper_id for ids in best.values() for paper_id in ids])
    return Matches(
        first=first,
        last=last,
        papers=stored.num_rows,
        interests={text: len(ids) for text, ids in found.items()},
        examples={text: tuple((each, titles[each]) for each in ids) for text, ids in best.items()},
        keywords=keyword_matches(stored, draft.keywords),
        list=whole,
        note=note,
    )


def keyword_matches(papers: pa.Table, keywords: Sequence[str]) -> tuple[KeywordMatch, ...]:
    """Count the papers of a table, with titles and abstracts, that contain each keyword."""
    if not keywords:
        return ()
    counts = keywords_in(paper_texts(papers), list(keywords)).sum(axis=0)
    return tuple(
        KeywordMatch(keyword, int(count), papers.num_rows) for keyword, count in zip(keywords, counts, strict=True)
    )


def _titles(warehouse: Warehouse, paper_ids: Sequence[str]) -> dict[str, str]:
    return {paper["paper_id"]: paper["title"] for paper in papers_by_id(warehouse, list(paper_ids)).to_pylist()}


def on_topic(found: Preview) -> list[str]:
    """Return the papers of a preview that are likely to be on topic, the most probable first."""
    rows = found.ranking.rows.sort_by([("semantic_relevance", "descending"), ("paper_id", "ascending")])
    likely: list[str] = rows.filter(pc.greater_equal(rows["semantic_relevance"], LIKELY))["paper_id"].to_pylist()
    return likely


def _alone(profile: Profile, interest: str) -> Profile:
    """Return the profile with one interest and nothing else that a paper is compared with."""
    own = profile.content.interests.model_copy(
        update={"primary": [interest], "secondary": [], "exploratory": [], "papers": []}
    )
    return replace(profile, content=profile.content.model_copy(update={"interests": own}))
