"""What becomes of tests when the process of their browser ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import ROOT

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("ui")]

TESTS = """
from pathlib import Path

import psutil
import pytest

DIED = Path("died")


def end_processes() -> None:
    ours = [each for each in psutil.Process().children(recursive=True) if "--remote-debugging-pipe" in each.cmdline()]
    assert ours
    for process in ours:
        process.kill()
    psutil.wait_procs(ours)


@pytest.fixture
def page(browser):
    return browser.new_page()


def test_first(page):
    page.set_content("<h1>first</h1>")


def test_its_browser_dies_once(page):
    if not DIED.exists():
        DIED.touch()
        end_processes()
    page.set_content("<h1>second</h1>")
    assert page.inner_text("h1") == "second"


def test_what_was_opened_is_closed(browser):
    assert browser.contexts == []
    browser.new_context()
    raise ValueError("a test that fails closes it, too")


def test_again_nothing_is_open(browser):
    assert browser.contexts == []


def test_its_browser_dies_each_time(page):
    end_processes()
    page.set_content("<h1>third</h1>")


def test_an_assertion_fails_when_the_browser_has_died(page):
    end_processes()
    assert Path("asserted").exists() or Path("asserted").touch(), "once is enough to fail"


def test_last(page):
    page.set_content("<h1>last</h1>")
"""
FAIL = ("what_was_opened_is_closed", "its_browser_dies_each_time", "an_assertion_fails_when_the_browser_has_died")


def test_a_browsers_death_costs_one_try_of_one_test(tmp_path: Path) -> None:
    """Those after it have a browser, what failed by itself is not run again, and xdist's summary tells of what was."""
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.browsers", "-p", "no:cacheprovider", "-v", "-n", "1"]
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=900, check=False
    )
    lines = ran.stdout.splitlines()
    again = [line for line in lines if line.startswith("RUN AGAIN test_it.py::")]
    assert [line.partition("::test_")[2].partition(":")[0] for line in again] == ["its_browser_dies_once", FAIL[1]], ran.stdout
    failed = {line.partition("::test_")[2].partition(" ")[0] for line in lines if line.startswith("FAILED ")}
    assert failed == set(FAIL), ran.stdout
    assert "3 failed, 4 passed, 2 browser died" in lines[-1]
