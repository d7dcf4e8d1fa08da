"""spark_chaos: Spark applications on a real standalone cluster and queries on a Connect server; each run loses one of the processes
that it stands on.

A run is a task of SparkSubmit, in client or cluster mode, or one of ``@task.spark`` on the Connect server of ``evenflow up``, with
tries to spare. Killed with SIGKILL, once: the driver's Python, its JVM, its wrapper, an executor, the master, the Connect server,
or the worker, triggerer or scheduler of Evenflow, when the driver has just been ordered, when it runs, or when it ends; or the run
is cancelled. The master comes back where it was, by the harness; the Connect server by Evenflow.

Several runs go side by side on one cluster, one Connect server and one Evenflow. What kills a part that all have strikes all of
them, wherever they are. ``--first N`` begins with the Nth run, and with ``--results FILE`` the verdicts of several parts add up.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from measure import load
from spark_chaos_dags import APPLICATION, SHORT_LIVED, dag_file
from spark_chaos_verdicts import ORPHAN_S, ChaosRun, append_verdict, read_verdicts, summed, verdict

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from tests.running import RunningEvenflow, running_evenflow
from tests.spark.servers import Cluster, recovering_cluster

T = TypeVar("T")

CASE = "spark_chaos"
OF_EVENFLOW = ("worker", "scheduler", "cancel")
OF_APPLICATIONS = ("python", "jvm", "wrapper", "executor", "master", "triggerer", *OF_EVENFLOW)
PAIRS = [
    *((mode, victim) for victim in OF_APPLICATIONS for mode in ("client", "cluster")),
    *(("connect", victim) for victim in ("python", "connect", *OF_EVENFLOW)),
]  # in turn
MOMENTS = ("ordered", "running", "ending")
LANES = 6  # runs at a time: most of a run is waiting for leases and for the end of what was killed
CORES = 6  # of each of the two workers: a run takes two of them, and what was killed keeps its own for a moment
RUN_WITHIN_S = 3_600.0  # what a run takes on a machine with a load of 50
BEGINS_S = 1_800.0  # until the DAGs are there, and for an API that is away
LOOK_S = 0.2  # at ledgers and folders
ASK_S = 1.0  # the API, for the end of a run


def run(*, runs: int, first: int = 0, results: Path | None = None) -> Iterator[dict[str, Any]]:
    """One result for all ``runs``, and for those of earlier parts that ``results`` has."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="spark-chaos-", ignore_cleanup_errors=True) as folder,
        recovering_cluster(Path(folder), workers=2, cores=CORES, java_options=SHORT_LIVED) as (cluster, kill_master),
    ):
        base = Path(folder, "evidence")
        with running_evenflow(None, "--spark-connect", **_connections(cluster, base)) as system:
            series = _ChaosSeries(system, Path(folder, "ledger"), base, kill_master, results or Path(folder, "results"))
            asyncio.run(series.all(range(first, first + runs)))
            judged = read_verdicts(series.results)
    yield {**summed(judged), "part_s": round(time.monotonic() - began), "load": load()}


def _connections(cluster: Cluster, base: Path) -> dict[str, Any]:
    common = f"rest={cluster.rest}&evidence={base}&python={sys.executable}"
    return {f"EVENFLOW_CONN_{mode.upper()}": f"{cluster.uri}?deploy_mode={mode}&{common}" for mode in ("client", "cluster")}


