"""Run arXiv's OAI-PMH on 127.0.0.1: records by set and date of change, in pages with resumption tokens.

    with loopback_oai([record("2601.00001", changed=date(2026, 1, 5))], each=2) as oai:
        page_of_changes("cs:cs:CL", day, None, None, url=oai.url, session=...)

`oai.refusals` are answers given before anything else, one for each request; `oai.instead` has other answers by the
number of the request (from 1), `oai.whole` by a set and a day that are asked for; `oai.forget()` makes every token
given so far one that is over. `recorded_oai(folder)` replays recorded pages.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import format_datetime
from pathlib import Path
from xml.sax.saxutils import escape

from lxml import etree

from tests import loopback
from tests.loopback import Answer


@dataclass(frozen=True, kw_only=True)
class OaiRecord:
    """A record by its fields under arXiv's names; `versions` are times of submission. No fields: a deleted one.

    `older`: in the format `arXiv`. `xml`: the record unchanged, whatever its fields.
    """

    paper_id: str
    changed: date
    sets: tuple[str, ...] = ("cs:cs:CL",)
    versions: tuple[datetime, ...] = ()
    fields: dict[str, str] = field(default_factory=dict)
    size: str = "12kb"
    source_type: str = "D"
    older: bool = False
    xml: str = ""


@dataclass
class LoopbackOai:
    records: list[OaiRecord]
    each: int
    refusals: list[Answer] = field(default_factory=list)
    instead: dict[int, Answer] = field(default_factory=dict)
    whole: dict[tuple[str, str], Answer] = field(default_factory=dict)
    queries: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    _age: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        self._age += 1

    def answer(self, request: loopback.Request) -> Answer:
        with self._lock:
            self.queries.append(request.query)
            if len(self.queries) in self.instead:
                return self.instead[len(self.queries)]
            if self.refusals:
                return self.refusals.pop(0)
            asked = {"age": self._age, "start": 0, **request.query}
            if "resumptionToken" in request.query:
                asked = json.loads(request.query["resumptionToken"])
                if asked["age"] != self._age:
                    return oai_error("badResumptionToken", "the token has expired")
            return self._page(asked)

    def _page(self, asked: dict[str, object]) -> Answer:
        first, last, start = str(asked["from"]), str(asked.get("until", "9")), int(str(asked["start"]))
        for (name, day), answer in self.whole.items():
            if name == asked["set"] and first <= day <= last:
                return answer
        found = [
            each
            for each in sorted(self.records, key=lambda each: (each.changed, each.paper_id))
            if first <= f"{each.changed}" <= last
            and any(f"{name}:".startswith(f"{asked['set']}:") for name in each.sets)
        ]
        if not found:
            return oai_error("noRecordsMatch", "nothing has changed")
        end = start + self.each
        token = json.dumps({**asked, "start": end}) if end < len(found) else ""
        return page(found[start:end], token=token)


@contextmanager
def loopback_oai(records: Iterable[OaiRecord] = (), *, each: int = 1_000) -> Iterator[LoopbackOai]:
    """A running server; `url` is the address of its OAI-PMH."""
    oai = LoopbackOai(records=list(records), each=each)
    with loopback.serving(oai.answer) as address:
        oai.url = f"{address}/oai"
        yield oai


@contextmanager
def recorded_oai(folder: Path, *, each: int) -> Iterator[LoopbackOai]:
    """Recorded answers in the format `arXiv`: lists of one day as they are, answers to GetRecord record by record."""
    records, whole = [], {}
    for file in sorted(folder.glob("*.xml")):
        content = file.read_bytes()
        root = etree.fromstring(content)
        asked = root.find("{*}request")
        if asked is not None and asked.get("verb") == "ListRecords":
            whole[str(asked.get("set")), str(asked.get("from"))] = Answer(body=content)
            continue
        for one in root.iterfind("{*}GetRecord/{*}record"):
            records.append(
                OaiRecord(
                    paper_id=str(one.findtext("{*}header/{*}identifier")).removeprefix("oai:arXiv.org:"),
                    changed=date.fromisoformat(str(one.findtext("{*}header/{*}datestamp"))),
                    sets=tuple(str(name.text) for name in one.iterfind("{*}header/{*}setSpec")),
                    xml=etree.tostring(one, encoding="unicode"),
                )
            )
    with loopback_oai(records, each=each) as oai:
        oai.whole = whole
        yield oai


def record(paper_id: str, *versions: str, changed: date, **more: str) -> OaiRecord:
    """An invented record; `versions` are instants like 2026-01-05T10:00, `more` fields under arXiv's names.

    With `replace(…, older=True)` it is written in the format `arXiv`.
    """
    return OaiRecord(
        paper_id=paper_id,
        changed=changed,
        versions=tuple(datetime.fromisoformat(each).replace(tzinfo=UTC) for each in versions),
        fields={
            "title": f"On {paper_id}",
            "authors": "Ada Example (MIT), Ben Sample",
            "categories": "cs.CL cs.LG",
            "abstract": f"We look at {paper_id}\n  from two sides.",
            **{name.replace("_", "-"): text for name, text in more.items()},
        },
    )


def page(records: Sequence[OaiRecord], *, token: str = "") -> Answer:
    body = "".join(map(_record_xml, records))
    if token:
        body += f"<resumptionToken>{escape(token)}</resumptionToken>"
    return _envelope(f"<ListRecords>{body}</ListRecords>")


def oai_error(code: str, text: str) -> Answer:
    return _envelope(f'<error code="{code}">{escape(text)}</error>')


def _envelope(inside: str) -> Answer:
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        f'<responseDate>2026-06-01T00:00:00Z</responseDate><request verb="ListRecords"/>{inside}</OAI-PMH>'
    )
    return Answer(body=xml.encode(), headers={"Content-Type": "text/xml"})


def _record_xml(each: OaiRecord) -> str:
    if each.xml:
        return each.xml
    sets = "".join(f"<setSpec>{name}</setSpec>" for name in each.sets)
    status = "" if each.fields else ' status="deleted"'
    header = (
        f"<header{status}><identifier>oai:arXiv.org:{each.paper_id}</identifier>"
        f"<datestamp>{each.changed}</datestamp>{sets}</header>"
    )
    if not each.fields:
        return f"<record>{header}</record>"
    if each.older:
        return f"<record>{header}<metadata>{_older_xml(each)}</metadata></record>"
    versions = "".join(
        f'<version version="v{number}"><date>{format_datetime(time, usegmt=True)}</date>'
        + (
            f"<size>{each.size}</size><source_type>{each.source_type}</source_type></version>"
            if number == len(each.versions)
            else "<size>1kb</size></version>"
        )
        for number, time in enumerate(each.versions, start=1)
    )
    fields = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in each.fields.items())
    return (
        f'<record>{header}<metadata><arXivRaw xmlns="http://arxiv.org/OAI/arXivRaw/"><id>{each.paper_id}</id>'
        f"<submitter>Ada Example</submitter>{versions}{fields}</arXivRaw></metadata></record>"
    )


def _older_xml(each: OaiRecord) -> str:
    """The format `arXiv`: authors in parts, with the affiliation in brackets behind a name; days, and no versions."""
    authors = ""
    for name in each.fields["authors"].split(", "):
        person, _, place = name.removesuffix(")").partition(" (")
        forenames, _, keyname = person.rpartition(" ")
        place = f"<affiliation>{escape(place)}</affiliation>" if place else ""
        authors += (
            f"<author><keyname>{escape(keyname)}</keyname><forenames>{escape(forenames)}</forenames>{place}</author>"
        )
    created = "".join(f"<created>{time:%F}</created>" for time in each.versions[:1])
    updated = "".join(f"<updated>{time:%F}</updated>" for time in each.versions[1:][-1:])
    fields = {**{name: escape(text) for name, text in each.fields.items()}, "authors": authors}
    return (
        f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>{each.paper_id}</id>{created}{updated}'
        + "".join(f"<{name}>{text}</{name}>" for name, text in fields.items())
        + "</arXiv>"
    )
