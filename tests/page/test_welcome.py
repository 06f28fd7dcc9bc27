"""Test the welcome page: from an empty home to a profile, with and without scripts, and managing profiles."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from paper_assets.interfaces.page import welcome
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text, paper_from_mapping, text_hash
from paper_assets.profile import load_profile
from paper_assets.setup import matches
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import Desk, week
from tests.loopback_llm import fault, loopback_llm, says
from tests.page.browser import axe_script, keep_picture, serious_findings, visitor
from tests.page.in_process import TOKEN, page_client
from tests.page.invented_desk import DAYS, served

BIB = b"@article{a, title={Trees that learn}, author={Writer, Ada}, eprint={2501.12345}, archivePrefix={arXiv}}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    with page_client(desk) as client:
        yield client


def with_papers(desk: Desk) -> Desk:
    records = [paper_from_mapping(record) for record in week(DAYS)]
    merge_papers(desk.warehouse, records)
    embedder = load_embedder("all-MiniLM-L6-v2")
    texts = [embedded_text(each.title, each.abstract) for each in records]
    keep_vectors(desk.warehouse, [text_hash(text) for text in texts], embedder.encode(texts), model=embedder.name)
    return desk


def test_an_empty_home_opens_the_welcome_page_and_its_form_makes_a_profile(desk: Desk, client: TestClient) -> None:
    shown = client.get("/")
    assert shown.url.path == "/welcome"
    assert "<h1>Welcome</h1>" in shown.text
    made = client.post(
        "/welcome",
        data={"token": TOKEN, "interests": "speech recognition\n", "papers": "https://arxiv.org/abs/2501.12345v2"},
    )
    assert made.url.path == "/p/speech-recognition/first"
    found = desk.content("speech-recognition")
    assert found["interests"] == {"primary": ["speech recognition"], "papers": ["2501.12345"]}
    assert "eess.AS" in found["feed"]["categories"]  # type: ignore[index]


def test_a_text_is_read_into_entries_that_are_corrected_before_the_profile_is_made(
    desk: Desk, client: TestClient
) -> None:
    text = "I work on speech. I read about speech recognition, but not music generation. Papers by Ada Lov."
    shown = client.post("/welcome", data={"token": TOKEN, "interests": text, "name": "mine"})
    assert shown.url.path == "/welcome" and not (desk.folder / "profiles" / "mine").exists()
    for field, entry in (("interests", "speech recognition"), ("avoid", "music generation"), ("authors", "Ada Lov")):
        assert re.search(f'<input name="{field}" value="{entry}"', shown.text), field
    assert "taken as context, not as a topic: speech" in shown.text.casefold()
    corrected = {"interests": ["speech recognition", ""], "avoid": ["music generation", "pop songs"], "authors": [""]}
    made = client.post("/welcome", data={"token": TOKEN, "read": "yes", "statement": text, "name": "mine", **corrected})
    assert made.url.path == "/p/mine/first", made.text
    content = desk.content("mine")
    assert content["interests"] == {"primary": ["speech recognition"], "avoid": ["music generation", "pop songs"]}
    assert content["statement"] == text and "preferred_authors" not in content


def test_a_language_model_reads_the_words_where_one_is_set_up_and_its_failure_leaves_the_rules_reading(
    desk: Desk, client: TestClient
) -> None:
    words = "Quantisierung von Netzen, keine Arbeiten über Musik."
    assert 'value="model"' not in client.get("/welcome").text, "no model is set up"
    topics = {name: [] for name in ("secondary", "exploratory", "less", "authors")}
    answers = [says({**topics, "primary": ["quantization of networks"], "avoid": ["music"]}), fault(401, "no such key")]
    with (
        loopback_llm(lambda request: answers.pop(0)) as server,
        page_client(desk, **server.environ("openai")) as asking,
    ):
        form = {"token": TOKEN, "reader": "model"}
        assert 'name="reader" value="model"' in asking.get("/welcome").text
        read = asking.post("/welcome/read", data={**form, "interests": words}).text
        assert '<input name="interests" value="quantization of networks"' in read
        assert "ooking for: the rules read Quantisierung von Netzen, the model quantization of networks" in read
        made = {"token": TOKEN, "read": "yes", "statement": words, "interests": "quantization", "name": "mine"}
        asking.post("/welcome", data=made)
        other = "Trees that learn, but no forests."
        kept = asking.post("/p/mine/profile/read", data={**form, "statement": other}).text
        assert "he language model could not read it: " in kept and "Trees that learn</textarea>" in kept
        assert len(server.requests) == 2


def test_an_example_is_liked_or_becomes_a_topic_to_avoid(desk: Desk, client: TestClient) -> None:
    with_papers(desk)
    form = {"token": TOKEN, "interests": "traffic forecasting", "name": "cars"}
    shown = client.post("/welcome/preview", data=form).text
    liked, *_ = re.findall('name="like" value="([^"]+)"', shown)
    unliked = re.findall('name="unlike" value="([^"]+)"', shown)
    assert len(unliked) == 2
    client.post("/welcome", data={**form, "like": liked, "unlike": unliked[1]})
    interests = desk.content("cars")["interests"]
    assert (interests["papers"], interests["avoid"]) == ([liked], [unliked[1]])  # type: ignore[index]
    nothing = client.post("/welcome/preview", data={**form, "interests": "asdf qwer zxcv"}).text
    assert "“asdf qwer zxcv”</span>: 0 papers on topic" in nothing and 'name="like"' not in nothing


def test_an_uploaded_library_alone_makes_a_profile(desk: Desk, client: TestClient) -> None:
    made = client.post("/welcome", data={"token": TOKEN, "name": "mine"}, files={"library": ("refs.bib", BIB)})
    assert made.url.path == "/p/mine/first", made.text
    assert desk.content("mine")["interests"] == {"papers": [{"paper_id": "2501.12345", "title": "Trees that learn"}]}


@pytest.mark.parametrize(
    ("data", "files", "words"),
    [
        ({"interests": "a", "papers": "that paper"}, None, "names no paper"),
        ({"interests": "a", "other_categories": "cs.QQ"}, None, "is not a category of arXiv"),
        ({}, {"library": ("x.pdf", b"%PDF")}, "x.pdf is not a .bib"),
        ({}, {"library": ("x.json", b"{")}, "x.json"),
    ],
)
def test_a_wrong_answer_is_explained_and_nothing_typed_is_lost(
    desk: Desk, client: TestClient, data: dict[str, str], files: dict[str, tuple[str, bytes]] | None, words: str
) -> None:
    refused = client.post("/welcome", data={"token": TOKEN, "keywords": "kept words", **data}, files=files)
    assert refused.status_code == 400
    assert words in refused.text
    assert "kept words" in refused.text
    assert not (desk.folder / "profiles").exists() or not list((desk.folder / "profiles").glob("[a-z]*"))


def test_a_form_without_the_token_or_from_another_site_makes_nothing(desk: Desk, client: TestClient) -> None:
    form = {"interests": "a", "name": "a"}
    assert client.post("/welcome", data={"token": "guessed", **form}, files={"library": ("", b"")}).status_code == 403
    elsewhere = client.post("/welcome", data={"token": TOKEN, **form}, headers={"origin": "http://evil.example"})
    assert elsewhere.status_code == 403
    assert not (desk.folder / "profiles" / "a").exists()


def test_the_preview_shows_the_list_and_how_many_papers_match(
    desk: Desk, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_papers(desk)
    form = {"token": TOKEN, "interests": "traffic forecasting\nmedieval poetry", "keywords": "we study\nzebra"}
    with monkeypatch.context() as few:  # a pasted text of many lines is not searched line by line
        few.setattr(matches, "MOST_ASKED", 1)
        few.setattr(welcome, "MOST_ASKED", 1)
        shown = client.post("/welcome/preview", data=form).text
        assert "The first 1 of 2 interests are counted here; the list is made for all." in shown
        assert "medieval poetry</span>" not in shown and "Your list would be" in shown
    shown = client.post("/welcome/preview", data=form).text
    assert "interests are counted here" not in shown
    refused = client.post("/welcome/preview", data={**form, "interests": "graph " * 200, "read": "yes"})
    assert refused.status_code == 200 and "graph graph" in refused.text  # what was typed is kept
    assert '<p class="warning">An interest may have 1,000 characters' in refused.text
    assert "Your list would be" in shown
    assert "“medieval poetry”</span>: 0 papers on topic; other words may find more" in shown
    assert "says little about a paper" in shown
    assert "it matches nothing yet" in shown
    nothing = client.post("/welcome/preview", data={**form, "interests": "medieval poetry"}).text
    assert "0 papers on topic" in nothing and "other words" not in nothing
    assert "The next page fetches the newest papers of the categories above" in nothing
    offered = re.findall(r'name="offered" value="([^"]+)"', shown)
    other = {**form, "offered": offered, "other_categories": "math.AG"}
    assert "Among 0 papers of these categories" in client.post("/welcome/preview", data=other).text
    assert not (desk.folder / "profiles").exists()


def test_what_was_not_understood_is_named_and_the_rest_is_used(desk: Desk, client: TestClient) -> None:
    with_papers(desk)
    form = {"token": TOKEN, "interests": "asdf qwer", "papers": "2501.12345 asdfgh", "name": "odd"}
    ignored = "ot understood beside the ids of papers: “asdfgh”"
    unknown = "o stored paper and no arXiv category is near “asdf qwer”; try other words"
    preview = client.post("/welcome/preview", data=form).text
    assert f"N{ignored}" in preview and f"N{unknown}" in preview
    assert "No category fits clearly" in preview and 'name="category"' not in preview
    made = client.post("/welcome", data=form).text
    assert f"n{ignored}" in made and f"n{unknown}" in made
    assert desk.content("odd") == {"interests": {"primary": ["asdf qwer"], "papers": ["2501.12345"]}}
    added = client.post("/p/odd/add", data={"token": TOKEN, "papers": "2501.00002 zzzz"}).text
    assert "1 paper added." in added and "not understood beside the ids of papers: “zzzz”" in added


def test_a_category_that_was_unchecked_stays_unchecked(client: TestClient) -> None:
    form = {"token": TOKEN, "interests": "speech recognition", "offered": "eess.AS"}
    shown = client.post("/welcome/preview", data=form).text
    assert 'value="eess.AS" form="welcome">' in shown
    form |= {"category": "eess.AS"}
    assert 'value="eess.AS" form="welcome" checked>' in client.post("/welcome/preview", data=form).text


def test_the_address_of_a_profile_that_does_not_exist_offers_to_make_it(desk: Desk, client: TestClient) -> None:
    desk.profile("traffic", {"interests": {"primary": ["traffic"]}})
    missing = client.get("/p/robots")
    assert missing.status_code == 404
    assert "There is no profile &#39;robots&#39;" in missing.text or "There is no profile 'robots'" in missing.text
    assert 'href="/welcome?name=robots"' in missing.text
    assert 'value="robots"' in client.get("/welcome?name=robots").text
    impossible = client.get(f"/p/{'a' * 300}")  # longer than a file's name may be
    assert impossible.status_code == 404 and "/welcome?name=aaa" not in impossible.text


def test_profiles_are_renamed_removed_and_restored(desk: Desk, client: TestClient) -> None:
    content = {"interests": {"primary": ["traffic"]}}
    desk.profile("roads", content)
    desk.profile("rivers", content)
    shown = client.post("/p/roads/remove", data={"token": TOKEN})
    assert "Profile roads is removed" in shown.text
    assert "Restore roads" in shown.text
    assert not (desk.folder / "profiles" / "roads").exists()
    assert "Profile roads is restored" in client.post("/p/roads/restore", data={"token": TOKEN}).text
    shown = client.post("/p/roads/rename", data={"token": TOKEN, "new_name": "Roads & Co"})
    assert "The profile is now called Roads &amp; Co" in shown.text
    assert desk.content("roads") == {**content, "title": "Roads & Co"}
    assert "name needs a letter" in client.post("/p/roads/rename", data={"token": TOKEN, "new_name": " "}).text
    deleted = client.post("/p/roads/remove", data={"token": TOKEN, "everything": "yes"}).text
    assert "Everything of roads is deleted" in deleted and "Restore roads" not in deleted
    assert not list((desk.folder / "profiles").rglob("*roads*"))


_HIDDEN_FOCUS = """() => {
  const bar = document.querySelector('.buttons').getBoundingClientRect();
  const field = document.activeElement, box = field.getBoundingClientRect();
  if (field.closest('.buttons') || field === document.body) return null;  // left the page
  const overlaps = box.bottom > bar.top + 1 && box.top < bar.bottom && box.left < bar.right && box.right > bar.left;
  const seen = box.top < innerHeight && box.bottom > 0;
  return overlaps || !seen ? `${field.id || field.tagName} ${box.top} to ${box.bottom}, bar from ${bar.top}` : null;
}"""


_NEXT_FRAME = "() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(() => shown())))"


@pytest.mark.parametrize(("width", "height"), [(1280, 844), (390, 844), (1280, 420), (390, 500)])
@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_the_bar_of_buttons_never_covers_the_focused_field(
    desk: Desk, browser: Browser, width: int, height: int, key: str
) -> None:
    with served(desk) as page, visitor(browser, width=width, reduced_motion="reduce") as view:
        view.set_viewport_size({"width": width, "height": height})
        view.goto(f"{page.url}/welcome")
        for summary in view.locator("details.more summary").all():
            summary.click()
        view.locator("#name" if key == "Shift+Tab" else "#interests").focus()
        reached, hidden = set(), []
        for _ in range(20):
            view.evaluate(_NEXT_FRAME)  # in which the browser scrolls
            reached.add(view.evaluate("() => document.activeElement.id"))
            if fault := view.evaluate(_HIDDEN_FOCUS):
                hidden.append(fault)
            view.keyboard.press(key)
    assert {"interests", "papers", "library", "own_name", "zotero_key", "keywords", "authors", "name"} <= reached
    assert hidden == []


@pytest.mark.parametrize("width", [1280, 390])
def test_with_the_keyboard_alone_a_profile_is_made(desk: Desk, browser: Browser, width: int) -> None:
    with served(with_papers(desk)) as page, visitor(browser, width=width) as view:
        view.goto(page.url)
        expect(view.get_by_role("heading", name="Welcome")).to_be_visible()
        view.get_by_label("What do you want to read, and what not?").focus()
        view.keyboard.type("traffic forecasting on road networks")
        expect(view.locator("#preview")).to_contain_text("Your list would be")
        keep_picture(view, f"welcome-{width}")
        if script := axe_script():
            assert serious_findings(view, script) == []
        for _ in range(20):
            view.keyboard.press("Tab")
            if view.evaluate("document.activeElement.id") == "save":
                break
        view.keyboard.press("Enter")
        view.wait_for_url("**/p/traffic-forecasting-on-road-networks/first*")
    assert desk.content("traffic-forecasting-on-road-networks")


def test_a_profile_has_a_name_in_any_script_and_its_folder_a_derived_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    phrase = "medical image segmentation with few labels and with uncertainty"
    with page_client(desk) as client:

        def make(name: str) -> str:
            form = {"token": TOKEN, "name": name, "interests": phrase, "category": "cs.CV", "offered": "cs.CV"}
            return client.post("/welcome", data=form).text

        assert "医用画像" in make("医用画像")
        assert desk.content("my-papers")["title"] == "医用画像"
        assert phrase in make("")  # not cut, as the folder's name is
        assert desk.content("medical-image-segmentation-with-few")["title"] == phrase
        before = load_profile(desk.folder / "profiles" / "my-papers").content_hash
        client.post("/p/my-papers/rename", data={"token": TOKEN, "new_name": "画像"})
        assert "画像" in client.get("/?all=1").text
        assert load_profile(desk.folder / "profiles" / "my-papers").content_hash == before, "no list depends on it"


def test_a_refused_form_keeps_its_uploaded_library(desk: Desk, client: TestClient) -> None:
    form = {"token": TOKEN, "name": "mine", "other_categories": "cs.Nothing"}
    refused = client.post("/welcome", data=form, files={"library": ("refs.bib", BIB)})
    assert refused.status_code == 400 and "refs.bib is kept" in refused.text
    [key] = re.findall(r'name="library_kept" value="([^"]+)"', refused.text)
    client.post("/welcome", data=form | {"other_categories": "cs.CV", "library_kept": key})
    assert desk.content("mine")["interests"] == {"papers": [{"paper_id": "2501.12345", "title": "Trees that learn"}]}
