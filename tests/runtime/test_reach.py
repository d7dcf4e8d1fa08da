"""What a task can find of Evenflow's own on its host: the threat model says it, this tries it (R-CS1)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.running import RunningEvenflow

PROBE = """
import json, os
from pathlib import Path
from evenflow import DAG, task

def read(path):
    try:
        return Path(path).read_bytes().replace(b"\\0", b"\\n").decode("latin-1")
    except OSError as error:
        return str(error)

def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return "/proc/self/fd"  # that by which the others were listed

with DAG("probe"):
    @task
    def look():
        found = {{
            "environ": dict(os.environ),
            "descriptors": {{fd: link(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd")}},
            "command": read("/proc/self/cmdline"),
            "sockets": read("/proc/net/unix"),
            "pid": os.getpid(),
            "parents": {{}},
        }}
        pid = os.getppid()
        while pid > 1:
            found["parents"][pid] = {{"environ": read(f"/proc/{{pid}}/environ"), "command": read(f"/proc/{{pid}}/cmdline")}}
            pid = int(read(f"/proc/{{pid}}/stat").rpartition(")")[2].split()[1])
        unfinished = Path({place!r} + ".new")
        unfinished.write_text(json.dumps(found))
        unfinished.rename({place!r})
    look()
"""
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def found(evenflow_up: RunningEvenflow) -> dict[str, Any]:
    """What the task saw."""
    place = evenflow_up.home / "found.json"
    (evenflow_up.dags / "probe.py").write_text(PROBE.format(place=str(place)))
    deadline = time.monotonic() + DEADLINE_S
    while evenflow_up.evenflow("runs", "trigger", "probe").returncode and time.monotonic() < deadline:
        time.sleep(0.2)
    while not place.exists():
        assert time.monotonic() < deadline, evenflow_up.log
        time.sleep(0.05)
    return dict(json.loads(place.read_text()))


def secrets_of(home: Path) -> dict[str, str]:
    return {
        "operator token": (home / "operator.token").read_text().strip(),
        "password of the database": (home / "postgres.password").read_text().strip(),
    }


def test_a_task_is_handed_nothing_of_evenflows(evenflow_up: RunningEvenflow, found: dict[str, Any]) -> None:
    """R-CS1: no token, key or address in its environment and arguments."""
    assert [name for name in found["environ"] if name.startswith("EVENFLOW_")] == []
    handed = json.dumps([found["environ"], found["command"]])
    for what, secret in secrets_of(evenflow_up.home).items():
        assert secret not in handed, what
    assert "eyJ" not in handed, "any token"
    assert "postgresql:" not in handed


def test_its_descriptors_are_its_own(found: dict[str, Any]) -> None:
    """A pipe for what it prints, one socket to its worker; none that leads to the API, the database, or a file of Evenflow's."""
    kinds = sorted(target.partition(":")[0] for target in found["descriptors"].values())
    files = [
        target for target in found["descriptors"].values() if target.startswith("/") and not target.startswith(("/dev/", "/proc/"))
    ]
    assert files == []
    assert kinds.count("socket") == 1, found["descriptors"]


def test_the_services_that_run_user_code_have_no_way_to_the_database(evenflow_up: RunningEvenflow, found: dict[str, Any]) -> None:
    """Their environments, which any process of the same user can read, have the fleet's token and no database; nor are they
    connected to one.
    """
    password = secrets_of(evenflow_up.home)["password of the database"]
    services = {" ".join(child.cmdline()[-2:]): child for child in evenflow_up.children()}
    ours = [child for name, child in services.items() if name.endswith((" worker", " processor"))]
    assert len(ours) >= 2
    for child in ours:
        environ = child.environ()
        assert "EVENFLOW_DATABASE_URL" not in environ
        assert "EVENFLOW_SECRET_KEYS" not in environ
        assert password not in json.dumps(environ)
        assert not any("PGSQL" in (connection.laddr or "") for connection in child.net_connections("unix"))
    parents = {int(pid) for pid in found["parents"]}
    assert {child.pid for child in ours} & parents, "the task is a descendant of its worker"


def test_what_does_not_hold_with_one_user(evenflow_up: RunningEvenflow) -> None:
    """The page says so: who runs as the same user reads the scheduler's environment. A reason to run workers as another one."""
    scheduler = next(child for child in evenflow_up.children() if child.cmdline()[-1] == "scheduler")
    assert "EVENFLOW_DATABASE_URL" in psutil.Process(scheduler.pid).environ()
