"""Code links: the address of a paper's code, found in its comment or abstract (SPEC S5). Pure."""

import re

_CODE_HOSTS = ("github.com", "gitlab.com")
_MODEL_HOST = "huggingface.co"
_ADDRESS = re.compile(
    r"(?<![\w.-])(?:https?://)?(?:www\.)?(github\.com|gitlab\.com|huggingface\.co)[/:]([\w.~%/-]+)", re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*")

# First path parts that are pages of the site and nobody's account.
_NO_OWNER = {
    "github.com": {"about", "apps", "collections", "features", "marketplace", "orgs", "search", "sponsors", "topics"},
    "gitlab.com": {"explore", "groups", "help", "users"},
    "huggingface.co": {"blog", "collections", "docs", "learn", "organizations", "papers", "posts", "tasks"},
}
_GITLAB_PAGES = frozenset(("-", "tree", "blob", "raw", "issues", "wikis", "merge_requests"))


def code_url(comment: str | None, abstract: str | None) -> str | None:
    """Address of the repository named in the comment, else in the abstract; None if neither names one.

    Within one text a code host goes before Hugging Face, whose link is often a data set beside the code.
    The answer is canonical: https, no `www.`, no `.git`, nothing below the repository.
    """
    for text in (comment, abstract):
        if text and (found := _repository_in(text)):
            return found
    return None


def _repository_in(text: str) -> str | None:
    lowered = text.lower()  # most texts name no host; looking first is 30 times as fast as the pattern
    if not any(host in lowered for host in (*_CODE_HOSTS, _MODEL_HOST)):
        return None
    # TeX's escapes stand inside addresses; an address never holds a backslash of its own.
    plain = text.replace("{\\_}", "_").replace("\\_", "_").replace("\\%", "%").replace("\\-", "").replace("\\", " ")
    found: dict[bool, str] = {}
    for match in _ADDRESS.finditer(plain):
        host = match[1].lower()
        path = _repository_path(host, match[2])
        if path:
            found.setdefault(host in _CODE_HOSTS, f"https://{host}/{path}")
    return found.get(True, found.get(False))


def _repository_path(host: str, path: str) -> str | None:
    """`owner/name` (Hugging Face: perhaps below `datasets/` or `spaces/`; GitLab: perhaps with subgroups)."""
    parts = [part.rstrip(".").removesuffix(".git") for part in path.split("/")]
    kind: list[str] = []
    if host == _MODEL_HOST and parts[0] in ("datasets", "spaces"):
        kind = [parts.pop(0)]
    if host == "gitlab.com":
        end = next((place for place, part in enumerate(parts) if part in _GITLAB_PAGES or not part), len(parts))
        parts = parts[:end]
    else:
        parts = parts[:2]
    if len(parts) < 2 or parts[0].lower() in _NO_OWNER[host] or not all(_NAME.fullmatch(part) for part in parts):
        return None
    return "/".join(kind + parts)
