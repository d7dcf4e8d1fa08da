"""What running services tell of themselves: health, Prometheus and StatsD, of real processes, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evenflow.core import metrics
from evenflow.core.limits import BEAT_S, LEASE_S
from evenflow.core.meter import Metric
from evenflow.core.metrics import METRICS
from evenflow.core.service import ServiceKind
from tests.running import RunningEvenflow, environment, evenflow_json, make_home, processes_of, remove_home, start_evenflow
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

DAGS = """
import time
from pathlib import Path

from evenflow import dag, task

@dag()
def held():
    @task
    def wait() -> None:
        while not Path("GO").exists():
            time.sleep(0.05)

    wait()

held()
"""
ABSENT = {ServiceKind.AUTOSCALER, ServiceKind.LAUNCHER}  # evenflow up starts none by itself
# with labels that only a failure or an executor of another kind names, or told by nobody here
RARE = {metrics.SET_ASIDE, metrics.DISPATCH_UNSERVED, metrics.QUEUED_TIMEOUTS, metrics.EXECUTOR_LAUNCHERS} | {
    metric for metric in METRICS if metric.tellers and metric.tellers <= ABSENT
}


class StatsDServer:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.lines: list[str] = []
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            self.lines += self._socket.recv(65_536).decode().split("\n")


@pytest.fixture(scope="module")
def statsd() -> StatsDServer:
    return StatsDServer()


@pytest.fixture(scope="module")
def up(statsd: StatsDServer) -> Iterator[RunningEvenflow]:
    home = make_home()
    (home / "dags").mkdir()
    (home / "dags" / "held.py").write_text(DAGS.replace("GO", str(home / "go")))
    (home / "dags" / "broken.py").write_text("from evenflow import dag\n1 / 0")
    (home / "evenflow.toml").write_text(f'statsd_address = "127.0.0.1:{statsd.port}"\n')
    try:
        running = start_evenflow(home)
        yield running
        assert running.end() == 0, running.log
    finally:
        for process in processes_of(home):
            process.kill()
        remove_home(home)


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def targets(up: RunningEvenflow) -> list[str]:
    return [address for group in json.loads(get(f"{up.api_url}/metrics/targets")[1]) for address in group["targets"]]


def scrape(address: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    families = text_string_to_metric_families(get(f"http://{address}/metrics")[1])
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(family.name, []).append((sample.labels, sample.value))
    return found


def healthy(up: RunningEvenflow, name: str) -> bool:
    services = json.loads(get(f"{up.api_url}/health")[1])["services"]
    return any(service["name"] == name and service["healthy"] for service in services)


def test_every_metric_is_told_by_whom_the_documentation_says(up: RunningEvenflow, statsd: StatsDServer) -> None:
    """R-HA4, R-HA1: by all kinds of service, to Prometheus and StatsD; so each panel and alert has something to show."""
    wait_until(lambda: up.evenflow("dags", "show", "held").returncode == 0)
    assert up.evenflow("runs", "trigger", "held").returncode == 0
    told: dict[str, set[str]] = {}

    def look() -> bool:
        for address in targets(up):
            for name, samples in scrape(address).items():
                told.setdefault(name, set()).update(labels.get("kind", "") for labels, _ in samples)
        return not missing()

    def missing() -> set[Metric]:
        return {metric for metric in METRICS if metric.name not in told} - RARE

    try:
        wait_until(look)
    except AssertionError:
        pytest.fail(f"nobody tells {sorted(metric.name for metric in missing())}")
    finally:
        (up.home / "go").touch()
    for metric in METRICS:
        if metric.own_labels and metric not in RARE:
            assert told[metric.name] == {str(teller) for teller in metric.tellers - ABSENT}, metric.name
    for line in (
        "evenflow.scheduler_turns.scheduler.scheduler:",
        "evenflow.worker_slots.worker.worker-1:4|g",
        "evenflow.tasks_ready:",
    ):
        wait_until(lambda line=line: any(sent.startswith(line) for sent in list(statsd.lines)))


def test_an_autoscaler_tells_what_its_fleet_has_and_is_to_have() -> None:
    """R-AS2: what a chart of a fleet needs, as soon as it is looked after; and why another one is not."""
    home = make_home()
    (home / "dags").mkdir()
    gauges = {metrics.FLEET_REPLICAS, metrics.FLEET_READY, metrics.FLEET_RUNNING, metrics.FLEET_WAITING, metrics.FLEET_OLDEST}
    try:
        running = start_evenflow(home, "--autoscale", "1..2")

        def told() -> set[str]:
            return {name for address in targets(running) for name, samples in scrape(address).items() if samples}

        wait_until(lambda: {metric.name for metric in gauges | {metrics.DECISION_SECONDS}} <= told(), "metrics of the fleet")
        elsewhere = ("--target", "kubernetes", "--of-target.deployment", "workers", "--queue", "far")
        assert running.evenflow("autoscaler", "set", "far", *elsewhere).returncode == 0
        wait_until(lambda: "Set EVENFLOW_KUBERNETES" in running.evenflow("autoscaler", "list").stdout, "why it is not looked after")
        assert running.end() == 0, running.log
    finally:
        for process in processes_of(home):
            process.kill()
        remove_home(home)


def test_every_service_says_that_it_is_live_and_ready(up: RunningEvenflow) -> None:
    assert len(targets(up)) == 5
    for address in targets(up):
        for question in ("live", "ready"):
            status, body = get(f"http://{address}/health/{question}")
            assert (status, json.loads(body)["status"]) == (200, question), body
    status, body = get(f"{up.api_url}/health")
    assert (status, json.loads(body)["status"]) == (200, "healthy")


class Extra(NamedTuple):
    """A worker beside those of ``up``, so that nobody starts it again."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


