"""Every entry point for foreign input, and random invalid input for it.

An entry point takes a random generator and its surroundings, makes an input that is nearly valid, and passes it on as
the product reads it. It returns if the input was taken, and raises what the product raises.

Adding one (ratings, BibTeX, OAI …): write a function below and add it to `ENTRY_POINTS`.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import orjson

from benchmarks.evaluation.judged_lists import load_judged_lists
from benchmarks.evaluation.labelled_set import load_labelled_set
from paper_assets.errors import InvalidInput
from paper_assets.interfaces.values import parse_day
from paper_assets.interpreting.analysis import Notes, Reading
from paper_assets.interpreting.lookup import identified
from paper_assets.interpreting.papers import fetched_from_mapping
from paper_assets.library.formats import read_library
from paper_assets.models import llm
from paper_assets.models.llm_config import llm_config
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.retrieval.plan import parse_plan
from paper_assets.rewriting.prompts import Critique, Draft
from paper_assets.settings import load_settings, variables
from paper_assets.small_files import read_json
from paper_assets.sources import semantic_scholar
from paper_assets.sources.arxiv_api import parse_feed
from paper_assets.sources.bulk_files import read_papers
from paper_assets.sources.known_hosts import known_hosts
from paper_assets.sources.pdf_text import pdf_text
from paper_assets.sources.source import Access
from paper_assets.stores.chroma import VectorIndex, foreign_rows
from paper_assets.stores.paper_merging import merge_papers, replace_day
from paper_assets.stores.papers import papers_between, summary
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.prompts import by_number, numbered_entries
from tests import loopback
from tests.desk import GRAPHS, Desk
from tests.faults.storm.child import alone
from tests.faults.storm.odd_things import VALUES, odd_bytes, odd_json, put
from tests.invented_pdfs import pdf
from tests.loopback import Answer
from tests.loopback_arxiv import error_xml, feed_xml, invented_paper
from tests.mcp.raw_host import RawHost, error_in, raw_host
from tests.ranking.calling import called

DAY = date(2026, 3, 4)
_PLAIN = ("graphs", "2603.04001", "2026-03-04", 3, True, ["2603.04001"], "road traffic", "public", {"k": 2})
_WORDS = (*(value for value in VALUES if isinstance(value, str)), "7" * 5_000, "[" * 9_000, "1e999", "\udcff")

PROFILE: dict[str, Any] = {
    "interests": {
        "primary": ["traffic forecasting"],
        "secondary": ["graphs"],
        "papers": ["2501.12345", {"title": "Mine", "abstract": "Text."}],
    },
    "keywords": {"must_include": ["road"], "exclude": {"hard": ["survey*"], "soft": ["title:benchmark"]}},
    "preferred_authors": ["Zoë Müller"],
    "preferred_institutions": ["MIT"],
    "constraints": {"min_year": 2020, "require_code": False},
    "feed": {"categories": ["cs.LG"], "window_days": 7, "repeat": False},
    "ranking": {"top_k": 5, "purpose": "general", "threshold": 0.4, "weights": None},
    "rewriting": {"target_levels": ["public"], "papers": 3},
}
QUESTIONS: list[Any] = [
    {
        "rewritten_question": "are frogs loud",
        "data_type": ["abstract"],
        "filters": {
            "startdate": "2026-01-01",
            "sides": [{"name": "cs.CL", "where": {"categories": {"$contains": "cs.CL"}}}],
        },
        "parameters": {"k": 5, "k_per_side": 2, "method": "hybrid"},
    }
]
PAPER: dict[str, Any] = {
    "paper_id": "2603.00001v2",
    "title": "Traffic forecasting on road networks",
    "abstract": "We forecast traffic. Code: https://github.com/lab/tool.",
    "authors": ["Ada Example", "Ben Sample"],
    "published": "2026-03-01T00:00:00Z",
    "categories": ["cs.LG"],
    "affiliations": ["MIT"],
    "version": 2,
    "withdrawn": False,
}
SNAPSHOT: dict[str, Any] = {
    "id": "2603.00001",
    "title": "Traffic\n forecasting",
    "abstract": "We forecast.",
    "authors": "Ada Example (MIT), Ben Sample",
    "authors_parsed": [["Example", "Ada", "", "MIT"]],
    "categories": "cs.LG cs.CL",
    "comments": "withdrawn",
    "doi": None,
    "journal-ref": None,
    "versions": [{"version": "v1", "created": "Mon, 2 Mar 2026 19:18:42 GMT"}],
    "update_date": "2026-03-03",
}
SCHOLAR: dict[str, Any] = {
    "paperId": "a" * 40,
    "externalIds": {"ArXiv": "2603.00001", "DOI": "10.1/x"},
    "title": "Traffic",
    "abstract": "We forecast.",
    "authors": [{"name": "Ada Example", "affiliations": ["MIT"]}],
    "publicationDate": "2026-03-01",
    "citationCount": 7,
    "journal": {"name": "J"},
    "openAccessPdf": {"url": "https://arxiv.org/pdf/2603.00001"},
}


@dataclass
class Surroundings:
    """What entry points share: a folder, and a server that answers with the content of `answer`."""

    folder: Path
    stack: ExitStack
    answer: Answer = field(default_factory=Answer)

    @cached_property
    def lasting(self) -> Path:
        """A folder that is not emptied for every input."""
        return Path(self.stack.enter_context(TemporaryDirectory(dir=self.folder.parent)))

    @cached_property
    def address(self) -> str:
        return self.stack.enter_context(loopback.serving(lambda request: self.answer))

    @cached_property
    def host(self) -> RawHost:
        desk = Desk(self.lasting / "desk")
        desk.profile("graphs", GRAPHS)
        merge_papers(desk.warehouse, [invented_paper(number, DAY) for number in range(5)])
        nowhere = {"PAPER_ASSETS_ARXIV_URL": "http://127.0.0.1:9/", "PAPER_ASSETS_REQUEST_INTERVAL": "0"}
        nowhere["PAPER_ASSETS_SEMANTIC_SCHOLAR_URL"] = "http://127.0.0.1:9"
        nowhere["PAPER_ASSETS_ARXIV_PDF_URL"] = "http://127.0.0.1:9/pdf"
        host = self.stack.enter_context(raw_host(desk, **nowhere))
        host.handshake()
        return host

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = self.host.request("tools/list")["result"]["tools"]
        return sorted(tools, key=lambda tool: str(tool["name"]))

    @cached_property
    def database(self) -> tuple[Path, Path]:
        """A warehouse with some of its content in the log, and the log."""
        alone(make_warehouse, self.lasting / "w.duckdb", seconds=300)
        return self.lasting / "w.kept", self.lasting / "w.log"

    @cached_property
    def chroma(self) -> Path:
        """A folder of Chroma's."""
        alone(make_chroma, self.lasting / "chroma", seconds=300)
        return self.lasting / "chroma"


