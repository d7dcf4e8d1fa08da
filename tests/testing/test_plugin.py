"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

GOOD = """
from evenflow import dag, task

@dag
def good():
    @task
    def hello() -> str:
        return "hello"

    hello()

good()
"""
TESTS = """
from datetime import UTC, datetime, timedelta

def test_folder(load_dags, dag_runner):
    run = dag_runner(load_dags()["good"], now=datetime(2026, 1, 1, tzinfo=UTC))
    run.stub("hello", returns="stubbed", takes=timedelta(hours=1))
    outcome = run()
    assert (outcome.result("hello"), outcome.elapsed) == ("stubbed", timedelta(hours=1))

def test_file(load_dags):
    assert list(load_dags("good.py")) == ["good"]
"""


@pytest.fixture(autouse=True)
def _without_other_plugins(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio")  # which wants settings of its own


def test_fixtures(pytester: pytest.Pytester) -> None:
    _write(pytester, good=GOOD)
    pytester.makepyfile(TESTS)
    pytester.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from evenflow import DAG\n\nwith DAG('x y'):\n    pass\n", "*bad.py, line 3: *"),
        ("from evenflow import DAG\n\n1 / 0\n", "*bad.py, line 3: ZeroDivisionError: division by zero*"),
        ("from evenflow import DAG\nif:\n", "*bad.py, line 2: SyntaxError: invalid syntax*"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_said_with_its_line(pytester: pytest.Pytester, text: str, said: str) -> None:
    _write(pytester, bad=text)
    pytester.makepyfile("def test_it(load_dags):\n    load_dags()\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


def test_the_folder_may_be_set(pytester: pytest.Pytester) -> None:
    _write(pytester, good=GOOD)
    pytester.path.joinpath("dags").rename(pytester.path / "pipelines")
    pytester.makeini("[pytest]\nevenflow_dags = pipelines\n")
    pytester.makepyfile(TESTS)
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_check_of_each_file(pytester: pytest.Pytester) -> None:
    unstable = "import random\nfrom evenflow import DAG\n\nwith DAG('unstable', description=str(random.random())):\n    pass\n"
    _write(pytester, good=GOOD, again=GOOD, broken="from evenflow import DAG\n\nDAG('x y')\n", unstable=unstable)
    pytester.path.joinpath("dags", "library.py").write_text("NUMBER = 1\n")
    result = pytester.runpytest("--evenflow-dags", "dags", "-v")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*again.py PASSED*",
            "*broken.py FAILED*",
            "*broken.py:3: error: *",
            "*good.py: error: The DAG 'good' is already defined in *again.py. Rename one.",
            "*unstable.py: warning: DAG 'unstable' differs between two loads of the file*",
        ]
    )
    pytester.runpytest("--evenflow-dags", "dags", "-k", "again").assert_outcomes(passed=1, deselected=3)


def test_a_folder_that_is_not_there(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--evenflow-dags", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--evenflow-dags: There is no DAG folder *nowhere."])


def test_it_is_cheap_to_load() -> None:
    """It comes with every run of pytest, so it loads no more of Evenflow than `import evenflow` does."""
    script = "import sys, evenflow; before = set(sys.modules); import evenflow.testing.plugin; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", f"import pytest; {script}"], capture_output=True, text=True, check=True).stdout
    assert {name for name in loaded.split() if name.startswith("evenflow")} == {"evenflow.testing", "evenflow.testing.plugin"}


def _write(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        path = pytester.mkdir("dags") if not pytester.path.joinpath("dags").exists() else pytester.path / "dags"
        (path / f"{name}.py").write_text(text)
