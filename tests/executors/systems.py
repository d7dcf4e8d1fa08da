"""A whole Evenflow for each executor, with what runs its tries, and what may happen to that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.pods import ends
from evenflow.errors import ApiUnavailable
from evenflow.launcher.celery import CeleryExecutor
from evenflow.launcher.kubernetes.template import secret_name
from evenflow.membership.presence import identity
from evenflow.runtime.database import reach_database
from evenflow.store.serving.launches import Launch
from evenflow.wire.messages import Claim, ClaimAnswer
from tests.executors import pipelines
from tests.executors.brokers import Broker
from tests.executors.pipelines import QUEUE
from tests.kubernetes import cluster as clusters
from tests.kubernetes.cluster import NAMESPACE, Cluster
from tests.kubernetes.errors import Refused
from tests.kubernetes.store import POD, SECRET, Object
from tests.pods.world import of_epoch, pods_told, write_template
from tests.running import RunningEvenflow, environment, running_evenflow
from tests.waiting import SYSTEM_DEADLINE_S, wait_until

T = TypeVar("T")
_DRAIN_S = 300  # of a worker that a test ends while it has a try: longer than the test waits for anything


class System:
    """What there is to run the pipelines, and to see what became of them."""

    def __init__(self, running: RunningEvenflow, db: psycopg.Connection[Any], marks: Path) -> None:
        self.running, self.db, self.marks = running, db, marks

    # -- what may happen to an executor

    def worker(self, epoch: int) -> psutil.Process:
        """The process that has this try in hand."""
        query = "select pid from dispatch join service on service_id = worker_id where epoch = %s"
        return psutil.Process(self.db.execute(query, [epoch]).fetchone()[0])  # type: ignore[index]

    # the reason of a task that may take 64 MiB, and takes more
    out_of_memory = "out of memory: the kernel killed what used 64.0 of 64 MiB: raise resources(memory=...)"

    def logs(self) -> str:
        """What its parts say, the newest of it."""
        return "\n".join(self.running.log.splitlines()[-20:])

    # -- runs

    def ask(self, question: Callable[[RestClient], Awaitable[T]]) -> T:
        async def asked() -> T:
            async with RestClient(self.running.api_url, self.running.token, patience_s=30) as client:
                return await question(client)

        return asyncio.run(asked())

    def trigger(self, dag: str) -> str:
        """Also while the API is started anew. A connection that breaks says nothing about the run, so its name is known before."""
        run_id = f"{dag}-{uuid.uuid4().hex[:12]}"
        made = "select from dag_run where dag_id = %s and run_id = %s"
        while self.db.execute(made, [dag, run_id]).fetchone() is None:
            with contextlib.suppress(ApiUnavailable):
                self.ask(lambda client: client.trigger_run(dag, run_id=run_id))
        return run_id

    def state(self, dag: str, run_id: str) -> str:
        """Of a run."""
        return str(
            self.db.execute("select state::text from dag_run where dag_id = %s and run_id = %s", [dag, run_id]).fetchone()[0]
        )  # type: ignore[index]

    def end_of(self, dag: str, run_id: str, within_s: float = SYSTEM_DEADLINE_S) -> str:
        wait_until(lambda: self.state(dag, run_id) in ("success", "failed"), lambda: self.told(dag, run_id), within_s=within_s)
        return self.state(dag, run_id)

    def run(self, dag: str, *, within_s: float = SYSTEM_DEADLINE_S) -> tuple[str, str]:
        """(state, run_id) of a run that has ended."""
        run_id = self.trigger(dag)
        return self.end_of(dag, run_id, within_s), run_id

    def told(self, dag: str, run_id: str) -> str:
        states = [(each.task_id, each.state, each.reason, each.worker, each.losses) for each in self.tasks(dag, run_id)]
        return f"{states}\n{self.logs()}"

    def tasks(self, dag: str, run_id: str) -> list[Any]:
        return self.ask(lambda client: client.list_tasks(dag, run_id)).items

    def log(self, dag: str, run_id: str, task: str) -> str:
        return str(self.ask(lambda client: client.read_log(dag, run_id, task)))

    def cancel(self, dag: str, run_id: str) -> None:
        self.ask(lambda client: client.cancel_run(dag, run_id))

    def epoch(self, run_id: str) -> int:
        """Of the try that a worker has."""
        query = "select epoch from dispatch join dag_run using (run_key) where run_id = %s and worker_id is not null"
        what = lambda: f"a worker to have {run_id}\n{self.logs()}"  # noqa: E731
        return int(wait_until(lambda: self.db.execute(query, [run_id]).fetchone(), what)[0])

    # -- what the pipelines leave

    def marked(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> str:
        """What it says; nothing where it is not there."""
        with contextlib.suppress(FileNotFoundError):
            return (self.marks / name).read_text()
        return ""

    def open(self, name: str) -> None:
        (self.marks / name).touch()


class Executor(System, ABC):
    """What the suite is for: its tries, and what may happen on their way."""

    @abstractmethod
    def end_worker(self, epoch: int) -> None:
        """That has this try, as who takes its host out of service: it finishes what it has. There is another one."""

    @abstractmethod
    def deliver_again(self, epoch: int) -> None:
        """That try, a second time or late; returns when somebody has asked for it."""

    @abstractmethod
    def cut_off(self) -> contextlib.AbstractContextManager[None]:
        """What brings tries to workers is away meanwhile, and has forgotten everything when it is back."""


class Native(Executor):
    """Two workers. What brings them tries is the API, which they ask."""

    def end_worker(self, epoch: int) -> None:
        self.worker(epoch).send_signal(signal.SIGTERM)

    def deliver_again(self, epoch: int) -> None:
        """To a third one, which asks for it by its number."""
        client = ExecutionClient(self.running.api_url, _worker_token(self.running))

        async def claimed() -> ClaimAnswer:
            try:
                me = await client.register(identity("worker", "third", {"queues": [QUEUE]}))
                claim = Claim(
                    service_id=me.service_id, request_key="again", slots=1, resume_slots=0, queues=[QUEUE], epochs=[epoch]
                )
                return await client.claim(claim)
            finally:
                await client.close()

        assert asyncio.run(claimed()).assignments == []

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        """For as long as it takes to start another one: who asks waits for that."""
        api = self.running.service("api")
        api.kill()
        wait_until(lambda: is_over(api), "its end")
        yield


class Celery(Executor):
    """One worker of Celery; another one takes its place when it is ended."""

    def __init__(self, running: RunningEvenflow, db: psycopg.Connection[Any], marks: Path, broker: Broker) -> None:
        super().__init__(running, db, marks)
        self.broker = broker
        self._token = _worker_token(running)
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def log_file(self) -> Path:
        return self.running.home / "celery.log"

    def start_worker(self, *pool: str) -> None:
        """``pool``: its flags, of a pool of four processes otherwise."""
        number = len(self.workers)
        own = {
            **environment(self.running.home / f"celery-{number}"),
            "EVENFLOW_API_URL": self.running.api_url,
            "EVENFLOW_TOKEN": self._token,
            "EVENFLOW_CELERY_BROKER": self.broker.url,
            "EVENFLOW_DRAIN_TIMEOUT": str(_DRAIN_S),
            "EVENFLOW_RESOURCES": "enforce",
            "EXECUTORS_TEST": str(self.marks),
        }
        options = [
            *(pool or ("-c", "4")),
            "-Q",
            QUEUE,
            "-n",
            f"celery-{number}@%h",
            "-l",
            "info",
            "--without-mingle",
            "--without-gossip",
        ]
        command = [sys.executable, "-m", "celery", "-A", "evenflow.celery_app", "worker", *options]
        with open(self.log_file, "ab") as log:
            self.workers.append(
                subprocess.Popen(command, env=own, cwd=self.running.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def await_worker(self) -> None:
        """The newest takes messages."""
        ready = f"celery-{len(self.workers) - 1}@{os.uname().nodename} ready"
        wait_until(lambda: ready in self.log_file.read_text(), self.log_file.read_text)

    def logs(self) -> str:
        return super().logs() + "\n" + "\n".join(self.log_file.read_text().splitlines()[-30:])

    def end_worker(self, epoch: int) -> None:
        self.workers[-1].send_signal(signal.SIGTERM)
        self.start_worker()

    def stop_worker(self, process: subprocess.Popen[bytes]) -> None:
        """As people do it."""
        process.send_signal(signal.SIGTERM)
        process.wait(SYSTEM_DEADLINE_S)

    def deliver_again(self, epoch: int) -> None:
        """As a broker does."""
        done = f"Task evenflow.run[evenflow.run-{epoch}-99] succeeded"
        before = self.log_file.read_text().count(done)
        message = Launch(epoch, 99, QUEUE, 0, "", "", "", "", -1, 1)
        executor = CeleryExecutor(self.broker.url)
        assert asyncio.run(executor.launch([message])) == {}
        wait_until(lambda: self.log_file.read_text().count(done) > before, self.log_file.read_text)

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        self.broker.stop()
        try:
            yield
        finally:
            self.broker.start()

    def end(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.terminate()
        for process in self.workers:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class CeleryFleet(System):
    """Workers of Celery that an autoscaler starts and ends."""

    def __init__(self, running: RunningEvenflow, db: psycopg.Connection[Any], marks: Path, broker: Broker) -> None:
        super().__init__(running, db, marks)
        self.broker = broker

    def sends(self, run_id: str) -> int:
        """How often a message of its try was sent."""
        query = "select coalesce(max(sends), 0) from dispatch join dag_run using (run_key) where run_id = %s"
        return int(self.db.execute(query, [run_id]).fetchone()[0])  # type: ignore[index]


class Kubernetes(Executor):
    """A pod for each try, on a cluster of this machine."""

    out_of_memory = "Out of memory: container 'try' was killed at its limit of 224Mi"  # with what its worker needs

    def __init__(self, running: RunningEvenflow, db: psycopg.Connection[Any], marks: Path, cluster: Cluster) -> None:
        super().__init__(running, db, marks)
        self.cluster = cluster
        self._given: dict[int, Object] = {}  # the pods of tries that were delivered again

    def end_worker(self, epoch: int) -> None:
        (pod,) = of_epoch(self.cluster, epoch)
        self.cluster.disrupt(pod, "EvictionByEvictionAPI", grace_s=60)

    def deliver_again(self, epoch: int) -> None:
        """A second pod, with all that the first was given; that is kept from its first delivery on."""
        if epoch not in self._given:
            (pod,) = of_epoch(self.cluster, epoch)
            (secret,) = (each for each in self.cluster.objects(SECRET) if each["metadata"]["name"] == secret_name(pod))
            kept = {key: secret[key] for key in ("data", "type") if key in secret}
            self.cluster.create(SECRET, {"metadata": {"name": f"kept-{epoch}"}, **kept})
            self._given[epoch] = pod
        first, name = self._given[epoch], f"again-{epoch}-{len(self.cluster.asked)}"
        spec = {key: value for key, value in first["spec"].items() if key != "nodeName"}
        for container in spec["containers"]:
            for entry in container["env"]:
                if entry["name"] == "EVENFLOW_NAME":
                    entry["value"] = name
                if entry["name"] == "EVENFLOW_TOKEN":
                    entry["valueFrom"]["secretKeyRef"]["name"] = f"kept-{epoch}"
        meta = {"name": name, "labels": first["metadata"]["labels"]}
        self.cluster.create(POD, {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})

        def is_over() -> bool:
            again = self.cluster.pod(name)
            return again is None or ends.is_finished(again)

        wait_until(is_over, self.logs)
        with contextlib.suppress(Refused):  # a launcher has deleted it
            self.cluster.do(lambda: self.cluster.store.delete(POD, NAMESPACE, name))

    @contextlib.contextmanager
    def cut_off(self) -> Iterator[None]:
        self.cluster.stop_api()
        try:
            yield
        finally:
            self.cluster.forget_history()
            self.cluster.start_api()

    def logs(self) -> str:
        return super().logs() + "\n" + "\n".join(pods_told(self.cluster)[-30:])


def is_over(process: psutil.Process) -> bool:
    """Also when nobody has asked how it ended."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _worker_token(running: RunningEvenflow) -> str:
    made = running.evenflow("tokens", "create", "worker", "--queue", QUEUE)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()[-1]


