"""dump_midnight: a large database is dumped while a thousand tasks a second run, and a day begins that has no partition of history.

PostgreSQL's clock is moved to shortly before midnight (UTC), and only the day that ends has its partition: schedulers come when the
dump has its locks, so none of the days ahead can be made before it is over. The work goes on until the new day has its partition.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import measure
import psycopg
from backlog import add_finished
from crew import Crew
from server import fresh_database, open_connection, preloaded, serve
from shapes import SHAPES
from stored_shape import store_shape, trigger

from evenflow.core.limits import PARTITION_RETRY_S
from evenflow.store.scheduling import partitions
from tests.chaos.clock import Clock, compile_clock

CASE = "dump_midnight"
SIZE = 10_000_000  # finished tasks
TASKS_PER_RUN = 10
RUNS_EVERY_S = (10, 0.1)  # a thousand tasks a second
BEFORE_S = 10  # midnight, from the first task on
TIMEOUT_S = 3_600

_DUMPING = (
    "select exists (select from pg_locks l join pg_stat_activity a using (pid) where a.application_name = 'pg_dump'"
    " and relation = 'task_event_default'::regclass)"
)
_BUSY = "select exists (select from dag_run where dag_id <> 'finished' and ended_at is null)"
# Between two moments at which a turn wrote what became of tasks, while tasks came all the time.
_GAP = (
    "select extract(epoch from max(gap)) from (select at - lag(at) over (order by at) as gap from task_event where run_key >= %s) g"
)


def run(*, size: int | None, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    if dsn is not None:
        raise SystemExit(f"{CASE} moves the clock of the server: leave out --dsn.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-")))
        folder.chmod(0o755)
        clock = stack.enter_context(_clock(folder))
        server = stack.enter_context(serve(None))
        url = fresh_database(server, "bench")
        dag_ids = list(asyncio.run(store_shape(url, SHAPES["a_sustain"])))
        conn = stack.enter_context(open_connection(url, "bench"))
        now = datetime.now(UTC)
        midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
        partitions.attach(conn, midnight - timedelta(days=2))
        add_finished(conn, size or SIZE)
        conn.execute("vacuum analyze")
        partitions.attach(conn, midnight - timedelta(days=1))
        clock.move(int((midnight - datetime.now(UTC)).total_seconds()) - BEFORE_S)
        dump = stack.enter_context(_dump(url, folder))
        _until(conn, _DUMPING)
        crew = Crew(server, url, schedulers, {}, ["counts", "1000000000"])
        stack.callback(crew.stop)
        crew.until_ready(conn)
        yield {"size": size or SIZE, **_measure(conn, crew, dag_ids, dump, midnight), "load": measure.load()}


def _measure(
    conn: psycopg.Connection[Any], crew: Crew, dag_ids: list[str], dump: subprocess.Popen[bytes], midnight: datetime
) -> dict[str, Any]:
    (first,) = conn.execute("select next_run_key()").fetchone() or (0,)
    over, failed = threading.Event(), list[BaseException]()
    feeder = threading.Thread(target=_feed, args=(conn.info.dsn, conn.info.password, dag_ids, over, failed))
    begin = time.monotonic()
    feeder.start()
    try:
        returncode = dump.wait(TIMEOUT_S)
        dump_s = time.monotonic() - begin
        strays = _number(conn, "select count(*) from task_event_default")
        midnight_passed = _number(conn, "select now() > %s", midnight)
        deadline = time.monotonic() + 3 * PARTITION_RETRY_S
        while partitions.read_days_ahead(conn) < 0 and time.monotonic() < deadline:
            time.sleep(1)
    finally:
        over.set()
        feeder.join()
    _until(conn, f"select not ({_BUSY[len('select ') :]})")
    total_s = time.monotonic() - begin
    states = dict(
        conn.execute("select state::text, count(*) from task_instance where run_key >= %s group by 1", [first]).fetchall()
    )
    tasks = sum(states.values())
    lost = sum(crew.turns_lost())
    ahead, left = partitions.read_days_ahead(conn), _number(conn, "select count(*) from task_event_default")
    passed = _number(conn, "select count(*) from dag_run where created_at >= %s", midnight)
    return {
        "ok": not failed
        and midnight_passed
        and returncode == 0
        and lost == 0
        and set(states) == {"success"}
        and ahead >= 0
        and left == 0
        and strays > 0,
        "turns_lost": lost,
        "longest_turn_gap_s": round(float(_number(conn, _GAP, first)), 3),
        "tasks_per_s": round(tasks / total_s),
        "tasks": tasks,
        "dump_s": round(dump_s, 1),
        "runs_after_midnight": passed,
        "strays": strays,  # events of the new day without a partition, when the dump was over
        "strays_left": left,
        "days_ahead": ahead,
    }


def _feed(dsn: str, password: str, dag_ids: list[str], over: threading.Event, failed: list[BaseException]) -> None:
    runs, every_s = RUNS_EVERY_S
    try:
        with open_connection(f"{dsn} password={password}" if password else dsn, "feeder") as conn:
            number, due = 0, time.monotonic()
            while not over.wait(max(0.0, due - time.monotonic())):
                chosen = [dag_ids[(number * runs + position) % len(dag_ids)] for position in range(runs)]
                trigger(conn, dict.fromkeys(chosen, 1), f"bench_{number}_")
                number, due = number + 1, due + every_s
    except BaseException as error:
        failed.append(error)


@contextmanager
def _clock(folder: Path) -> Iterator[Clock]:
    """What the embedded server runs has this clock."""
    library = compile_clock(folder)
    if library is None:
        raise SystemExit(f"{CASE} moves the clock of the server, for which it needs a C compiler.")
    clock = Clock(library, folder / "clock")
    with preloaded(clock.environment):
        yield clock


@contextmanager
def _dump(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "EVENFLOW_DATABASE_URL": url, "EVENFLOW_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "evenflow", "db", "dump", str(folder / "dump")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _until(conn: psycopg.Connection[Any], query: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while conn.execute(query.encode()).fetchone() != (True,):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{query} is not true after {TIMEOUT_S} s")
        time.sleep(0.05)


def _number(conn: psycopg.Connection[Any], query: str, *args: Any) -> Any:
    (number,) = conn.execute(query.encode(), args).fetchone() or (None,)
    return number
