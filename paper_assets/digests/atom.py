"""Write a profile's digests as an Atom feed (RFC 4287), made from its pages so that both have the same content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from lxml import etree
from lxml.builder import ElementMaker

from paper_assets.text.cleaning import without_controls

_NAMESPACE = "http://www.w3.org/2005/Atom"
# RFC 4151: an authority that cannot be registered; an id consists of profile and day and never changes.
_TAG = "tag:paper-assets.invalid,2026:digests"

_make = ElementMaker(namespace=_NAMESPACE, nsmap={None: _NAMESPACE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One day's digest in the feed: its title, its body as HTML, and when it last changed (`updated`, UTC; None: the
    day).
    """

    day: date
    title: str
    body: str
    updated: datetime | None = None  # the day

    @property
    def published(self) -> datetime:
        """Return midnight of the day, UTC."""
        return datetime.combine(self.day, time(), UTC)


def atom_feed(profile: str, issues: Sequence[Issue], *, desk: str) -> bytes:
    """Write the feed of one or more issues, newest first. Its times are those of the issues: equal issues give equal
    bytes.

    Links are absolute, to the profile's days at `desk`, because a reader of feeds copies the file elsewhere. Where the
    file is kept is not known, so there is no link to itself.
    """
    newest_first = sorted(issues, key=lambda issue: issue.day, reverse=True)
    feed = _make.feed(
        _make.id(f"{_TAG}/{profile}"),
        _make.title(f"Reading digest: {profile}"),
        _make.updated(_instant(max(issue.updated or issue.published for issue in issues))),
        _make.author(_make.name("paper_assets")),
        _make.link(rel="alternate", type="text/html", href=f"{desk}/p/{profile}"),
        *(_entry(profile, issue, desk) for issue in newest_first),
    )
    feed.set("{http://www.w3.org/XML/1998/namespace}lang", "en")
    return etree.tostring(feed, encoding="utf-8", xml_declaration=True, pretty_print=True)


def _entry(profile: str, issue: Issue, desk: str) -> etree._Element:
    return _make.entry(
        _make.id(f"{_TAG}/{profile}/{issue.day}"),
        _make.title(without_controls(issue.title)),
        _make.published(_instant(issue.published)),
        _make.updated(_instant(issue.updated or issue.published)),
        _make.link(rel="alternate", type="text/html", href=f"{desk}/p/{profile}/{issue.day}"),
        _make.content(without_controls(issue.body), type="html"),
    )


def _instant(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
