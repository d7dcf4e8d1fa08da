"""What a task can find of Evenflow's own on its host: the threat model says it, this tries it (R-CS1, R-SE1)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenflow.forking import landlock
from tests.running import RunningEvenflow, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("reach")]  # its two systems are started once

PROBE = """
import json, os, subprocess
from pathlib import Path
from evenflow import DAG, task

def read(path):
    try:
        return Path(path).read_bytes().replace(b"\\0", b"\\n").decode("latin-1")
    except OSError as error:
        return error.strerror

def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return "/proc/self/fd"  # that by which the others were listed

def tried(what):
    try:
        return str(what())
    except OSError as error:
        return error.strerror

def of_process(pid):
    return {{
        "environ": read(f"/proc/{{pid}}/environ"),
        "memory": tried(lambda: os.close(os.open(f"/proc/{{pid}}/mem", os.O_RDONLY))),
        "descriptors": tried(lambda: os.readlink(f"/proc/{{pid}}/fd/0")),
        "signal": tried(lambda: os.kill(pid, 0)),
        "command": read(f"/proc/{{pid}}/cmdline"),
    }}

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and os.path.exists(f"/proc/{{name}}/task")]

with DAG("probe"):
    @task
    def look():
        home = Path({home!r})
        found = {{
            "user": os.getuid(),
            "environ": dict(os.environ),
            "descriptors": {{fd: link(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd")}},
            "command": read("/proc/self/cmdline"),
            "sockets": read("/proc/net/unix"),
            "pid": os.getpid(),
            "template": os.getppid(),
            "processes": {{pid: of_process(pid) for pid in pids()}},
            "files": {{name: read(home / name) for name in ("operator.token", "secrets.key", "postgres.password")}},
            "overwrite": tried(lambda: (home / "operator.token").open("r+").close()),
            "create": tried(lambda: (home / "made").touch()),
            "shell": subprocess.run(["cat", home / "operator.token"], capture_output=True, text=True).stdout,
        }}
        Path({place!r} + ".new").write_text(json.dumps(found))
        os.rename({place!r} + ".new", {place!r})
    look()
"""
DENIED = "Permission denied"
NOBODY = 65534  # root may read everything: as root the tests run Evenflow as somebody else


@dataclass
class Reach:
    """What a task found, and the system that it was in."""

    up: RunningEvenflow
    found: dict[str, Any]

    def service(self, kind: str) -> psutil.Process:
        return self.up.service(kind)

    def of(self, pid: int) -> dict[str, Any]:
        return dict(self.found["processes"][str(pid)])


def looked(**settings: str) -> Iterator[Reach]:
    user = NOBODY if os.geteuid() == 0 else None
    with running_evenflow(user=user, **settings) as up:
        place = up.dags / "found.json"
        (up.dags / "probe.py").write_text(PROBE.format(home=str(up.home), place=str(place)))
        up.dags.chmod(0o777)  # made by the tests, used by the task
        wait_until(lambda: up.evenflow("runs", "trigger", "probe").returncode == 0, lambda: up.log)
        wait_until(place.exists, lambda: (up.log, up.evenflow("tasks", "logs", "probe", "look").stdout))
        yield Reach(up, json.loads(place.read_text()))


@pytest.fixture(scope="module")
def open_house() -> Iterator[Reach]:
    """As it is without further settings: the task's user is that of the services."""
    yield from looked()


@pytest.fixture(scope="module")
def sandboxed() -> Iterator[Reach]:
    """With EVENFLOW_SANDBOX=landlock."""
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    yield from looked(EVENFLOW_SANDBOX="landlock")


@pytest.fixture(params=["open_house", "sandboxed"])
def reach(request: pytest.FixtureRequest) -> Reach:
    either: Reach = request.getfixturevalue(request.param)
    return either


def secrets_of(home: Path) -> dict[str, str]:
    names = ("operator.token", "postgres.password", "secrets.key")
    return {name: (home / name).read_text().strip() for name in names if (home / name).exists()}


def test_a_task_is_handed_nothing_of_evenflows(reach: Reach) -> None:
    """R-CS1: no token, key or address in its environment and arguments."""
    found = reach.found
    assert [name for name in found["environ"] if name.startswith("EVENFLOW_")] == []
    handed = json.dumps([found["environ"], found["command"]])
    secrets = secrets_of(reach.up.home)
    assert len(secrets) == 3
    for what, secret in secrets.items():
        assert secret not in handed, what
    assert "eyJ" not in handed, "any token"
    assert "postgresql:" not in handed


def test_its_descriptors_are_its_own(reach: Reach) -> None:
    """R-CS1: a pipe for what it prints, one socket to its worker; none leads to the API, the database, or a file of Evenflow's."""
    targets = reach.found["descriptors"].values()
    assert [target for target in targets if target.startswith("/") and not target.startswith(("/dev", "/proc"))] == []
    assert sum(target.startswith("socket:") for target in targets) == 1, targets


def test_the_services_that_run_user_code_have_no_way_to_the_database(reach: Reach) -> None:
    """R-CS1: they have the fleet's token, and no database; nor are they connected to one."""
    password = secrets_of(reach.up.home)["postgres.password"]
    for child in (reach.service("worker"), reach.service("processor")):
        if os.geteuid() == 0:  # nobody else may look
            environ = child.environ()
            assert "EVENFLOW_DATABASE_URL" not in environ
            assert "EVENFLOW_SECRET_KEYS" not in environ
            assert password not in json.dumps(environ)
        assert not any("PGSQL" in (connection.laddr or "") for connection in child.net_connections("unix"))


def test_a_task_cannot_look_into_its_worker_or_any_service(reach: Reach) -> None:
    """R-SE1: not into their environments, which have tokens, keys and the database's password, nor their memory or descriptors,
    although they run as the same user; into those of its own template it can.
    """
    services = {kind: reach.service(kind) for kind in ("api", "scheduler", "processor", "worker", "triggerer")}
    pids = {kind: child.pid for kind, child in services.items()} | {"evenflow up": reach.up.process.pid}
    for kind, pid in pids.items():
        seen = reach.of(pid)
        assert psutil.Process(pid).uids().real == reach.found["user"], kind
        assert (seen["environ"], seen["memory"], seen["descriptors"]) == (DENIED, DENIED, DENIED), kind
    assert "PATH=" in reach.of(reach.found["template"])["environ"], "what it may see is seen"
    environs = [process["environ"] for process in reach.found["processes"].values()]
    # Services of other tests are looked at, too: one that has just begun has not closed itself yet.
    everything = json.dumps(
        [each for each in environs if "EVENFLOW_HOME=" not in each or f"EVENFLOW_HOME={reach.up.home}\n" in each]
    )
    for what, secret in secrets_of(reach.up.home).items():
        assert secret not in everything, what
    assert "EVENFLOW_TOKEN" not in everything


def test_a_sandboxed_task_cannot_read_or_change_the_files_of_the_home(sandboxed: Reach) -> None:
    """R-SE1: neither itself nor through a program that it starts."""
    assert set(sandboxed.found["files"].values()) == {DENIED}
    assert (sandboxed.found["overwrite"], sandboxed.found["create"], sandboxed.found["shell"]) == (DENIED, DENIED, "")
    assert len(secrets_of(sandboxed.up.home)) == 3, "they are there"


def test_a_sandboxed_task_cannot_end_its_worker(sandboxed: Reach) -> None:
    """R-SE1: since Linux 6.12 it can signal what is in its sandbox only."""
    if landlock.version() < 6:
        pytest.skip("this kernel's Landlock knows no signals")
    assert sandboxed.of(sandboxed.service("worker").pid)["signal"] == "Operation not permitted"
    assert sandboxed.of(sandboxed.found["pid"])["signal"] == "None", "its own it can"


def test_what_does_not_hold_without_a_sandbox(open_house: Reach) -> None:
    """The page says so: who runs as the same user reads the files of the home, and ends its services."""
    assert open_house.found["files"]["operator.token"].strip() == open_house.up.token
    assert open_house.of(open_house.service("worker").pid)["signal"] == "None"