class _ChaosSeries:
    def __init__(self, system: RunningEvenflow, ledger: Path, base: Path, kill_master: Callable[[], None], results: Path) -> None:
        self._system, self._ledger, self._base, self._kill_master, self.results = system, ledger, base, kill_master, results
        self._master_turn = asyncio.Lock()
        self._told: list[ChaosRun] = []
        ledger.mkdir()
        (system.dags / "app.py").write_text(APPLICATION)
        (system.dags / "chaos.py").write_text(dag_file(str(ledger)))

    async def all(self, numbers: Iterable[int]) -> None:
        """Runs these in lanes. The verdict of a run is appended when it is known whether it left something behind, and once more if
        it is another one when all have ended.
        """
        left = iter(numbers)
        async with RestClient(self._system.api_url, self._system.token, patience_s=BEGINS_S) as api:
            self._api = api
            await self._dags_are_there()
            judging = asyncio.create_task(self._judge_in_time())

            async def lane() -> None:
                for number in left:
                    await self._once(number)

            await asyncio.gather(*(lane() for _ in range(LANES)))
            judging.cancel()
            await asyncio.sleep(ORPHAN_S)
        known = {each["number"]: each for each in read_verdicts(self.results)}
        for told in self._told:
            judged = self._verdict(told)
            if judged != known.get(told.number):
                append_verdict(self.results, judged)

    async def _dags_are_there(self) -> None:
        async def are_there() -> bool:
            return len((await self._api.list_dags()).items) >= 3

        await _until(are_there, ASK_S, BEGINS_S)

    async def _judge_in_time(self) -> None:
        judged = 0
        while True:
            await asyncio.sleep(ASK_S)
            while judged < len(self._told) and time.time() > self._told[judged].at + ORPHAN_S + ASK_S:
                append_verdict(self.results, self._verdict(self._told[judged]))
                judged += 1

    def _verdict(self, told: ChaosRun) -> dict[str, Any]:
        return verdict(told, self._lines(told.run))

    async def _once(self, number: int) -> None:
        (mode, victim), moment = PAIRS[number % len(PAIRS)], random.Random(number).choice(MOMENTS)
        run_id = f"chaos-{number}"
        await self._api.trigger_run(mode, run_id=run_id)
        ending = asyncio.create_task(self._end(mode, run_id))
        striking = asyncio.create_task(self._strike(victim, mode, run_id, moment))
        await asyncio.wait((ending, striking), return_when=asyncio.FIRST_COMPLETED)
        if not striking.done():
            striking.cancel()  # the run is over, and its victim never came
        (struck,) = await asyncio.gather(striking, return_exceptions=True)
        if isinstance(struck, Exception) and not isinstance(struck, (TimeoutError, ApiRefused)):
            raise struck  # a cluster without its master proves nothing
        hit = struck is True
        told = ChaosRun(number, run_id, mode, victim, moment, hit, await ending, time.time())
        self._told.append(told)
        print(json.dumps({"number": number, "mode": mode, "victim": victim, "moment": moment, "hit": hit, "state": told.state}))
        sys.stdout.flush()

    async def _end(self, mode: str, run_id: str) -> str:
        """The state in which a run ends; ``given up`` when it does not."""

        async def ended() -> str | None:
            state = str((await self._api.get_run(mode, run_id)).state)
            return state if state in ("success", "failed") else None

        try:
            return await _until(ended, ASK_S, RUN_WITHIN_S)
        except TimeoutError:
            return "given up"

    async def _strike(self, victim: str, mode: str, run_id: str, moment: str) -> bool:
        """Whether there was something to strike."""
        if mode == "connect":
            await self._says(run_id, "begun")
        else:
            await self._found(lambda: self._order(run_id))
        if moment != "ordered" or victim in ("python", "jvm", "executor"):
            await self._says(run_id, "done" if moment == "ending" else "running")
        if victim == "cancel":
            await self._api.cancel_run(mode, run_id)
            return True
        if victim == "master":
            async with self._master_turn:
                await asyncio.to_thread(self._kill_master)
            return True
        return _killed(await self._found(lambda: self._process(victim, run_id)))

    def _process(self, victim: str, run_id: str) -> psutil.Process | None:
        lines = self._lines(run_id)
        last: dict[str, Any] = lines[-1] if lines else {}
        match victim:
            case "python":
                return _born_before(last["client" if "client" in last else "pid"], last["at"])
            case "jvm":
                return _born_before(last["jvm"], last["at"])
            case "wrapper":
                return self._wrapper(run_id)
            case "executor":
                app = next((line["app"] for line in reversed(lines) if "app" in line), None)
                return _jvm_of(psutil.process_iter(), "CoarseGrainedExecutorBackend", app) if app else None
            case "connect":
                return _jvm_of(psutil.Process(self._system.process.pid).children(recursive=True), "SparkConnectServer")
            case _:
                return self._service(victim)

    def _service(self, kind: str) -> psutil.Process | None:
        """None while another one takes its place."""
        with suppress(psutil.Error, StopIteration):
            return self._system.service(kind)
        return None

    def _wrapper(self, run_id: str) -> psutil.Process | None:
        folder = self._order(run_id)
        if folder is None or not (folder / "claim.json").exists():
            return None
        return _born_before(int(json.loads((folder / "claim.json").read_text())["pid"]), time.time())

    def _order(self, run_id: str) -> Path | None:
        """The folder of the try of this run that has been ordered last and is not over."""
        found: list[tuple[float, Path]] = []
        for order in self._base.glob("*/*/order.json"):
            with suppress(FileNotFoundError):  # the try is over just now
                if run_id in json.loads(order.read_text())["application_arguments"]:
                    found.append((order.stat().st_mtime, order.parent))
        return max(found)[1] if found else None

    async def _says(self, run_id: str, what: str) -> None:
        await self._found(lambda: any(line["what"] == what for line in self._lines(run_id)))

    async def _found(self, look: Callable[[], T | None]) -> T:
        async def seen() -> T | None:
            return look()

        return await _until(seen, LOOK_S, RUN_WITHIN_S)

    def _lines(self, run_id: str) -> list[dict[str, Any]]:
        file = self._ledger / run_id
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def _until(look: Callable[[], Awaitable[T | None]], every_s: float, within_s: float) -> T:
    """What ``look`` finds as soon as it is true."""
    async with asyncio.timeout(within_s):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(every_s)


def _killed(process: psutil.Process | None) -> bool:
    with suppress(psutil.Error):
        if process is not None:
            process.kill()
            return True
    return False


def _born_before(pid: int, at: float) -> psutil.Process | None:
    """The process that had this pid then, and not one that has got it since."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.create_time() <= at:
            return process
    return None


def _jvm_of(processes: Iterable[psutil.Process], main: str, argument: str = "") -> psutil.Process | None:
    """One that runs this class and has ``argument`` among its own."""
    for process in processes:
        with suppress(psutil.Error):
            command = process.cmdline()
            if any(main in word for word in command) and (not argument or argument in command):
                return process
    return None
