"""Test the settings: the hours of the fetch, and the language model with its test call, limit and use in Health."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from paper_assets.models.llm_config import llm_config
from paper_assets.stores.kept_settings import LANGUAGE_MODEL, kept_environment, kept_variables
from tests.desk import GRAPHS, Desk
from tests.loopback_llm import KEY, Raw, fault, html, loopback_llm, says
from tests.page.browser import axe_script, keep_picture, serious_findings, visitor
from tests.page.in_process import TOKEN, page_client
from tests.page.invented_desk import served

MORNING = {"token": TOKEN, "action": "morning", "at": "07:15", "weekday": ["mon", "fri"], "zone": "Asia/Seoul"}


@pytest.fixture
def desk(tmp_path) -> Desk:  # type: ignore[no-untyped-def]
    return Desk(tmp_path)


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    with page_client(desk) as client:
        yield client


def model_form(url: str, **more: str) -> dict[str, str]:
    return {
        "token": TOKEN,
        "action": "model",
        "provider": "openai",
        "url": url,
        "key": KEY,
        "amount": "",
        "unit": "tokens",
        **more,
    }


def test_the_hours_are_saved_and_shown_everywhere(desk: Desk, client: TestClient) -> None:
    saved = client.post("/settings", data=MORNING)
    assert "at 07:15 (Asia/Seoul) on Monday and Friday" in saved.text
    assert "07:15 (Asia/Seoul) on Monday and Friday" in client.get("/health").text


def test_settings_opened_in_a_profile_keep_it_in_the_menu(desk: Desk, browser: Browser) -> None:
    desk.profile("graphs", GRAPHS)
    with served(desk) as page, visitor(browser) as tab:
        for view in ("health", "profile"):
            tab.goto(f"{page.url}/p/graphs/{view}")
            tab.locator(".gear summary").click()
            tab.get_by_role("link", name="Settings", exact=True).click()
            for expected in ("settings", "settings after saving"):
                expect(tab.locator(".which summary"), expected).to_have_text("graphs")
                expect(tab.locator(".gear a[aria-current]"), expected).to_have_text("Settings")
                tab.get_by_role("button", name="Save the hours").click()
                expect(tab.locator("#said")).to_contain_text("Saved.")
        tab.get_by_role("link", name="Shelf").click()
        expect(tab).to_have_url(f"{page.url}/p/graphs/shelf")


def test_without_scripts_the_saved_form_shows_what_was_saved(desk: Desk, browser: Browser) -> None:
    with served(desk) as page, visitor(browser, java_script_enabled=False) as tab:
        tab.goto(f"{page.url}/settings")
        tab.get_by_label("Provider").select_option("ollama")
        with loopback_llm(lambda request: says({"ok": True})) as server:
            tab.locator("#url").fill(server.config("ollama").base_url)
            tab.get_by_role("button", name="Test and save").click()
        message = tab.locator("#model .message")
        expect(message).to_contain_text("The test call worked")
        expect(message).to_be_in_viewport()


def test_settings_of_a_profile_that_does_not_exist_are_not_found(client: TestClient) -> None:
    assert client.get("/p/nothing/settings").status_code == 404
    assert client.post("/p/nothing/settings", data=MORNING).status_code == 404


def test_wrong_hours_in_the_file_are_named_and_replaced(desk: Desk, client: TestClient) -> None:
    client.post("/settings", data=MORNING)
    file = desk.folder / "data" / "morning.env"
    file.write_text("PAPER_ASSETS_FETCH_AT=25:99\n", encoding="utf-8")
    for address in ("/settings", "/health"):
        assert f"{file}; correct that line" in client.get(address).text
    assert "07:15 (Asia/Seoul)" in client.post("/settings", data=MORNING).text


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"weekday": []}, "weekday", "Choose at least one day."),
        ({"at": ""}, "at", "Write a time of day such as 06:30."),
        ({"zone": "Mars"}, "zone", "Choose a time zone of the list."),
    ],
)
def test_a_wrong_hour_is_explained_beside_its_field(
    client: TestClient, change: dict[str, str], field: str, words: str
) -> None:
    refused = client.post("/settings", data={**MORNING, **change})
    assert refused.status_code == 400
    assert f'id="{field}-fault" role="alert">{words}' in refused.text
    assert "01:30 (UTC) every day" in client.get("/settings").text


def test_a_model_is_saved_after_its_test_call_and_its_key_is_never_shown(desk: Desk, client: TestClient) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server:
        url = server.config("openai").base_url
        saved = client.post("/settings", data=model_form(url, price_in="2", price_out="10", amount="5", unit="money"))
        assert "The test call worked; it used 110 tokens and cost 0.0003" in saved.text
        assert "Monthly limit: 5.00 at your prices" in saved.text
        again = client.post("/settings", data=model_form(url, key="", amount="100", unit="tokens"))  # with the same key
        assert again.status_code == 200, again.text
    home = desk.folder / "data"
    assert kept_variables(home)["OPENAI_API_KEY"] == KEY
    assert (home / LANGUAGE_MODEL.name).stat().st_mode & 0o777 == 0o600
    health = client.get("/health").text
    assert "the monthly limit of the language model is reached (220 of 100 tokens" in health
    assert "test calls</th><td>2</td>" in health
    assert KEY not in saved.text + again.text + health + client.get("/settings").text
    raised = client.post("/settings", data=model_form(url, key="", action="limit", amount="1000000"))
    assert "Monthly limit: 1,000,000 tokens" in raised.text
    assert "is reached" not in client.get("/health").text
    client.post("/settings", data={"token": TOKEN, "action": "forget"})
    assert "No language model is set up" in client.get("/settings").text


def test_an_address_of_another_server_needs_its_own_key(desk: Desk, client: TestClient) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server:
        client.post("/settings", data=model_form(server.config("openai").base_url))
        refused = client.post("/settings", data=model_form("http://127.0.0.1:9/v1", key=""))
        assert refused.status_code == 400
        assert 'id="key-fault"' in refused.text
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"price_in": "cheap"}, "price_in"),
        ({"amount": "5", "unit": "money"}, "price_in"),
        ({"amount": "lots"}, "amount"),
        ({"url": "not an address"}, "url"),
        ({"url": "http://127.0.0.1:9/v1"}, "url"),
        ({"provider": "oracle"}, "provider"),
        ({"key": ""}, "key"),
        ({"key": "two words"}, "key"),
    ],
)
def test_a_fault_is_beside_its_field_and_nothing_is_saved(
    desk: Desk, client: TestClient, change: dict[str, str], field: str
) -> None:
    with loopback_llm(lambda request: says({"ok": True})) as server:
        refused = client.post("/settings", data={**model_form(server.config("openai").base_url), **change})
    assert refused.status_code == 400
    assert f'id="{field}-fault"' in refused.text
    assert "Nothing was saved." in refused.text
    assert "PAPER_ASSETS" not in refused.text.partition('id="model"')[2]
    assert kept_variables(desk.folder / "data") == {}


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (fault(401), "key"),
        (fault(403), "key"),
        (fault(404), "model"),
        (fault(302), "url"),
        (html(), "url"),
        (fault(500, "the monthly limit: no number of tokens, OPENAI_API_KEY, the prices of the model"), "model-fault"),
    ],
)
def test_a_refused_value_is_explained_beside_its_field_and_not_saved(
    desk: Desk, client: TestClient, answer: Raw, field: str
) -> None:
    with loopback_llm(answer) as server:
        refused = client.post("/settings", data=model_form(server.config("openai").base_url))
    assert refused.status_code == 400
    assert re.findall(r'id="([a-z_-]+)-fault" role="alert"', refused.text) == [field]
    assert kept_variables(desk.folder / "data") == {}


def test_what_is_saved_is_used_by_a_running_desk_at_once(desk: Desk, client: TestClient) -> None:
    environ = client.app.state.desk.workspace.access.environ  # type: ignore[attr-defined]
    with loopback_llm(lambda request: says({"ok": True})) as server:
        client.post("/settings", data=model_form(server.config("openai").base_url))
    assert llm_config(environ).api_key == KEY
    assert kept_environment(environ, desk.folder, lambda: None) is environ  # type: ignore[arg-type,return-value]


def test_the_settings_can_be_used_with_the_keyboard_and_have_no_serious_findings(desk: Desk, browser: Browser) -> None:
    script = axe_script()
    with served(desk) as page, loopback_llm(lambda request: says({"ok": True})) as server:
        for width in (1280, 390):
            with visitor(browser, width=width) as tab:
                tab.goto(f"{page.url}/settings")
                keep_picture(tab, f"settings-{width}")
                if script:
                    assert serious_findings(tab, script) == []
                tab.focus("#provider")
                tab.keyboard.press("Tab")
                tab.keyboard.type(KEY)
                tab.keyboard.press("Tab")
                tab.keyboard.press("Tab")
                tab.keyboard.type(server.config("openai").base_url)
                tab.keyboard.press("Enter")
                expect(tab.locator("#said")).to_contain_text("The test call worked")
                keep_picture(tab, f"settings-saved-{width}")