Dice = random.Random
EntryPoint = Callable[[Dice, Surroundings], object]


def _profile(dice: Dice, around: Surroundings) -> None:
    """All three files of a profile, beside a good profile, which must stay readable."""
    folder = around.folder / "profiles"
    put(folder / "good" / "profile.json", json.dumps(PROFILE).encode(), dice, odd_file=0)
    odd = folder / dice.choice(("odd", "odd", "odd", "Öd d", "n" * 200))
    which = dice.choice(("profile.json", "questions.json", "read_papers.json"))
    for name, sample in (
        ("profile.json", PROFILE),
        ("questions.json", QUESTIONS),
        ("read_papers.json", {"read": ["2501.12345", {"paper_id": "2501.54321v2"}]}),
    ):
        content = odd_json(sample, dice) if name == which else json.dumps(sample).encode()
        put(odd / name, content, dice, odd_file=0.15 if name == which else 0)
    if dice.random() < 0.1:
        put(odd / "pdf", b"", dice, odd_file=1)
    found = find_profiles(folder)
    assert "good" in found.readable, "one bad profile has stopped another"
    if found.faults:
        raise InvalidInput(next(iter(found.faults.values())))


def _rank(dice: Dice, around: Surroundings) -> None:
    papers = [PAPER, {**PAPER, "paper_id": "hep-th/9901001", "published": None}]
    file = around.folder / "papers.json"
    put(file, odd_json({"papers": papers} if dice.random() < 0.3 else papers, dice), dice)
    record: Any = read_json(file)
    record = record["papers"] if isinstance(record, dict) and "papers" in record else record
    profile = around.folder / "ann"
    put(profile / "profile.json", json.dumps(PROFILE).encode(), dice, odd_file=0)
    options: dict[str, Any] = {"profile_path": profile}
    if dice.random() < 0.3:
        name = dice.choice(
            ("profile_path", "history_path", "local_pdf_dir", "purpose", "interest_mode", "ranking_mode")
        )
        options[name] = dice.choice(_WORDS)
    if dice.random() < 0.1:
        options["top_k"] = dice.choice((-1, 0, 10**30, 1.5, True))
    settings = load_settings({}, around.folder)
    now = datetime(2026, 3, 5, tzinfo=UTC)
    result = called(record, settings=settings, as_of=DAY, now=now, **options)
    json.dumps(result, allow_nan=True)
    if not result["success"]:
        raise InvalidInput(result["error"])


