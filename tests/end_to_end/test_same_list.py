"""Page, mail, digest, assistants and terminal show one list with the same words (SPEC G17, G18)."""

import html
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

import pytest

from paper_assets.pipeline.digests import outgoing_digest
from tests.desk import Desk, paper
from tests.mcp.raw_host import raw_host
from tests.page.in_process import page_client

DAY = "2026-03-02"
TOPICS = (
    "traffic forecasting on road networks",
    "speech recognition for rare languages",
    "forecasting of road traffic by graphs",
    "rare languages in speech corpora",
    "cooking of pasta",
    "traffic jams",
)
PROFILE = {
    "interests": {"primary": [TOPICS[0], TOPICS[1]]},
    "preferred_authors": ["Author 5"],  # whose paper is not in the list
    "ranking": {"top_k": 3},
}


def words_of(text: str) -> str:
    """Return the visible words of a page, a mail or a terminal, in lower case, without marks and line ends."""
    without_code = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", text)
    without_code = re.sub(
        r'<i\b[^>]*role="img" aria-label="([^"]*)"[^>]*>', r" \1 ", without_code
    )  # the dots of a level
    plain = html.unescape(re.sub(r"</?(?:b|em|i|mark|span|strong)\b[^>]*>", "", without_code))
    return " ".join(re.findall(r"[\w:;.]+", re.sub(r"<[^>]+>", " ", plain).casefold()))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, object]]:
    """Return the answer of `todays_ranking`, and the words of every other interface by its name."""
    desk = Desk(tmp_path_factory.mktemp("same") / "desk")
    desk.folder.mkdir()
    desk.profile("traffic", PROFILE)
    records = [paper(number, DAY, topic) for number, topic in enumerate(TOPICS)]
    desk.run("import", str(desk.papers("papers.jsonl", records)))
    desk.run("run", "--as-of", DAY)
    with raw_host(desk) as host:
        host.handshake()
        answer = host.call("todays_ranking", profile="traffic")
        digest_of_host = host.call("read_digest", profile="traffic")["text"]
    with page_client(desk) as client:
        page = client.get(f"/p/traffic/{DAY}")
        assert page.status_code == 200
    mail = outgoing_digest(desk.warehouse, "traffic", date.fromisoformat(DAY), settings=desk.settings)
    folder = Path(desk.settings.output_dir) / "digests" / "traffic"
    texts = {
        "page": page.text,
        "mail": mail.html,
        "mail as text": mail.text,
        "digest": (folder / f"{DAY}.html").read_text("utf-8"),
        "digest as Markdown": (folder / f"{DAY}.md").read_text("utf-8"),
        "digest over MCP": digest_of_host,
        "terminal": desk.run("today", "traffic", "--why"),
    }
    yield {"answer": answer, "texts": {name: words_of(text) for name, text in texts.items()}}


def test_every_interface_shows_the_same_papers_in_the_same_order_with_the_same_words(
    shown: Mapping[str, dict],  # type: ignore[type-arg]
) -> None:
    answer = shown["answer"]
    assert len(answer["papers"]) == 3 and len(answer["more_likely"]) == 1 and len(answer["by_people"]) == 1
    for name, words in shown["texts"].items():
        assert words_of(answer["headline"]) in words, name
        listed = [*answer["papers"], *answer["more_likely"], *answer["by_people"]]
        at = [words.find(words_of(each["title"]), words.find(words_of(answer["headline"]))) for each in listed]
        assert -1 not in at and at == sorted(at), (name, at)
        for each in answer["papers"]:
            places = [found.start() for found in re.finditer(re.escape(words_of(each["title"])), words)]
            assert any(each["level"] in words[max(0, at - 40) : at + 200] for at in places), (name, each["level"])
            assert any(words_of(each["why"]) in words[at : at + 900] for at in places), (name, each["why"])
        assert "by people you follow" in words, name
