"""A test that takes too long for `make test`, also alone, is told of, or fails the run; that others are busy counts for nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.durations import Moment, main, pressure, quiet_s, slowness
from tests.house.project import ROOT

CONFTEST = """
from pathlib import Path
from tests import durations

durations.KEPT = Path(__file__).parent / "kept"
durations.AGAIN = 1
durations.WORK_S = 100.0  # no machine is slow
pytest_addoption = durations.add_options

def pytest_configure(config):
    config.pluginmanager.register(durations.Durations(config))
"""
TESTS = """
import pathlib
import time
import pytest

def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

@pytest.fixture(scope="module")
def for_all():
    work(0.2)

@pytest.fixture
def for_one():
    work(0.2)

def test_short(for_all): ...
def test_long(): work(0.2)
def test_made_ready_for_long(for_one): ...

def test_long_once():
    first = pathlib.Path(__file__).with_name("first")
    if not first.exists():
        first.touch()
        work(0.2)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]")
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.system
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "1")], ids=["here", "elsewhere"])
@pytest.mark.parametrize(
    ("longest", "code"), [(0.05, pytest.ExitCode.TESTS_FAILED), (0.15, pytest.ExitCode.OK)], ids=["far", "little"]
)
def test_what_takes_too_long_each_time_is_told_and_far_too_long_fails(
    tmp_path: Path, workers: tuple[str, ...], longest: float, code: pytest.ExitCode
) -> None:
    done = run(tmp_path, "--longest", str(longest), *workers)
    assert done.returncode == code
    assert (tmp_path / "first").exists()
    found = [line.split()[2].strip(":") for line in done.stdout.splitlines() if line.startswith("TOO LONG")]
    assert sorted(found) == ["test_some.py::test_long", "test_some.py::test_made_ready_for_long"]


def test_durations_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(tmp_path, "--keep-durations", "some")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    kept = json.loads((tmp_path / "kept" / "some.json").read_text())
    assert kept.keys() == {
        f"test_some.py::{name}" for name in ("test_short", "test_long", "test_made_ready_for_long", "test_long_once")
    }
    assert min(kept["test_some.py::test_long"], kept["test_some.py::test_made_ready_for_long"]) >= 0.2
    monkeypatch.setattr("tests.durations.KEPT", tmp_path / "kept")
    main(3)
    shown = {line.split("::")[1] for line in capsys.readouterr().out.splitlines()[2:]}
    assert shown == {"test_long", "test_made_ready_for_long", "test_long_once"}


def test_a_slow_machine_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= slowness() < 100
    monkeypatch.setattr("tests.durations.WORK_S", 1e-6)
    assert slowness() > 100


@pytest.mark.parametrize(
    ("wall", "processor", "waited", "counted"),
    [(3.0, 0.5, 0.0, 3.0), (3.0, 0.5, 1.0, 2.0), (30.0, 0.5, 29.5, 0.5), (30.0, 2.5, 29.0, 2.5)],
)
def test_others_at_work_count_for_nothing(wall: float, processor: float, waited: float, counted: float) -> None:
    assert quiet_s(Moment(100, 10, 50), Moment(100 + wall, 10 + processor, 50 + waited)) == counted


def test_the_kernel_tells_who_waits(tmp_path: Path) -> None:
    told = tmp_path / "cpu"
    assert pressure(told) == 0
    told.write_text("some avg10=95.94 avg60=96.82 avg300=92.17 total=821126228\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    assert pressure(told) == pytest.approx(821.126228)
