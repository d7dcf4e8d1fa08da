"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, ViewportSize, expect, sync_playwright

from evenflow.cli.commands.ui import login_page
from tests.house.project import ROOT
from tests.running import RunningEvenflow
from tests.ui.seed import ask

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
WITHIN_MS = 60_000  # for what is waited for: CI's machine has much else to do
WIDE: ViewportSize = {"width": 1360, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 780}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

# Playwright passes others: no background networking, updates, sync, first run, shared memory. There is no graphics card here. On a
# busy machine a watchdog ends the process that draws, and a browser in which that has ended a few times ends itself.
FLAGS = ["--disable-gpu", "--disable-gpu-watchdog", "--disable-gpu-process-crash-limit"]


class Chromium:
    """Started when a browser is asked for, and anew when its process has ended."""

    def __init__(self, playwright: Playwright) -> None:
        found = shutil.which("chromium")
        assert found, "There is no chromium. Type: scripts/setup --browser"
        self._type, self._path = playwright.chromium, found
        self._browser: Browser | None = None

    def living(self) -> Browser:
        if not self._lives():
            self._browser = self._type.launch(executable_path=self._path, args=FLAGS)
        return self._browser

    def close_contexts(self) -> None:
        if self._lives():
            for context in self._browser.contexts:
                context.close()

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()

    def took_with_it(self, error: BaseException) -> bool:
        """Whether this is Playwright's error of a browser that is there no more."""
        return isinstance(error, Error) and not self._lives()

    def _lives(self) -> bool:
        if self._browser is None:
            return False
        with suppress(Error):  # is_connected() knows of an end when something has been asked after it
            self._browser.new_browser_cdp_session().detach()
        return self._browser.is_connected()


@contextmanager
def running_chromium() -> Iterator[Chromium]:
    with sync_playwright() as playwright:
        chromium = Chromium(playwright)
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """For programs; tests take the fixture ``browser``."""
    with running_chromium() as chromium:
        yield chromium.living()


def opened(browser: Browser, evenflow: RunningEvenflow, **options: Any) -> BrowserContext:
    """A context of its own, not logged in."""
    context = browser.new_context(base_url=evenflow.api_url, viewport=WIDE, **options)
    context.set_default_timeout(WITHIN_MS)
    return context


def logged_in(browser: Browser, evenflow: RunningEvenflow, **options: Any) -> Page:
    """On the home page, by the address that `evenflow ui` prints."""
    page = opened(browser, evenflow, **options).new_page()
    watched(page)
    page.goto(login_page(evenflow.api_url, ask(evenflow, "POST", "login-codes")["code"]))
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


def settled(page: Page) -> None:
    """The page has what it shows."""
    expect(page.locator("main")).to_be_visible(timeout=WITHIN_MS)
    expect(page.locator(".loading, [aria-busy=true]")).to_have_count(0, timeout=WITHIN_MS)


def watched(page: Page) -> None:
    """What the page says to nobody: refusals of its Content-Security-Policy, and errors that no code has caught."""
    page.flaws = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.flaws.append(str(error)))  # type: ignore[attr-defined]
    page.on("console", lambda said: page.flaws.append(said.text) if "Content Security Policy" in said.text else None)  # type: ignore[attr-defined]


def violations(page: Page) -> list[str]:
    """What axe finds wrong with the page: the rule, and the first element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}}})")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary'][:200]}" for one in found["violations"]
    ]
