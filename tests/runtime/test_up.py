"""``evenflow up`` for real: it starts, works, survives what happens to its parts, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evenflow.runtime.database import open_database
from evenflow.runtime.up.presence import find
from tests.running import (
    RunningEvenflow,
    environment,
    evenflow_json,
    make_home,
    processes_of,
    remove_home,
    running_evenflow,
    start_evenflow,
)
from tests.tokens import given_tokens
from tests.waiting import wait_until

pytestmark = pytest.mark.system

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


def home_with_greeting() -> Path:
    home = make_home()
    (home / "dags").mkdir()
    (home / "dags" / "greeting.py").write_text(GREETING)
    return home


@pytest.fixture
def home() -> Iterator[Path]:
    """For tests that start and end it themselves."""
    directory = home_with_greeting()
    yield directory
    for process in processes_of(directory):
        process.kill()
    remove_home(directory)


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningEvenflow]:
    """One that has run ``greeting``, for tests that leave it running."""
    home = home_with_greeting()
    with running_evenflow(home) as running:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        yield running
        assert running.end() == 0, running.log
        assert processes_of(home) == []
    remove_home(home)


def test_it_runs_a_dag_and_again_after_ctrl_c_and_leaves_nothing_behind(home: Path) -> None:
    for number in (1, 2):
        with running_evenflow(home) as running:
            assert len(running.services()) == 5
            assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
            assert len(evenflow_json(home, "runs", "list", "greeting")["runs"]) == number
            assert "hello yourself" in running.evenflow("tasks", "logs", "greeting", "answer").stdout
            assert running.end(signal.SIGINT) == 0, running.log
        assert processes_of(home) == []
        with open_database(None, home) as url:
            states = [token.state for token in asyncio.run(given_tokens(url))]
        assert states == ["revoked"] * 4 * number, "R-SE1: none outlives what it was made for"


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_it_as_well(home: Path, signum: signal.Signals) -> None:
    with running_evenflow(home) as running:
        assert running.end(signum) == 0, running.log
    assert processes_of(home) == []


def test_after_a_kill_its_services_are_gone_and_the_next_one_takes_over(home: Path) -> None:
    """R-HA5, R-CS7: what dies by kill -9 holds nothing afterwards, nor do children of it."""
    with running_evenflow(home) as running:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        children = running.services()
        running.process.kill()
        running.process.wait()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []
        assert [process.name() for process in processes_of(home) if process.name() != "postgres"] == []
    with running_evenflow(home) as again:
        assert evenflow_json(home, "run", "greeting")["run"]["state"] == "success"
        assert again.end() == 0
    assert processes_of(home) == []


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


def test_a_command_that_is_terminated_leaves_nothing_behind(home: Path) -> None:
    (home / "dags" / "greeting.py").write_text(GREETING.replace('return "hello"', "import time; time.sleep(600)"))
    command = [sys.executable, "-m", "evenflow", "run", "dags/greeting.py", "--run-id", "long"]
    running = subprocess.Popen(command, env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True)
    while "is running" not in running.stdout.readline():
        assert running.poll() is None
    running.terminate()
    assert running.wait(60) == 143
    running.stdout.close()
    assert processes_of(home) == []


@pytest.mark.slow
@pytest.mark.parametrize("order", [("greeting", "napping"), ("napping", "greeting")])
def test_commands_side_by_side_share_one_evenflow_or_follow_one_another(home: Path, order: tuple[str, str]) -> None:
    """The first to come starts it, and does not end it while the other uses it."""
    (home / "dags" / "napping.py").write_text(
        GREETING.replace("greeting", "napping").replace('return "hello"', "import time; time.sleep(4)")
    )
    first, second = ([sys.executable, "-m", "evenflow", "run", f"dags/{name}.py"] for name in order)
    options = {"env": environment(home), "cwd": home, "stdout": subprocess.DEVNULL}
    with subprocess.Popen(first, **options) as starting:
        wait_until(lambda: find(home) is not None, "its start")
        with subprocess.Popen(second, **options) as joining:
            assert (joining.wait(60), starting.wait(60)) == (0, 0)
    assert processes_of(home) == []


def test_a_second_one_on_the_same_home_is_told_where_the_first_is(shared: RunningEvenflow) -> None:
    second = shared.evenflow("up")
    assert second.returncode == 2
    assert f"already runs on {shared.home}: {shared.api_url} (pid {shared.process.pid}" in second.stderr
    assert shared.evenflow("status").returncode == 0


@pytest.mark.parametrize("kind", ["scheduler", "api", "processor", "worker"])
def test_a_service_that_dies_is_started_again(shared: RunningEvenflow, kind: str) -> None:
    told = len(shared.log)
    shared.service(kind).kill()
    wait_until(lambda: "is back" in shared.log[told:], lambda: shared.log)
    assert (
        f"{kind}-1 ended" in shared.log[told:] or f"{kind} ended (killed by SIGKILL) and is started again in" in shared.log[told:]
    )
    assert evenflow_json(shared.home, "run", "greeting")["run"]["state"] == "success"


@pytest.mark.slow
def test_a_service_that_hangs_is_started_again(shared: RunningEvenflow) -> None:
    """R-HA5, R-SE2: nobody restarts it by hand."""
    told = len(shared.log)
    hung = shared.service("api")
    hung.suspend()
    wait_until(lambda: "api is back" in shared.log[told:], lambda: shared.log, within_s=120)
    assert "api hangs: it has not been live for 30 s" in shared.log[told:]
    assert not hung.is_running()
    assert shared.log[told:].count(" hangs: ") == 1, "the others waited for it"
    assert evenflow_json(shared.home, "run", "greeting")["run"]["state"] == "success"


def memory_of(process: psutil.Process) -> bytes:
    """All that it can write to; other users than root see none."""
    found = bytearray()
    with open(f"/proc/{process.pid}/maps") as maps, open(f"/proc/{process.pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            start, end = (int(address, 16) for address in place.split("-"))
            if rights.startswith("rw"):
                memory.seek(start)
                found += memory.read(end - start)
    return bytes(found)


def test_what_runs_user_code_never_learns_the_password_of_the_database(shared: RunningEvenflow) -> None:
    password = (shared.home / "postgres.password").read_text().strip()
    for kind in ("processor", "worker"):
        process = shared.service(kind)
        for one in (process, *process.children(recursive=True)):
            assert password not in " ".join([*one.environ().values(), *one.cmdline()])
            assert password.encode() not in memory_of(one)


def test_a_file_runs_as_it_is_now_in_the_evenflow_that_runs(shared: RunningEvenflow) -> None:
    elsewhere = shared.home / "elsewhere" / "farewell.py"
    elsewhere.parent.mkdir()
    elsewhere.write_text(GREETING.replace("greeting", "farewell"))
    assert evenflow_json(shared.home, "run", str(elsewhere))["run"]["dag_id"] == "farewell"
    elsewhere.write_text(GREETING.replace("greeting", "farewell").replace("hello", "goodbye"))
    assert evenflow_json(shared.home, "run", str(elsewhere))["run"]["state"] == "success"
    assert "goodbye yourself" in shared.evenflow("tasks", "logs", "farewell", "answer").stdout


def test_a_file_that_cannot_be_read_says_why(shared: RunningEvenflow) -> None:
    broken = shared.dags / "broken.py"
    broken.write_text("import no_such_module\n" + GREETING.replace("greeting", "broken"))
    done = shared.evenflow("run", "dags/broken.py")
    assert done.returncode == 2
    assert "No module named 'no_such_module'" in done.stderr
    broken.unlink()
