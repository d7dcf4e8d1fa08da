"""Shapes with real execution: everything that ``evenflow up`` starts, HTTP, processes, user code."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
import psutil
import specs
from on_celery import CeleryBeside
from sdks import environ_of
from shapes import Shape, total_tasks, upstream

from evenflow.client.rest import RestClient
from evenflow.runtime.up import presence

TIMEOUT_S = 600
SLOTS = 16
POLL_S = 0.02


class Evenflow:
    """One ``evenflow up`` on a fresh home with these DAG files, whose tasks write into the file ``times``. Of its own it may have
    ``options``, ``slots`` and variables.
    """

    def __init__(
        self,
        home: Path,
        *dag_files: str,
        beside: CeleryBeside | None = None,
        options: Sequence[str] = (),
        slots: int = SLOTS,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.home, self.times, self.beside = home, times_of(home), beside
        dags = home / "dags"
        dags.mkdir()
        for number, text in enumerate(dag_files):
            (dags / f"shape{number}.py").write_text(text)
        environment = {**os.environ, "EVENFLOW_HOME": str(home / "state"), **(environ or {})}
        command = [sys.executable, "-m", "evenflow", "up", "--dags", str(dags), "--slots", str(slots), "--port", "0", "--quiet"]
        if beside is not None:
            command += ["--workers", "0"]
            environment["EVENFLOW_CELERY_BROKER"] = beside.broker
        begin = time.monotonic()
        self.process = subprocess.Popen([*command, *options], env=environment, stdout=sys.stderr)
        found = None
        while found is None:
            time.sleep(POLL_S)
            found = presence.find(home / "state")
            if self.process.poll() is not None or time.monotonic() - begin > TIMEOUT_S:
                raise RuntimeError("evenflow up did not become ready")
        self.up_s = time.monotonic() - begin
        self.api_url = found.api_url
        self.token = (home / "state" / "operator.token").read_text().strip()
        if beside is not None:
            beside.begin(self.api_url, self.token, home / "state", SLOTS)

    def components(self) -> dict[str, list[psutil.Process]]:
        """Process trees by the service that they belong to."""
        up = psutil.Process(self.process.pid)
        templates = up.children()
        out: dict[str, list[psutil.Process]] = {"up": [up, *templates], "postgres": []}
        for service in (child for template in templates for child in template.children()):
            kind = [word for word in service.cmdline() if word][-1]
            out.setdefault(kind, []).extend(measure.tree(service.pid))
        pid_file = (self.home / "state" / "postgres").resolve() / "data" / "postmaster.pid"
        out["postgres"] = measure.tree(int(pid_file.read_text().split()[0]))
        return out | (self.beside.trees() if self.beside is not None else {})

    def stop(self) -> None:
        if self.beside is not None:
            self.beside.stop()
        self.process.terminate()
        self.process.wait(TIMEOUT_S)


def times_of(home: Path) -> Path:
    return home / "times"


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = TIMEOUT_S, every_s: float = POLL_S) -> None:
    deadline = time.monotonic() + within_s
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the shape did not end")
        await asyncio.sleep(every_s)


class Peak(threading.Thread):
    """The largest memory of each component, looked at ten times a second."""

    def __init__(self, evenflow: Evenflow) -> None:
        super().__init__(daemon=True)
        self.mb: dict[str, float] = {}
        self.total_mb = 0.0
        self._evenflow, self._end = evenflow, threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.5):
            now = {name: measure.pss_mb(ps) for name, ps in self._evenflow.components().items()}
            self.mb = {name: max(mb, self.mb.get(name, 0.0)) for name, mb in now.items()}
            self.total_mb = max(self.total_mb, sum(now.values()))

    def stop(self) -> None:
        self._end.set()
        self.join()


async def run_shape(evenflow: Evenflow, shape: Shape, repeat: int) -> dict[str, Any]:
    plans = specs.plan(shape)
    async with RestClient(evenflow.api_url, evenflow.token) as api:
        for name, slots in specs.pools(shape).items():
            await api.set_pool(name, slots=slots)

        async def parsed() -> bool:
            return len((await api.list_dags(limit=1000)).items) == len(plans)

        await until(parsed)
        evenflow.times.write_bytes(b"")
        begin_cpu = {name: measure.cpu_s(ps) for name, ps in evenflow.components().items()}
        peak = Peak(evenflow)
        if repeat:
            peak.start()
        begin = time.time()
        for i in range(max(plan.runs for plan in plans)):
            for plan in plans:
                if i < plan.runs:
                    await api.trigger_run(plan.spec.dag_id, run_id=f"bench_{repeat}_{i}")
        runs: list[Any] = []

        async def ended() -> bool:
            runs[:] = [r for r in (await api.list_runs(limit=1000)).items if r.run_id.startswith(f"bench_{repeat}_")]
            return bool(runs) and all(r.state in ("success", "failed") for r in runs)

        await until(ended)
        total_s = max(r.ended_at.timestamp() for r in runs) - begin
        if repeat:
            peak.stop()
        spent = {name: round(measure.cpu_s(ps) - begin_cpu.get(name, 0.0), 3) for name, ps in evenflow.components().items()}
        states = Counter[str]()
        for run in runs:
            states.update((await api.get_run(run.dag_id, run.run_id)).tasks_by_state)
    tasks = total_tasks(shape)
    lines = [line.split() for line in evenflow.times.read_text().splitlines()]
    began = Counter((dag_id, task_id, index) for dag_id, task_id, index, _, _ in lines)
    wanted = {plan.spec.dag_id: plan.runs for plan in plans}
    graphs = {group["name"]: group["graph"] for group in shape["groups"]}
    times = {(d, int(t[1:] or 0)): (float(b), float(e)) for d, t, _, b, e in lines}
    lags = [
        begin_ - times[dag_id, before][1]
        for (dag_id, i), (begin_, _) in times.items()
        if (before := upstream(graphs[dag_id.rsplit("_", 1)[0]], i)) is not None
    ]
    return {
        "cold": repeat == 0,
        "ok": dict(states) == {"success": tasks}
        and began.total() == tasks
        and all(n == wanted[key[0]] for key, n in began.items()),
        "tasks": tasks,
        "states": dict(states),
        "up_s": round(evenflow.up_s, 2),
        "total_s": round(total_s, 3),
        "tasks_per_s": round(tasks / total_s, 1),
        "first_start_s": round(min(float(line[3]) for line in lines) - begin, 4),
        "lag_s": measure.quantiles(lags),
        "cpu_s": spent,
        "cpu_s_per_task": round(sum(spent.values()) / tasks, 5),
        "peak_pss_mb": {name: round(mb, 1) for name, mb in peak.mb.items()},
        "peak_pss_total_mb": round(peak.total_mb, 1),
    }


def run(case: str, shape: Shape, *, runs: int, schedulers: int, reuse: bool, executor: str, sdk: str) -> Iterator[dict[str, Any]]:
    """The results of ``runs`` runs on one ``evenflow up``. The first is cold, and memory is not looked at in it, for that
    costs CPU. ``executor``: ``native``, or ``celery`` with a pool, as in ``celery-threads``. ``sdk``: of the DAG files.
    """
    if schedulers != 1:
        raise SystemExit("Real shapes run what `evenflow up` starts, which is one scheduler. Leave out --schedulers.")
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        body = specs.writes_times(str(times_of(home)), sdk=sdk)
        shapes = [{"groups": [group]} for group in shape["groups"]] if case == "many_files" else [shape]
        kind, _, pool = executor.partition("-")
        beside = CeleryBeside(home, pool or "prefork") if kind == "celery" else None
        files = [specs.dag_file(each, body, reuse=reuse, sdk=sdk) for each in shapes]
        evenflow = Evenflow(home, *files, beside=beside, environ=environ_of(sdk))
        try:
            for repeat in range(runs):
                yield asyncio.run(run_shape(evenflow, shape, repeat))
        finally:
            evenflow.stop()