def _bulk(dice: Dice, around: Surroundings) -> None:
    lines = [odd_json(dice.choice((PAPER, SNAPSHOT)), dice) for _ in range(dice.choice((1, 3)))]
    content = b"\n".join([json.dumps(SNAPSHOT).encode(), *lines])
    if dice.random() < 0.3:
        content = feed_xml([invented_paper(number, DAY) for number in range(3)])
    content = odd_bytes(content, dice) if dice.random() < 0.4 else content
    file = around.folder / "papers.jsonl"
    file.write_bytes(content)
    faults: list[str] = []
    for _ in read_papers(file, on_fault=faults.append if dice.random() < 0.5 else None):
        pass
    if faults:
        raise InvalidInput(dice.choice(faults))


def _atom(dice: Dice, around: Surroundings) -> object:
    title, comment = dice.choice((*_WORDS, "On matter")), dice.choice((*_WORDS, None))
    plain = "".join(c for c in f"{title}" if c.isprintable())[:9_000]
    papers = [invented_paper(0, DAY, title=plain or "x"), invented_paper(1, DAY, comment=comment and plain)]
    content = dice.choice((feed_xml(papers), error_xml("bad")))
    match dice.randrange(5):
        case 0:
            content = content.replace(
                b"<published>2026", f"<published>{dice.choice(_WORDS)}".encode("utf-8", "replace")
            )
        case 1:
            content = content.replace(
                b">2</opensearch", b">" + dice.choice((b"7" * 5_000, b"-1", b"1e9", b"")) + b"</opensearch"
            )
        case 2:
            content = b"<?xml version='1.0'?>" + b"<a>" * 60_000 + content
        case 3:
            bomb = b"".join(b'<!ENTITY e%d "%s">' % (at, b"&e%d;" % (at - 1) * 10) for at in range(1, 12))
            content = b'<!DOCTYPE feed [<!ENTITY e0 "boom">' + bomb + b"]>" + content.split(b"?>", 1)[1]
        case _:
            content = odd_bytes(content, dice)
    return parse_feed(content)