@contextlib.contextmanager
def kubernetes(**settings: str) -> Iterator[Kubernetes]:
    with clusters.kubernetes() as cluster, _home() as folder:
        template = write_template(folder, EXECUTORS_TEST="MARKS", grace_s=60)
        told = {"EVENFLOW_KUBERNETES": cluster.uri, "EVENFLOW_KUBERNETES_TEMPLATE": str(template)}
        with _running("--workers", "0", **told, **settings) as (running, db, marks):
            template.write_text(template.read_text().replace("MARKS", str(marks)))
            options = ("--kind", "kubernetes", "--queue", QUEUE, "--slots", "8", "--option.send_again", "2")
            made = running.evenflow("executors", "set", "pods", *options)
            assert made.returncode == 0, made.stderr
            yield Kubernetes(running, db, marks, cluster)
            wait_until(lambda: not cluster.objects(), "all pods to be gone")


@contextlib.contextmanager
def native(**settings: str) -> Iterator[Native]:
    with _running("--workers", "2", EVENFLOW_QUEUES=QUEUE, EVENFLOW_RESOURCES="enforce", **settings) as (running, db, marks):
        yield Native(running, db, marks)


@contextlib.contextmanager
def celery(broker: Broker, **settings: str) -> Iterator[Celery]:
    broker.start()
    try:
        with _running("--workers", "0", EVENFLOW_CELERY_BROKER=broker.url, **settings) as (running, db, marks):
            options = ("--kind", "celery", "--queue", QUEUE, "--slots", "8", "--option.send_again", "2")
            made = running.evenflow("executors", "set", "elsewhere", *options)
            assert made.returncode == 0, made.stderr
            system = Celery(running, db, marks, broker)
            try:
                system.start_worker()
                system.await_worker()
                yield system
            finally:
                system.end()
    finally:
        broker.end()


