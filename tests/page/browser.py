"""A browser with the network shut: what it asks of any other host, and what it complains of, fails the test."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Request
from playwright.sync_api import Page as BrowserPage

from tests.node_packages import NotInstalled, installed

AXE = "axe-core@4.14.1"
HEIGHT = 844
Scheme = Literal["light", "dark"]
_WIDTHS = {"small": 320, "phone": 390, "laptop": 1280}
# Each width and each scheme once; all combinations where pictures are kept for people.
_PAIRS: tuple[tuple[str, Scheme], ...] = (("small", "dark"), ("phone", "light"), ("laptop", "dark"))
_EVERY: tuple[tuple[str, Scheme], ...] = tuple((size, scheme) for size in _WIDTHS for scheme in ("light", "dark"))
SIZES: Mapping[str, tuple[int, Scheme]] = {
    f"{size}-{scheme}": (_WIDTHS[size], scheme)
    for size, scheme in (_EVERY if os.environ.get("TEST_ARTEFACTS") else _PAIRS)
}
PATIENCE = 180_000  # milliseconds for what takes one second on an idle machine, and a run of the daemon twenty
# A page looks for changes ten times as often.
_HURRY = "const every = window.setInterval; window.setInterval = (work, wait) => every(work, wait / 10);"
# Debian's `chromium` is a script whose options cost a machine without a GPU a fourth of the processor time.
_PROGRAMS = ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """The browser of this machine; skips where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if not found:
        pytest.skip("no Chromium on this machine: the page is not tried in a browser (CHROMIUM names one)")
    return found


@contextmanager
def visitor(browser: Browser, *, width: int = 1280, **more: Any) -> Iterator[BrowserPage]:
    """Open a page as a new reader; by the end it must have sent no request elsewhere and logged no error.

    The page and its context are used again once the reader has left: new ones take twice as much processor time.
    """
    free = _FREE.setdefault(browser, {}).setdefault(repr(sorted(more.items())), [])
    page = free.pop() if free else _new_page(browser, **more)
    asked: list[str] = []
    complaints: list[str] = []

    def request(sent: Request) -> None:
        if urlsplit(sent.url).hostname != "127.0.0.1" and not sent.url.startswith("data:"):
            asked.append(sent.url)

    def console(message: ConsoleMessage) -> None:
        expected = "Failed to load resource" in message.text  # an answer that refuses, which the test is about
        if message.type in ("error", "warning") and not expected:
            complaints.append(message.text)

    def failed(error: Error) -> None:
        complaints.append(str(error))

    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(media="screen", color_scheme=more.get("color_scheme", "light"))
    page.context.on("request", request)
    page.on("console", console)
    page.on("pageerror", failed)
    try:
        yield page
    except BaseException:
        page.context.close()
        raise
    page.remove_listener("console", console)
    page.remove_listener("pageerror", failed)
    _leave(page)
    page.context.remove_listener("request", request)
    free.append(page)
    assert asked == [], f"the page asked another host: {asked}"
    assert complaints == [], complaints


# Pages that no reader uses, by browser and options.
_FREE: WeakKeyDictionary[Browser, dict[str, list[BrowserPage]]] = WeakKeyDictionary()


def _new_page(browser: Browser, **more: Any) -> BrowserPage:
    context = browser.new_context(**more)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(_HURRY)
    return context.new_page()


def _leave(page: BrowserPage) -> None:
    """Remove what a reader leaves in the page and its context."""
    for other in page.context.pages:
        if other != page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    with suppress(Error):  # of a page that did not load
        page.evaluate("sessionStorage.clear()")
    page.goto("about:blank")
    page.context.clear_cookies()


def axe_script() -> str | None:
    """axe-core's source, installed once by npm and kept outside the tree; None where that cannot be had."""
    try:
        folder = installed(AXE)
    except NotInstalled:
        return None
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def serious_findings(page: BrowserPage, script: str) -> list[str]:
    """Return what axe finds serious or worse on the page as it is now."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(script)  # by the debugger, which the page's policy does not bind
    found = page.evaluate("() => axe.run({resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')[:160]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def keep_picture(page: BrowserPage, name: str) -> None:
    """A picture of the whole page where TEST_ARTEFACTS asks for it, for people to look at."""
    if folder := os.environ.get("TEST_ARTEFACTS"):
        target = Path(folder) / "page"
        target.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target / f"{name}.png", full_page=True)


_SMALL_TARGETS = """() => {
  const fields = 'input:not([type=hidden], [type=checkbox], [type=radio], [type=file])';
  const touched = `button:not([aria-hidden]), select, summary, .views a, .which a, .chip, .pages a, ${fields}`;
  return [...document.querySelectorAll(touched)].filter((each) => {
    const box = each.getBoundingClientRect();
    return each.checkVisibility() && box.width && box.height && (box.height < 43.5 || box.width < 43.5);
  }).map((each) => {
    const box = each.getBoundingClientRect();
    const name = each.textContent.trim().slice(0, 40);
    return `${each.tagName} ${name} ${Math.round(box.width)} x ${Math.round(box.height)}`;
  });
}"""


def small_targets(page: BrowserPage) -> list[str]:
    """What a finger has to hit on a phone and is smaller than 44 by 44 pixels."""
    return list(page.evaluate(_SMALL_TARGETS))


def misfits(page: BrowserPage, name: str) -> dict[str, list[str]]:
    """Return what is too wide, hard to touch or inaccessible on the open page as each of `SIZES` shows it."""
    axe, found = axe_script(), {}
    for size, (width, scheme) in SIZES.items():
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme=scheme)
        keep_picture(page, f"{name}-{size}")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found[f"{name}-{size}"] = [
            *([f"wider than {width} px, by {overflow}"] if overflow > 0 else []),
            *(small_targets(page) if width <= _WIDTHS["phone"] else []),
            *(serious_findings(page, axe) if axe and width > _WIDTHS["small"] else []),  # as on a phone
        ]
    return {where: what for where, what in found.items() if what}