def _scholar(dice: Dice, around: Surroundings) -> object:
    asked, sample = dice.choice(
        (("search", {"total": 1, "data": [SCHOLAR]}), ("find", SCHOLAR), ("details", [SCHOLAR]))
    )
    around.answer = Answer(body=odd_json(sample, dice), status=dice.choice((200, 200, 200, 200, 404, 429, 500, 302)))
    environ = {
        "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL": around.address,
        "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        "PAPER_ASSETS_REQUEST_GATE": str(around.folder / "gate"),
    }
    with semantic_scholar.opened(Access(settings=load_settings(environ, around.folder))) as scholar:
        if asked == "search":
            return [each.as_paper() for each in semantic_scholar.search(scholar, "traffic", limit=3)[0]]
        if asked == "find":
            return semantic_scholar.find(scholar, "2603.00001")
        return semantic_scholar.details(scholar, ["2603.00001"])


def _llm(dice: Dice, around: Surroundings) -> object:
    schema, sample = dice.choice(
        (
            (numbered_entries("papers", 1, grade=(0, 1, 2, 3)), {"papers": [{"number": 1, "grade": 2}]}),
            (Draft, {"text": "Plain words.", "keywords": ["road"]}),
            (Critique, {"score": 91, "critique": "fine"}),
            (
                Reading,
                {name: ["threshold"] for name in Reading.model_fields} | {"summary": "short", "methodology": "plain"},
            ),
            (Notes, {name: ["threshold"] for name in Notes.model_fields}),
        )
    )
    text = odd_json(sample, dice).decode("utf-8", "replace")
    body = {"message": {"role": "assistant", "content": text}, "done": True, "done_reason": "stop", "eval_count": 7}
    whole = json.dumps(body).encode() if dice.random() < 0.7 else odd_json(body, dice)
    around.answer = Answer(body=whole, headers={"Content-Type": "application/json"})
    config = llm_config({"LLM_PROVIDER": "ollama", "OLLAMA_BASE_URL": around.address})
    model = llm.LanguageModel(config=config, sleep=lambda seconds: None)
    completion = model.ask(system="s", user="u", schema=schema)
    return by_number(getattr(completion.value, "papers", ()), 1)


def _environment(dice: Dice, around: Surroundings) -> None:
    names = [*variables(), "LLM_PROVIDER", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "OLLAMA_NUM_CTX"]
    names += ["PAPER_ASSETS_LLM_TIMEOUT", "PAPER_ASSETS_LLM_CALLS", "PAPER_ASSETS_LLM_PRICE_IN"]
    words = (*_WORDS, "-1", "0", "nan", "inf", "1e400", "9" * 400, "true", ",,,", "passes=1e9", "=", "a=b", "{}")
    environ = {name: dice.choice(words) for name in dice.sample(names, 2)}
    if dice.random() < 0.2:
        weights = {"general": dict.fromkeys(("semantic_relevance", "must_keywords"), 0.5)}
        environ["PAPER_ASSETS_WEIGHTS"] = odd_json(weights, dice).decode("utf-8", "replace")
    settings = load_settings(environ, around.folder)
    known_hosts(settings.known_hosts)
    llm_config(environ)
    semantic_scholar.api_key({semantic_scholar.KEY_VARIABLE: dice.choice(words)})


def _names(dice: Dice, around: Surroundings) -> None:
    """Days, ids and addresses as people type them."""
    text = dice.choice(_WORDS)
    for read in (
        lambda: parse_day(text, "--day"),
        lambda: identified(arxiv_id=text, url=None, pdf_url=None, title=None, hosts=known_hosts(["arxiv.org"])),
        lambda: identified(
            arxiv_id=None, url=f"https://arxiv.org/{text}", pdf_url=None, title=None, hosts=known_hosts([])
        ),
    ):
        try:
            read()
        except InvalidInput as fault:
            refused = fault
    raise refused


def _plan(dice: Dice, around: Surroundings) -> None:
    file = around.folder / "plan.json"
    put(file, odd_json(QUESTIONS, dice), dice)
    record = read_json(file)
    for each in record if isinstance(record, list) else [record]:
        parse_plan(each, source=str(file), default_sides=["cs.CL"])


