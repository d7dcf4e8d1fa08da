"""``evenflow up`` for real: it starts, works, survives what happens to its parts, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.running import (
    RunningEvenflow,
    evenflow_json,
    make_home,
    processes_of,
    remove_home,
    running_evenflow,
    start_evenflow,
)

GREETING = """
from evenflow import dag, task

@dag()
def greeting():
    @task
    def hello() -> str:
        return "hello"

    @task
    def answer(text: str) -> None:
        print(text, "yourself")

    answer(hello())

greeting()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    directory = make_home()
    (directory / "dags").mkdir()
    (directory / "dags" / "greeting.py").write_text(GREETING)
    yield directory
    for process in processes_of(directory):
        process.kill()
    remove_home(directory)


def wait_for(condition: Callable[[], bool], what: Callable[[], str], at_most_s: float = 30.0) -> None:
    deadline = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def service(running: RunningEvenflow, kind: str) -> psutil.Process:
    return next(child for child in running.children() if child.cmdline()[-1] == kind)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_with_nothing_left_behind(home: Path, signum: signal.Signals) -> None:
    with running_evenflow(home) as running:
        assert len(running.children()) == 4
        assert running.end(signum) == 0, running.log
    assert processes_of(home) == []


def test_it_runs_a_dag_and_again_after_a_restart(home: Path) -> None:
    for number in (1, 2):
        with running_evenflow(home) as running:
            assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
            assert len(evenflow_json(home, "runs", "list", "greeting")["runs"]) == number
            log = running.evenflow("tasks", "logs", "greeting", "answer").stdout
            assert "hello yourself" in log
            assert running.end() == 0


def test_a_second_one_on_the_same_home_is_told_where_the_first_is(home: Path) -> None:
    with running_evenflow(home) as running:
        second = running.evenflow("up")
        assert second.returncode == 2
        assert f"already runs on {home}: {running.api_url} (pid {running.process.pid}" in second.stderr
        assert running.evenflow("status").returncode == 0
        running.end()


def test_after_a_kill_its_services_are_gone_and_the_next_one_takes_over(home: Path) -> None:
    """R-HA5, R-CS7: what dies by kill -9 holds nothing afterwards, nor do children of it."""
    with running_evenflow(home) as running:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        children = running.children()
        running.process.kill()
        running.process.wait()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []
        assert [process.name() for process in processes_of(home) if process.name() != "postgres"] == []
    with running_evenflow(home) as again:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        assert again.end() == 0
    assert processes_of(home) == []


@pytest.mark.parametrize("kind", ["scheduler", "api", "processor", "worker"])
def test_a_service_that_dies_is_started_again(home: Path, kind: str) -> None:
    with running_evenflow(home) as running:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        service(running, kind).kill()
        wait_for(lambda: "is back" in running.log, lambda: running.log)
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        assert running.end() == 0


def test_what_runs_user_code_never_learns_the_password_of_the_database(home: Path) -> None:
    with running_evenflow(home) as running:
        password = (home / "postgres.password").read_text().strip()
        for kind in ("processor", "worker"):
            process = service(running, kind)
            for one in (process, *process.children(recursive=True)):
                assert password not in " ".join([*one.environ().values(), *one.cmdline()])
        running.end()


def test_a_port_that_is_taken(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(AssertionError) as caught:
        start_evenflow(home, "--port", str(other.getsockname()[1]))
    assert "Address already in use. Stop the program that has the port, or choose another: evenflow up --port" in str(caught.value)
    assert processes_of(home) == []


def test_a_file_runs_without_anything_running(home: Path) -> None:
    """The main job: one command, from nothing to the end of the run."""
    done = evenflow_json(home, "run", "dags/greeting.py")
    assert done["run"]["state"] == "success"
    assert processes_of(home) == []


def test_a_file_runs_as_it_is_now_in_the_evenflow_that_runs(home: Path) -> None:
    elsewhere = home / "elsewhere" / "farewell.py"
    elsewhere.parent.mkdir()
    with running_evenflow(home) as running:
        elsewhere.write_text(GREETING.replace("greeting", "farewell"))
        assert evenflow_json(home, "run", str(elsewhere))["run"]["dag_id"] == "farewell"
        elsewhere.write_text(GREETING.replace("greeting", "farewell").replace("hello", "goodbye"))
        assert evenflow_json(home, "run", str(elsewhere))["run"]["state"] == "success"
        assert "goodbye yourself" in running.evenflow("tasks", "logs", "farewell", "answer").stdout
        (home / "dags" / "greeting.py").write_text("import no_such_module\n" + GREETING)
        broken = running.evenflow("run", "dags/greeting.py")
        assert broken.returncode == 2
        assert "No module named 'no_such_module'" in broken.stderr
        assert running.end() == 0