@contextlib.contextmanager
def celery_fleet(broker: Broker, *, most: int) -> Iterator[CeleryFleet]:
    broker.start()
    try:
        options = ("--autoscale", f"0..{most}", "--autoscale-target", "celery")
        settings = {"EVENFLOW_CELERY_BROKER": broker.url, "EVENFLOW_QUEUES": QUEUE, "EVENFLOW_SLOTS": "4"}
        with _running(*options, **settings) as (running, db, marks):
            made = running.evenflow("executors", "set", "elsewhere", "--kind", "celery", "--queue", QUEUE, "--slots", "8")
            assert made.returncode == 0, made.stderr
            yield CeleryFleet(running, db, marks, broker)
    finally:
        broker.end()


@contextlib.contextmanager
def _running(*arguments: str, **settings: str) -> Iterator[tuple[RunningEvenflow, psycopg.Connection[Any], Path]]:
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(_home())
        marks = home / "marks"
        marks.mkdir()
        (home / "dags").mkdir()
        shutil.copy(pipelines.__file__, home / "dags" / "pipelines.py")
        told = {"EXECUTORS_TEST": str(marks), "EVENFLOW_DRAIN_TIMEOUT": "40", **settings}
        running = stack.enter_context(running_evenflow(home, *arguments, **told))
        url = stack.enter_context(reach_database("", home))
        db = stack.enter_context(psycopg.connect(url, autocommit=True))
        there = "select count(*) from dag where bundle <> 'evenflow'"
        wait_until(lambda: db.execute(there).fetchone()[0] == 14, lambda: running.log)  # type: ignore[index]
        try:
            yield running, db, marks
        finally:
            db.close()
            running.end()


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    from tests.running import make_home, remove_home

    home = make_home()
    try:
        yield home
    finally:
        remove_home(home)
