"""Test signing in and out in a browser with a token."""

from playwright.sync_api import Browser, expect

from tests.lab.invented_lab import Lab
from tests.page.browser import axe_script, keep_picture, serious_findings, visitor


def test_two_people_sign_in_read_and_rate_their_own_list_and_sign_out(browser: Browser, served_lab: Lab) -> None:
    with visitor(browser) as ada, visitor(browser, width=390) as bob:
        for page, name in ((ada, "ada"), (bob, "bob")):
            page.goto(f"{served_lab.url}/p/traffic")
            expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
            page.get_by_label("Your token").fill("a wrong one")
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
            keep_picture(page, f"sign-in-{name}")
            if name == "ada" and (script := axe_script()):
                assert serious_findings(page, script) == []
            page.get_by_label("Your token").fill(served_lab.tokens[name])
            page.keyboard.press("Enter")
        expect(ada).to_have_url(f"{served_lab.url}/p/traffic")
        expect(ada.locator("article").first).to_be_visible()
        expect(bob.get_by_text("There is no profile 'traffic'.")).to_be_visible()
        bob.goto(f"{served_lab.url}/")
        expect(bob).to_have_url(f"{served_lab.url}/p/speech")
        expect(bob.get_by_role("link", name="Health")).to_have_count(0)
        keep_picture(bob, "signed-in-bob")
        for page in (ada, bob):
            page.locator("article").first.get_by_role("button", name="Worth reading").click()
            expect(page.locator("#said")).to_contain_text("worth reading")
        ada.get_by_role("button", name="Sign out").click()
        expect(ada.get_by_role("heading", name="Sign in")).to_be_visible()
        ada.goto(f"{served_lab.url}/p/traffic")
        expect(ada.get_by_role("heading", name="Sign in")).to_be_visible()
        bob.reload()
        expect(bob.locator("article").first).to_be_visible()