def _paper_to_analyze(dice: Dice, around: Surroundings) -> object:
    file = around.folder / "paper.json"
    put(file, odd_json({**PAPER, "content": "text", "content_is_part": False, "url": "https://arxiv.org"}, dice), dice)
    return fetched_from_mapping(read_json(file))


def _labelled_set(dice: Dice, around: Surroundings) -> object:
    folder = around.folder / "set"
    lines = {"docs.jsonl": {"doc_id": "d1", "title": "t", "text": "x"}, "queries.jsonl": {"query_id": "q", "text": "x"}}
    for name, sample in lines.items():
        put(folder / name, odd_json(sample, dice) if dice.random() < 0.5 else json.dumps(sample).encode(), dice)
    put(folder / "qrels.tsv", odd_bytes(b"query_id\tdoc_id\tscore\nq\td1\t1\n", dice), dice)
    return load_labelled_set(folder)


def _library(dice: Dice, around: Surroundings) -> object:
    ending, content = dice.choice(
        (
            ("bib", b"@article{a, title={Traffic}, author={Example, Ada and Sample, Ben}, eprint={2603.00001}}\n"),
            ("ris", b"TY  - JOUR\nTI  - Traffic\nAU  - Example, Ada\nDO  - 10.48550/arXiv.2603.00001\nER  - \n"),
            ("json", b""),
        )
    )
    csl = [{"id": "a", "title": "Traffic", "author": [{"family": "Example"}], "issued": {"date-parts": [[2026, 3]]}}]
    file = around.folder / f"mine.{ending}"
    put(file, odd_json(csl, dice) if ending == "json" else odd_bytes(content, dice), dice)
    return read_library(file)


def _judged_lists(dice: Dice, around: Surroundings) -> object:
    folder = around.folder / "lists"
    put(folder / "profiles.json", odd_json({"ann": PROFILE}, dice), dice)
    put(folder / "grades.json", odd_json({"ann": {"2603.00001": 2, "2603.00002": 0}}, dice), dice)
    return load_judged_lists(folder)


def _pdf(dice: Dice, around: Surroundings) -> object:
    file = around.folder / "paper.pdf"
    content = pdf("We study traffic.", "It works.")
    put(file, odd_bytes(content, dice), dice, odd_file=0.3)
    return pdf_text(file)


def _ask_server(dice: Dice, around: Surroundings) -> None:
    """A tool over MCP with odd arguments: it returns an answer or one of our errors, and the next call is answered
    too.
    """
    tool = dice.choice(around.tools)
    known = tool["inputSchema"].get("properties", {})
    names = dice.sample(sorted(known), min(len(known), dice.choice((1, 2, 3))))
    arguments = {name: dice.choice(_PLAIN) if dice.random() < 0.4 else dice.choice(VALUES) for name in names}
    line = json.dumps({"jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": {"name": tool["name"]}})
    odd = odd_json(arguments, dice).replace(b"\n", b" ")
    around.host.heard.clear()
    around.host.write(line.encode()[:-2] + b', "arguments": ' + odd + b"}}\n")
    if not _is_json(odd):
        around.host.request("ping")  # a line that is not JSON need not be answered; the next one must be
        return
    answer = around.host.answer_to("odd")  # type: ignore[arg-type]
    if "error" in answer:
        raise InvalidInput(answer["error"]["message"])
    if answer["result"].get("isError"):
        error = error_in(answer["result"])
        assert error["code"] != "INTERNAL_ERROR", error["message"]
        raise InvalidInput(error["message"])


