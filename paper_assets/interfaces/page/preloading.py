"""Load in the background what the first search or question needs, when a reader opens the view and begins to type.

Not when the page is served: the model and the documents of 8,000 papers take two seconds of both cores and 400 MB,
which a desk without questions does not need.
"""

import logging
from collections.abc import Callable

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.page.desk import Desk
from paper_assets.interfaces.page.jobs import Job, Jobs
from paper_assets.interfaces.page.paper_rows import corpus_of
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.question_answering import extractive_answer
from paper_assets.retrieval.search import Corpus, search
from paper_assets.stores.documents import DataType

_ANY_QUESTION = "what is this paper about"
_PASSAGES = 8  # their sentences are enough for the embedding model to be compiled
_LOADING: Jobs[bool] = Jobs("loading", at_once=1)

logger = logging.getLogger(__name__)


def load_for_search(desk: Desk) -> Job[bool]:
    """Load the embedding model and the abstracts, once for each desk."""
    return _start(desk, "search", _search_once)


def load_for_questions(desk: Desk) -> Job[bool]:
    """Load what a search needs, full texts, and the compiled embedding model, once for each desk."""
    return _start(desk, "question", _ask_once)


def _start(desk: Desk, kind: str, work: Callable[[Desk], bool]) -> Job[bool]:
    def load(_: Job[bool]) -> bool:
        try:
            return work(desk)
        except PaperAssetsError as fault:  # the reader's own search or question will explain it
            logger.info("not loaded in advance: %s", fault)
            return False
        except Exception:
            logger.exception("not loaded in advance")
            return False

    return _LOADING.start(f"{kind} {id(desk)}", load, failed=lambda loaded: not loaded)


def _search_once(desk: Desk) -> bool:
    return bool(_nearest(corpus_of(desk), "abstract"))


def _ask_once(desk: Desk) -> bool:
    corpus = corpus_of(desk)
    passages = [*_nearest(corpus, "abstract"), *_nearest(corpus, "fulltext")]
    extractive_answer(_ANY_QUESTION, passages, embedder=corpus.embedder)
    return bool(passages)


def _nearest(corpus: Corpus, data_type: DataType) -> tuple[Candidate, ...]:
    return search(
        corpus, _ANY_QUESTION, data_type=data_type, where=access(None), k=_PASSAGES, method=corpus.config.method
    ).candidates
