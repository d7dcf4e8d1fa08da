"""axe: what axe finds wrong with the pages of the web UI by the rules of WCAG 2.2 AA, on a real `evenflow up` in a real browser.

``violations``: of all pages together, each in both colours on a wide screen and on that of a phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import measure

from tests.running import running_evenflow
from tests.ui.addresses import PAGES
from tests.ui.browsing import PHONE, WIDE, chromium, logged_in, settled, violations
from tests.ui.seed import seed

CASE = "axe"


def run() -> Iterator[dict[str, Any]]:
    found: dict[str, list[str]] = {}
    with running_evenflow() as system, chromium() as browser:
        seed(system)
        page = logged_in(browser, system)
        for screen, size in (("wide", WIDE), ("phone", PHONE)):
            page.set_viewport_size(size)
            for name, path in PAGES.items():
                page.goto(path)
                settled(page)
                for scheme in ("light", "dark"):
                    page.emulate_media(color_scheme=scheme)
                    if wrong := violations(page):
                        found[f"{name}, {screen}, {scheme}"] = wrong
    count = sum(len(wrong) for wrong in found.values())
    yield {"ok": not count, "load": measure.load(), "violations": count, "pages": len(PAGES), "found": found}
