"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from evenflow.cli.commands.ui import login_page
from tests.house.project import ROOT
from tests.running import RunningEvenflow
from tests.ui.seed import ask

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
WITHIN_MS = 60_000  # for what is waited for: CI's machine has much else to do
WIDE: ViewportSize = {"width": 1360, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 780}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium")
    assert found, "There is no chromium. Type: scripts/setup --browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # tests run as root
        try:
            yield browser
        finally:
            browser.close()


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
    expect(page.locator(".loading")).to_have_count(0, timeout=WITHIN_MS)


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
