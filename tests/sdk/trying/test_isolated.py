"""Functions in another Python: how they get there, what comes back, and the environments that are made for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, ExternalPythonOperator, TaskSkipped, task
from evenflow.core.states import TaskState
from evenflow.errors import BadArgument, IsolatedTaskFailed
from evenflow.sdk.operators.isolated import CHILD, own_environment, run_in, source_of
from evenflow.sdk.operators.venvs import Needs, clean_up, environment
from tests.sdk.recording import Recorder, context


def there(function: Callable[..., Any], *args: Any, skip: tuple[int, ...] = (), **kwargs: Any) -> Any:
    """Its result in another process of this Python."""
    return run_in(
        sys.executable,
        source_of(function, "Task 't'"),
        args,
        kwargs,
        env=own_environment(),
        skip_on_exit_code=skip,
        where="Task 't'",
    )


def returns_all(*args: Any, **kwargs: Any) -> Any:
    return [args, kwargs]


def test_values_cross_both_ways() -> None:
    from datetime import UTC, date, datetime, timedelta
    from decimal import Decimal
    from uuid import UUID

    values = [
        *(None, True, 1.5, 2**80, "ü", [1, [2]], (1, (2,)), {"a": {"b": 1}}, {1: "x"}, {3, 4}, b"\0x", float("inf")),
        *(date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=UTC), timedelta(days=1), Decimal("1.50"), UUID(int=7), Path("/a/b")),
    ]
    assert there(returns_all, *values, k=(1,)) == [tuple(values), {"k": (1,)}]


def fails(kind: str) -> None:
    class OfItsOwn(ValueError):
        pass

    raise {"builtin": KeyError, "own": OfItsOwn}[kind]("x is gone")


def test_exceptions_come_back_by_type(capfd: pytest.CaptureFixture[str]) -> None:
    """A built-in one as itself, so that retry rules know it; its traceback, with the lines of this file, is in the log."""
    with pytest.raises(KeyError, match="x is gone"):
        there(fails, "builtin")
    with pytest.raises(IsolatedTaskFailed, match=r"^isolated_task\..*OfItsOwn: x is gone$"):
        there(fails, "own")
    printed = capfd.readouterr().out
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "raise {" in text)
    assert f'test_isolated.py", line {line}, in fails' in printed


def leaves(code: int) -> None:
    import os

    os._exit(code)


def test_how_its_process_ends() -> None:
    with pytest.raises(IsolatedTaskFailed, match="ended with exit code 3 and told no result"):
        there(leaves, 3)
    with pytest.raises(TaskSkipped, match="exit code 99"):
        there(leaves, 99, skip=(99,))


def unknown_result() -> object:
    return object()


def test_what_cannot_cross_is_said() -> None:
    with pytest.raises(TypeError, match=r"builtins\.object, which cannot be brought back"):
        there(unknown_result)
    with pytest.raises(IsolatedTaskFailed, match="only a function with def"):
        source_of(lambda: 1, "Task 't'")
    outer = 3

    def inner() -> int:
        return outer

    with pytest.raises(IsolatedTaskFailed, match=r"uses outer of the function around it"):
        source_of(inner, "Task 't'")


def test_external_python_in_a_dag(capfd: pytest.CaptureFixture[str]) -> None:
    """With XComs, entries of the context by name, and annotations that the other Python could not evaluate."""
    with DAG("d") as dag:

        @task.external_python(python=sys.executable, env_vars={"HOW": "so"})
        def far(n: NotDefinedThere, run_id: str, params: Any) -> tuple[int, str, str]:  # type: ignore[name-defined]  # noqa: F821
            import os

            print("from afar")
            return n + 1, run_id, os.environ["HOW"]

        @task
        def near() -> int:
            return 41

        far(near())
    outcome = dag.test(run_id="r7")
    assert outcome.result("far") == (42, "r7", "so")
    assert "from afar" in capfd.readouterr().out


def test_the_python_is_checked_early(tmp_path: Path) -> None:
    with DAG("d") as dag:
        with pytest.raises(BadArgument, match="python must be an absolute path"):
            ExternalPythonOperator(task_id="x", python="bin/python", python_callable=returns_all)
        ExternalPythonOperator(task_id="gone", python=tmp_path / "python", python_callable=returns_all)
        ExternalPythonOperator(task_id="none", python="/bin/false", python_callable=returns_all)
    ends = dag.test(print_logs=False).tasks
    assert [end.state for end in ends] == [TaskState.FAILED] * 2
    assert "cannot be run on this worker" in str(ends[0].reason)
    assert "is no Python 3.8 or newer" in str(ends[1].reason)


def test_what_cannot_cross_of_the_context() -> None:
    with DAG("d") as dag:

        @task.external_python(python=sys.executable)
        def far(ti: Any) -> None: ...

        far()
    from evenflow.sdk.trying.runner import run_try

    result = run_try(dag, context("far"), Recorder())
    assert "'ti' of the context cannot be brought to another Python" in str(result.reason)


def test_the_child_needs_nothing_installed() -> None:
    """Its file runs where there is only the standard library."""
    done = subprocess.run([sys.executable, "-I", "-S", str(CHILD)], capture_output=True, text=True, check=False)
    assert "TypeError: main() missing 2 required positional arguments" in done.stderr


# -- environments ------------------------------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the wheel of a package ``far_away``, version 1.5."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "far_away-1.5.dist-info"
    with zipfile.ZipFile(folder / "far_away-1.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("far_away.py", "NUMBER = 1.5\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: far-away\nVersion: 1.5\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"far_away.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return folder


def needs(wheels: Path, *more: str) -> Needs:
    return Needs(requirements=("far-away==1.5", *more), python=sys.executable, options=("--no-index", "--find-links", str(wheels)))


def test_an_environment_is_made_once_and_kept(wheels: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also when a requirements file says what is needed, beside the DAG file."""
    (tmp_path / "wanted.txt").write_text("# what it needs\nfar-away==1.5  # exactly\n")
    options = {
        "pip_install_options": ["--no-index", "--find-links", str(wheels)],
        "venv_cache_path": tmp_path / "venvs",
    }
    with DAG("d") as dag:

        @task.virtualenv(requirements=["far-away==1.5"], **options)
        def number() -> float:
            import far_away

            return far_away.NUMBER

        @task.virtualenv(requirements="wanted.txt", **options)
        def prefix() -> str:
            import sys

            return sys.prefix

        number() >> prefix()
    dag.file = tmp_path / "dag.py"
    outcome = dag.test()
    outcome.raise_on_failure()
    assert outcome.result("number") == 1.5
    assert outcome.result("prefix").startswith(str(tmp_path / "venvs"))
    assert capfd.readouterr().out.count("Making an environment") == 1


