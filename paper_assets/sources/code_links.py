"""Code links: the address of a paper's code, or of its project page, found in comment or abstract (SPEC S5). Pure.

Code lies on one of the hosts below. A data set on Hugging Face is no code, and a project page is none either: it may
promise code, show a film, or hold nothing yet. A new host of code: add it to `_ADDRESS` and `_repository_path`.
"""

import re
from dataclasses import replace

from paper_assets.paper import Paper

_CODE_HOSTS = ("github.com", "gitlab.com", "anonymous.4open.science")
_MODEL_HOST = "huggingface.co"
_ADDRESS = re.compile(
    r"(?<![\w.-])(?:https?://)?(?:www\.)?(github\.com|gitlab\.com|huggingface\.co|anonymous\.4open\.science)[/:]([\w.~%/-]+)",
    re.IGNORECASE,
)
DATA_SET = r"^(?:https?://)?(?:www\.)?huggingface\.co/datasets/"  # such a link may have been given, or stored earlier
_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*")

# One of these stands in every text that names a project page; most texts hold none, and looking is cheap.
MAY_NAME_PAGE = ("://", ".io", "4open.science", "sites.google")
_PAGE_HOSTS = (".github.io", ".gitlab.io", "4open.science/w/", "sites.google.com/view/")
_ON_PAGE_HOST = re.compile(
    r"(?<![\w./-])(?:https?://)?(?:www\.)?"
    r"((?:[a-z0-9-]+\.(?:github|gitlab)\.io|anonymous\.4open\.science/w/|sites\.google\.com/view/)[\w.~%/-]*)",
    re.IGNORECASE,
)
_SAID_TO_BE_PAGE = re.compile(
    r"\bproject(?:(?:'s)?(?: ?web| ?home)?[ -]?(?:page|site|url|link)\b[^.\n]{0,30}?|: ?)"
    r"https?://([\w.-]+\.[a-z]{2,}[\w.~%/-]*)",
    re.IGNORECASE,
)

# First path parts that are pages of the site and nobody's account.
_NO_OWNER = {
    "github.com": {"about", "apps", "collections", "features", "marketplace", "orgs", "search", "sponsors", "topics"},
    "gitlab.com": {"explore", "groups", "help", "users"},
    "huggingface.co": {"blog", "collections", "datasets", "docs", "learn", "organizations", "papers", "posts", "tasks"},
}
_GITLAB_PAGES = frozenset(("-", "tree", "blob", "raw", "issues", "wikis", "merge_requests"))


def code_url(comment: str | None, abstract: str | None) -> str | None:
    """Address of the repository named in the comment, else in the abstract; None if neither names one.

    Within one text a code host goes before Hugging Face, whose link is often a model beside the code.
    The answer is canonical: https, no `www.`, no `.git`, nothing below the repository.
    """
    for text in (comment, abstract):
        if text and (found := _repository_in(text)):
            return found
    return None


def with_code_url(paper: Paper) -> Paper:
    """The paper with the code its comment or abstract names, unless an address is given: one way for every source."""
    if paper.github_url:
        return paper
    found = code_url(paper.comment, paper.abstract)
    return replace(paper, github_url=found) if found else paper


def project_page(comment: str | None, abstract: str | None) -> str | None:
    """Address of the project page named in the comment, else in the abstract; None if neither names one."""
    for text in (comment, abstract):
        lowered = (text or "").lower()
        patterns = [_ON_PAGE_HOST] if any(host in lowered for host in _PAGE_HOSTS) else []
        patterns += [_SAID_TO_BE_PAGE] if "://" in lowered and "project" in lowered else []
        for found in (found for pattern in patterns for found in pattern.finditer(_plain(text or ""))):
            if not _repository_in(found[1]):
                return "https://" + found[1].rstrip(".-/")
    return None


def _plain(text: str) -> str:
    """TeX's escapes stand inside addresses; an address never holds a backslash of its own."""
    return text.replace("{\\_}", "_").replace("\\_", "_").replace("\\%", "%").replace("\\-", "").replace("\\", " ")


def _repository_in(text: str) -> str | None:
    lowered = text.lower()  # most texts name no host; looking first is 30 times as fast as the pattern
    if not any(host in lowered for host in (*_CODE_HOSTS, _MODEL_HOST)):
        return None
    found: dict[bool, str] = {}
    for match in _ADDRESS.finditer(_plain(text)):
        host = match[1].lower()
        path = _repository_path(host, match[2])
        if path:
            found.setdefault(host in _CODE_HOSTS, f"https://{host}/{path}")
    return found.get(True, found.get(False))


def _repository_path(host: str, path: str) -> str | None:
    """`owner/name` (Hugging Face: perhaps below `spaces/`; GitLab: perhaps with subgroups); 4open.science: `r/name`."""
    parts = [part.rstrip(".").removesuffix(".git") for part in path.split("/")]
    kind: list[str] = []
    if host == _MODEL_HOST and parts[0] == "spaces":
        kind = [parts.pop(0)]
    if host == "anonymous.4open.science":
        if parts[0] not in ("r", "repository"):
            return None
        parts[0] = "r"
    if host == "gitlab.com":
        end = next((place for place, part in enumerate(parts) if part in _GITLAB_PAGES or not part), len(parts))
        parts = parts[:end]
    else:
        parts = parts[:2]
    no_owner = _NO_OWNER.get(host, set())
    if len(parts) < 2 or parts[0].lower() in no_owner or not all(_NAME.fullmatch(part) for part in parts):
        return None
    return "/".join(kind + parts)
