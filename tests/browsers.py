"""Browsers for tests: each test gets one that lives, and what it opens there is closed when it ends.

A browser whose process has ended is started anew, and the test in which it died is run once more: the summary says so. That is so
only where Playwright says that the browser is gone. An assertion that failed is never run again, whatever became of the browser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:  # it takes a third of a second, and most processes that run tests need no browser
    from playwright.sync_api import Browser

    from tests.ui.browsing import Chromium

AGAIN = "browser died"  # the outcome of what is run once more
_started: Chromium | None = None


@pytest.fixture(scope="module")  # not longer: an event loop is running while it lives, and other modules have loops of their own
def chromium() -> Iterator[Chromium]:
    global _started
    from tests.ui.browsing import running_chromium

    with running_chromium() as _started:
        yield _started
    _started = None


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Browser]:
    yield chromium.living()
    chromium.close_contexts()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if "browser" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failed = [report for report in reports if report.failed]
    if failed and all(hasattr(report, "browser_died") for report in failed):
        for report in failed:
            report.outcome = AGAIN  # type: ignore[assignment]
            item.ihook.pytest_runtest_logreport(report=report)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.excinfo is not None and _started is not None and _started.took_with_it(call.excinfo.value):
        report.browser_died = True
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    return (AGAIN, "R", ("RUN AGAIN", {"yellow": True})) if report.outcome == AGAIN else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for report in terminalreporter.getreports(AGAIN):
        terminalreporter.write_line(f"RUN AGAIN {report.nodeid}: the process of its browser had ended.", yellow=True)
