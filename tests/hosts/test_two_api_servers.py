"""Two API servers that share a database and a bucket: one is killed while tasks run and people read their logs."""

from __future__ import annotations

import asyncio
import signal
import uuid
from pathlib import Path

import psutil
import pytest

from evenflow.client.rest import RestClient
from tests.clouds import Cloud, cloud, shared_cloud
from tests.hosts.fleet import Fleet, Service
from tests.tokens import operator_token
from tests.waiting import until, wait_until

__all__ = ["cloud", "shared_cloud"]  # fixtures

TASKS, LINES = 4, 200
DAG = """
import itertools, os, threading
from evenflow import dag, task

@task(retries=0)
def tell(number: int) -> list[str]:
    # A line every 20 ms, until it is told to end; the result is too large for the database.
    for at in itertools.count():
        print(f"line {{at}} of {{number}}", flush=True)
        threading.Event().wait(0.02)
        if at >= {lines} and os.path.exists({go!r}):
            return [f"{{number}}-{{at}}" + "x" * 1000] * 500

@task(retries=0)
def join(parts) -> int:
    return sum(len(part) for part in parts)

@dag()
def talk():
    join([tell.override(task_id=f"tell_{{n}}")(n) for n in range({tasks})])

talk()
"""


def server_of(worker: Service, servers: dict[int, Service]) -> Service:
    """The one that the worker speaks to."""

    def spoken_to() -> Service | None:
        process = psutil.Process(worker.process.pid)
        everyone = [process, *process.children(recursive=True)]
        ports = {each.raddr.port for one in everyone for each in one.net_connections("inet") if each.raddr}
        return next((servers[port] for port in servers if port in ports), None)

    return wait_until(spoken_to, "the worker's connection")


@pytest.mark.system
async def test_a_server_that_is_killed_takes_no_line_no_result_and_no_reader_with_it(
    fleet: Fleet, cloud: Cloud, tmp_path: Path
) -> None:
    """R-EX3, R-HA1: it is the one that the worker speaks to. Worker and readers go on with the other one; each line is there once,
    in its order, no try is lost, and the results are read from the bucket.
    """
    go, place = tmp_path / "go", uuid.uuid4().hex
    (tmp_path / "dags" / "talk.py").write_text(DAG.format(lines=LINES, go=str(go), tasks=TASKS))
    results = f"s3://logs/{place}/results"
    servers: dict[int, Service] = {}
    urls = []
    for name in ("one", "two"):
        service = fleet.start("api", name, log_url=f"s3://logs/{place}/logs", xcom_url=results)
        servers[int(fleet.api_url.rpartition(":")[2])] = service
        urls.append(fleet.api_url)
    fleet.api_url = ",".join(urls)
    fleet.start_all(("scheduler", "s"), ("processor", "p"))
    worker = fleet.start("worker", "w", xcom_url=results)
    wait_until(lambda: fleet.db.execute("select 1 from dag where dag_id = 'talk'").fetchone(), "the DAG")
    async with RestClient(fleet.api_url, operator_token(fleet.db)) as rest:
        await rest.trigger_run("talk", run_id="r")
        tails = [asyncio.create_task(tail(fleet, f"tell_{number}")) for number in range(TASKS)]
        await until(lambda: running(fleet) == TASKS, "all tasks at work", within_s=120)
        await until(lambda: some_lines(fleet, cloud, place), "lines in the bucket", within_s=120)
        server_of(worker, servers).stop(signal.SIGKILL)
        await until(lambda: claims_go_on(fleet), "the worker's beat at the other server", within_s=120)
        go.touch()
        read = await asyncio.gather(*tails)
        await until(lambda: fleet.live_runs() == 0, "the end of the run", within_s=120)
        joined = await rest.get_xcom("talk", "r", "join", "return_value")
    ended = "select t.task_id, i.state::text, i.try_number, i.losses from task_instance i join dag_run r using (run_key)"
    ended += " join task t using (version_key, task_index) where r.dag_id = 'talk' order by 1"
    tasks = ["join", *(f"tell_{number}" for number in range(TASKS))]
    assert fleet.db.execute(ended).fetchall() == [(task, "success", 1, 0) for task in tasks]
    for number, text in enumerate(read):
        said = [line.partition("line ")[2] for line in text.splitlines() if f" of {number}" in line]
        assert said == [f"{at} of {number}" for at in range(len(said))]
        assert len(said) > LINES
    assert joined.value == 500 * TASKS
    assert sum(key.startswith(f"{place}/results/") for key in cloud.keys("logs")) == TASKS


def running(fleet: Fleet) -> int:
    (number,) = fleet.db.execute("select count(*) from task_instance where state = 'running'").fetchone()  # type: ignore[misc]
    return int(number)


def some_lines(fleet: Fleet, cloud: Cloud, place: str) -> bool:
    return sum(f"{place}/logs" in key for key in cloud.keys("logs")) >= TASKS


def claims_go_on(fleet: Fleet) -> bool:
    (went_on,) = fleet.db.execute(  # type: ignore[misc]
        "select bool_and(w.beat_at > a.beat_at + interval '4 s') from service w, service a where w.kind = 'worker' "
        " and a.kind = 'api' and a.beat_at = (select min(beat_at) from service where kind = 'api')"
    ).fetchone()
    return bool(went_on)


async def tail(fleet: Fleet, task_id: str) -> str:
    """All of a log, as somebody reads it who follows it."""
    text, offset = "", 0
    async with RestClient(fleet.api_url, operator_token(fleet.db, name=task_id), patience_s=60) as rest:  # moto may be slow
        while True:
            part = await rest.read_log("talk", "r", task_id, offset=offset, wait_s=5)
            text, offset = text + part.text, part.offset
            if part.complete:
                return text