def test_two_at_once_make_one(wheels: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pythons: list[Path] = []

    def use() -> None:
        with environment(needs(wheels), tmp_path / "venvs", "Task 't'") as python:
            pythons.append(python)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pythons) == 3
    assert len(set(pythons)) == 1
    assert capfd.readouterr().out.count("Making an environment") == 1


def test_one_that_was_left_half_made_is_made_anew(wheels: Path, tmp_path: Path) -> None:
    half = tmp_path / "venvs" / needs(wheels).key
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("half")
    with environment(needs(wheels), tmp_path / "venvs", "Task 't'") as python:
        assert subprocess.run([python, "-c", "import far_away"], check=False).returncode == 0


def test_what_was_not_used_for_longest_goes(wheels: Path, tmp_path: Path) -> None:
    """But never under a task that uses it."""
    folder = tmp_path / "venvs"
    kinds = [Needs(requirements=(), python=sys.executable, system_site_packages=site) for site in (False, True)]
    for age, kind in zip((200, 100), kinds, strict=True):
        with environment(kind, folder, "Task 't'"):
            pass
        os.utime(folder / kind.key / "evenflow.json", (age, age))
    assert clean_up(folder, 10**9) == []
    with environment(kinds[0], folder, "Task 't'"):
        os.utime(folder / kinds[0].key / "evenflow.json", (1, 1))
        assert clean_up(folder, 0) == [kinds[1].key]
    assert clean_up(folder, 0) == [kinds[0].key]
    assert not list(folder.glob("*/bin"))


def test_what_cannot_be_installed_is_said(wheels: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(IsolatedTaskFailed, match=r"^Task 't': its environment cannot be made: .*"),
        environment(needs(wheels, "no-such-thing-here"), tmp_path / "venvs", "Task 't'"),
    ):
        pass


def test_a_password_stays_out_of_the_file() -> None:
    @task.virtualenv(index_urls="https://me:secret@packages.example/simple")
    def f() -> None: ...

    with DAG("d"), pytest.raises(BadArgument, match="index_conn_ids"):
        f()