def _is_json(text: bytes) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _warehouse(dice: Dice, around: Surroundings) -> None:
    """A damaged database, log or both; or something else in their places."""
    file = around.folder / "warehouse.duckdb"
    whole, log = around.database
    shutil.copyfile(whole, file)
    shutil.copyfile(log, file.with_name(f"{file.name}.wal"))
    odd = dice.choice((file, file.with_name(f"{file.name}.wal")))
    content = odd.read_bytes()
    odd.unlink()
    if dice.random() < 0.8:  # else it is gone
        at = dice.randrange(len(content))
        damaged = (content[:at], content[:at] + dice.randbytes(64) + content[at + 64 :], odd_bytes(content, dice))
        put(odd, dice.choice(damaged), dice, odd_file=0.2)
    alone(look_into_warehouse, file, seconds=120)


def look_into_warehouse(file: Path) -> None:
    """What commands do with a warehouse."""
    warehouse = Warehouse(file, deadline=5)
    summary(warehouse)
    papers_between(warehouse, None, None)
    replace_day(warehouse, DAY, [invented_paper(9, DAY)])


def _chroma_folder(dice: Dice, around: Surroundings) -> None:
    """A damaged folder of another program, to carry over."""
    folder = around.folder / "old"
    shutil.copytree(around.chroma, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    odd = dice.choice(files)
    content = odd.read_bytes()
    at = dice.randrange(len(content) or 1)
    odd.unlink()
    put(odd, dice.choice((content[:at], content[:at] + dice.randbytes(64) + content[at + 64 :])), dice, odd_file=0.2)
    alone(look_into_chroma, folder, around.folder / "chroma", seconds=120)


def look_into_chroma(folder: Path, place: Path) -> None:
    """What `archive migrate` does with a folder of another program."""
    for _ in foreign_rows(VectorIndex(place, deadline=5), "best_practices", folder=folder, at_once=10):
        pass


def make_chroma(folder: Path) -> None:
    """A small collection as Chroma writes it."""
    import chromadb

    rows = chromadb.PersistentClient(str(folder)).create_collection("best_practices", embedding_function=None)
    rows.add(
        ids=[f"{at}" for at in range(20)],
        documents=[f"Plain words {at}." for at in range(20)],
        embeddings=[[float(at), 1.0] for at in range(20)],
        metadatas=[{"score": at} for at in range(20)],
    )


def make_warehouse(file: Path) -> None:
    """Create a small database whose process was killed: part of it is only in the log."""
    warehouse = Warehouse(file, deadline=5)
    replace_day(warehouse, DAY, [invented_paper(number, DAY) for number in range(200)])
    with duckdb.connect(str(file)) as connection:
        connection.execute("set wal_autocheckpoint = '1GB'")
        connection.execute("insert into scholar_records (paper_id, affiliations) values ('2603.00001', ['MIT'])")
        shutil.copyfile(file, file.with_suffix(".kept"))
        shutil.copyfile(f"{file}.wal", file.with_suffix(".log"))


# name: function, and how often it is chosen relative to the others
ENTRY_POINTS: dict[str, tuple[EntryPoint, int]] = {
    "profile": (_profile, 20),
    "papers to rank": (_rank, 8),
    "bulk file": (_bulk, 12),
    "Atom answer": (_atom, 12),
    "Semantic Scholar's answer": (_scholar, 8),
    "language model's answer": (_llm, 4),
    "environment": (_environment, 12),
    "names": (_names, 6),
    "plan": (_plan, 6),
    "paper to analyze": (_paper_to_analyze, 6),
    "labelled set": (_labelled_set, 6),
    "judged lists": (_judged_lists, 4),
    "library": (_library, 6),
    "PDF": (_pdf, 1),
    "MCP arguments": (_ask_server, 8),
    "warehouse": (_warehouse, 2),
    "Chroma folder": (_chroma_folder, 1),
}


def chosen(dice: Dice, among: Iterable[str]) -> str:
    """Return the name of the entry point for the next input."""
    names = sorted(among)
    return dice.choices(names, [ENTRY_POINTS[name][1] for name in names])[0]