@pytest.fixture
def extra(up: RunningEvenflow, request: pytest.FixtureRequest) -> Iterator[Extra]:
    """Ready, and of another name than the one before, which may seem healthy for a while."""
    name = f"extra-{request.node.name.removeprefix('test_')}"
    token = evenflow_json(up.home, "tokens", "create", "worker")["token"]
    settings = {"EVENFLOW_API_URL": up.api_url, "EVENFLOW_TOKEN": token}
    log = up.home / f"{name}.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "evenflow", "worker", "--name", name, "--queues", "other"]
        process = subprocess.Popen(
            command, env={**environment(up.home), **settings}, cwd=up.home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: process.poll() is not None or healthy(up, name))
        assert process.poll() is None, log.read_text()
        yield Extra(name, process, log)
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_is_killed_becomes_unhealthy_everywhere(up: RunningEvenflow, statsd: StatsDServer, extra: Extra) -> None:
    """R-HA4: after 2n+1 missed beats, and not much later, in ``/health``, ``status``, Prometheus and StatsD."""
    assert len(targets(up)) == 6
    extra.process.kill()
    killed = time.monotonic()
    wait_until(lambda: not healthy(up, extra.name))
    took = time.monotonic() - killed
    assert LEASE_S - BEAT_S - 1 < took < LEASE_S + 6
    assert json.loads(get(f"{up.api_url}/health")[1])["status"] == "degraded"
    assert len(targets(up)) == 5
    states = {service["name"]: service for service in evenflow_json(up.home, "status")["services"]}
    assert not states[extra.name]["healthy"]
    api = up.api_url.removeprefix("http://")

    def told() -> dict[str, float]:
        return {labels["name"]: value for labels, value in scrape(api)["evenflow_service_healthy"]}

    wait_until(lambda: told()[extra.name] == 0)  # what is scraped is read once in a while
    assert told()["worker-1"] == 1
    wait_until(lambda: f"evenflow.service_healthy.worker.{extra.name}:0|g" in list(statsd.lines))


def test_a_worker_without_its_api_is_live_and_not_ready(up: RunningEvenflow, extra: Extra) -> None:
    """It is to be left alone: it goes on by itself."""
    status = up.evenflow("status", "--json")
    (address,) = [s["detail"]["metrics"] for s in json.loads(status.stdout)["services"] if s["name"] == extra.name and s["healthy"]]
    api = up.service("api")
    os.kill(api.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: get(f"http://{address}/health/ready")[0] == 503)
        reason = json.loads(get(f"http://{address}/health/ready")[1])["checks"]["lease"]["reason"]
        assert reason.startswith("its last answered beat: ")
        assert get(f"http://{address}/health/live")[0] == 200
    finally:
        os.kill(api.pid, signal.SIGCONT)
    wait_until(lambda: get(f"http://{address}/health/ready")[0] == 200)


def test_a_service_that_hangs_can_be_asked_where(up: RunningEvenflow, extra: Extra) -> None:
    """SIGABRT needs no event loop that turns."""
    extra.process.send_signal(signal.SIGABRT)
    extra.process.wait(30)
    log = extra.log.read_text()
    assert "Fatal Python error: Aborted" in log
    assert "selectors.py" in log


def test_a_fixed_port_that_is_taken_is_named(up: RunningEvenflow) -> None:
    port = targets(up)[1].rpartition(":")[2]
    settings: dict[str, str] = {"EVENFLOW_METRICS_PORT": port, "EVENFLOW_TOKEN": "x", "EVENFLOW_API_URL": up.api_url}
    command = [sys.executable, "-m", "evenflow", "worker"]
    done = subprocess.run(
        command, env={**environment(up.home), **settings}, cwd=up.home, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
