"""arXiv API: papers about something, and papers by id (SPEC I2). Transport and reading are those of `arxiv_api`."""

import re
import unicodedata

import requests

from paper_assets.errors import InvalidInput
from paper_assets.paper import Paper
from paper_assets.sources.arxiv_api import Feed, check_category, feed_page

_MOST_WORDS = 40  # of one query; a longer one is an abstract, and arXiv's server gives up on it
_PIECE = re.compile(r'"([^"]*)"|(\S+)')
# Not `text/words.py`: what is sent to arXiv keeps the case and the accents in which it was typed.
_PART_OF_A_WORD = re.compile(r"[^\W_]+")


def search(
    query: str,
    *,
    author: str | None = None,
    category: str | None = None,
    limit: int,
    url: str,
    session: requests.Session,
) -> Feed:
    """The best `limit` papers by arXiv's own relevance, and how many there are in all.

    Raises InvalidInput (no word to search for, no category), RateLimited, NetworkError, IncompleteFeed.
    """
    asked = {
        "search_query": search_query(query, author=author, category=category),
        "sortBy": "relevance",
        "sortOrder": "descending",
    }
    return feed_page(asked, start=0, size=limit, url=url, session=session)


def titled(title: str, *, limit: int, url: str, session: requests.Session) -> Feed:
    """Papers whose title holds the words of `title`, best first. Raises what `search` raises."""
    asked = {"search_query": _all_of("ti", title), "sortBy": "relevance", "sortOrder": "descending"}
    return feed_page(asked, start=0, size=limit, url=url, session=session)


def paper_by_id(paper_id: str, *, version: int | None, url: str, session: requests.Session) -> Paper | None:
    """The paper in the given version (None: the newest), None if arXiv has none.

    Raises RateLimited, NetworkError, IncompleteFeed.
    """
    asked = f"{paper_id}v{version}" if version else paper_id
    feed = feed_page({"id_list": asked}, start=0, size=1, url=url, session=session)
    return next((paper for paper in feed.papers if paper.paper_id == paper_id), None)


def search_query(query: str, *, author: str | None = None, category: str | None = None) -> str:
    """The API's query for a person's words: all of them, quoted ones as a phrase.

    Nothing of the text is left that the API could read as its own grammar: only letters and digits reach it, and those
    in quotes. Raises InvalidInput.
    """
    clauses = [_all_of("all", query)] if query.strip() else []
    if author is not None and author.strip():
        clauses.append(f"au:{_phrase(author, 'author')}")
    if category is not None and category.strip():
        check_category(category.strip())
        clauses.append(f"cat:{category.strip()}")
    if not clauses:
        raise InvalidInput("query is empty; give words to search for, an author or a category")
    return " AND ".join(clauses)


def _all_of(field: str, text: str) -> str:
    pieces = [quoted or word for quoted, word in _PIECE.findall(text.replace("\u201c", '"').replace("\u201d", '"'))]
    phrases = [phrase for piece in pieces if (phrase := _words(piece))]
    if not phrases:
        raise InvalidInput(f"{text[:60]!r} holds no word to search for")
    if len(phrases) > _MOST_WORDS:
        raise InvalidInput(f"the query has {len(phrases)} words; give at most {_MOST_WORDS}")
    return " AND ".join(f'{field}:"{phrase}"' for phrase in phrases)


def _phrase(text: str, name: str) -> str:
    words = _words(text)
    if not words:
        raise InvalidInput(f"{name} {text[:60]!r} holds no letter")
    return f'"{words}"'


def _words(text: str) -> str:
    """The words of a text, parted by one space. A hyphen parts, as it does in arXiv's index."""
    return " ".join(_PART_OF_A_WORD.findall(unicodedata.normalize("NFC", text)))
