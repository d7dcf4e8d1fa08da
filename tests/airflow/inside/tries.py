"""Prints endings and logs of tries of Airflow's tasks, forked from a warm process as those of a worker's template are."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evenflow.airflow.installed import configure

configure()
from airflow.providers.standard.operators.bash import BashOperator  # noqa: E402
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor  # noqa: E402
from airflow.sdk import DAG, BaseHook, Variable, get_current_context, task  # noqa: E402
from airflow.sdk.exceptions import AirflowSkipException  # noqa: E402

from evenflow.airflow.running import task_process  # noqa: E402

task_process.ahead()
from evenflow.airflow.running.supervision import supervise  # noqa: E402
from evenflow.contracts.airflow.of_try import AirflowTry  # noqa: E402
from evenflow.sdk.trying.runner import TryContext  # noqa: E402

os.environ["EVENFLOW_VAR_GREETING"] = "hello"
FOLDER = Path(tempfile.mkdtemp())

with DAG("d") as dag:

    @task
    def returns() -> int:
        print("printed")
        logging.getLogger("mine").info("logged %s", 1)
        return len(Variable.get("greeting"))

    @task(retries=1)
    def raises() -> None:
        raise ValueError("broken")

    def cannot_tell(context: Any) -> None:
        raise RuntimeError("no mail")

    @task(on_failure_callback=cannot_tell)
    def unheard() -> None:
        raise ValueError("broken")

    @task
    def lacks() -> None:
        BaseHook.get_connection("warehouse")

    @task
    def dateless() -> str:
        return str(get_current_context()["ds"])

    @task
    def skips() -> None:
        raise AirflowSkipException("not today")

    @task
    def exits() -> None:
        sys.exit(3)

    @task
    def vanishes() -> None:
        os._exit(7)

    @task
    def closes() -> None:
        sys.stdout.close()
        os.close(1)
        os.close(2)

    @task
    async def awaits() -> str:
        import asyncio

        return "-".join(await asyncio.gather(*(asyncio.to_thread(Variable.get, "greeting") for _ in range(3))))

    @task.external_python(python=sys.executable, expect_airflow=True)
    def outside() -> str:
        from airflow.sdk import Variable

        return str(Variable.get("greeting")) + " from outside"

    for each in (returns, raises, unheard, lacks, dateless, skips, exits, vanishes, closes, awaits):
        each()
    TimeDeltaSensor(task_id="defers", delta=timedelta(days=1), deferrable=True)
    BashOperator(task_id="bash", bash_command="echo begins; sleep 600")

    @task
    def sleeps() -> None:
        print("begins", flush=True)
        time.sleep(600)

    sleeps()
    BashOperator.partial(task_id="mapped").expand(bash_command=["exit 0", "exit 1"])
    outside()


class Nowhere:
    """A channel and a link that lead nowhere."""

    said: list[str] = []  # noqa: RUF012

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {}

    def xcom_pull(self, *what: Any) -> tuple[bool, Any]:
        return False, None

    def xcom_push(self, key: str, value: Any) -> None:
        """Does nothing."""

    def send(self, header: dict[str, Any]) -> None:
        os.write(1, b"said " + header["say"].encode() + b"\n")

    def when_free(self, action: Any) -> None:
        action()


def tried(task_id: str, interrupt: bool) -> dict[str, Any]:
    log, end = FOLDER / f"{task_id}.log", FOLDER / f"{task_id}.json"
    now = datetime.now(UTC)
    context = TryContext(
        dag_id="d",
        run_id="r",
        task_id=task_id,
        run_after=now,
        logical_date=None if task_id == "dateless" else now,
        map_index=0 if task_id == "mapped" else -1,
        data_interval_start=now,
        data_interval_end=now,
    )
    pid = os.fork()
    if pid == 0:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        index_of = {each: index for index, each in enumerate(dag.task_dict)}
        of_try = AirflowTry(context, Nowhere(), index_of)
        api = supervise(of_try, {"d": dag}, FOLDER, "d.py", lambda each: task_process._arm(Nowhere(), each))
        end.write_text(json.dumps(api.tasks.ending and asdict(api.tasks.ending), default=str))
        os._exit(0)
    if interrupt:
        while not log.exists() or "begins" not in log.read_text():
            time.sleep(0.02)
        os.kill(pid, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"status": status, "ending": json.loads(end.read_text()) if end.exists() else None, "log": log.read_text()}


for task_id in dag.task_dict:
    print(json.dumps({"task_id": task_id, **tried(task_id, task_id in ("bash", "sleeps"))}), flush=True)
