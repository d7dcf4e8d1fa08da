"""What tests of the web UI share; each module has its own ``evenflow``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.running import RunningEvenflow
from tests.ui.browsing import logged_in


@pytest.fixture
def page(browser: Browser, evenflow: RunningEvenflow) -> Iterator[Page]:
    """Logged in, on the home page. It has said nothing of refused scripts and no error when the test is over."""
    page = logged_in(browser, evenflow)
    yield page
    assert page.flaws == []  # type: ignore[attr-defined]
