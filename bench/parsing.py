"""How fast DAG files are parsed: all of them at first, and one that changed, through real processes.

    bench/run.py parsing [--sdk airflow]            1,000 files of 20 tasks, then changes of single files
    bench/parsing.py --files 1000 --airflow PATH    and the same DAGs with `airflow dags reserialize`, PATH being that program

A full parse is counted from the start of the processor's process until the database knows all files. A change is counted from
the write of the file until its new version is the DAG's newest. Airflow gets its own folder and an SQLite database that is
migrated before, and is counted from the start of its process to its end; the same for ours is `total_s`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure
import psutil
import psycopg
from sdks import PACKAGES, environ_of
from server import Server, fresh_database, open_connection, serve
from services import environment, service, token, until, until_listening

RESULTS = Path(__file__).parent / "results"
CASE = "parsing"
FILES, TASKS, CHANGES = 1000, 20, 10

DAG_FILE = """\
from datetime import datetime

from {package} import DAG, task

with DAG("dag_{number:05}", start_date=datetime(2026, 1, 1), schedule="0 {hour} * * *", catchup=False, tags=["bench"]):

    @task(retries=2)
    def work(part: int) -> int:
        return part

    previous = None
    for part in range({tasks}):
        current = work.override(task_id=f"work_{{part}}")(part)
        if previous is not None and part % 4:
            previous >> current
        previous = current
"""


def run(*, files: int, sdk: str) -> Iterator[dict[str, Any]]:
    yield {"files": files, "tasks": TASKS, "load": measure.load(), **measure_evenflow(files, TASKS, CHANGES, sdk=sdk)}


def write_file(folder: Path, number: int, tasks: int, *, sdk: str) -> None:
    text = DAG_FILE.format(package=PACKAGES[sdk], number=number, hour=number % 24, tasks=tasks)
    (folder / f"file_{number:05}.py").write_text(text)


def measure_evenflow(files: int, tasks: int, changes: int, *, sdk: str) -> dict[str, Any]:
    with serve(None) as server, tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        folder = Path(directory) / "dags"
        folder.mkdir()
        for number in range(files):
            write_file(folder, number, tasks, sdk=sdk)
        url = fresh_database(server, "bench_parsing")
        settings = environment(Path(directory), folder, url) | environ_of(sdk)
        with service("api", settings) as api, open_connection(url, "bench") as database:
            until_listening(int(settings["EVENFLOW_API_PORT"]))
            settings["EVENFLOW_TOKEN"] = token("processor", settings)
            before, begun = _cpu(server, api), time.perf_counter()
            with service("processor", settings) as processor:
                until(database, "select count(*) from dag_file where parsed = fingerprint", lambda n: n == files)
                total_s = time.perf_counter() - begun
                spent = _cpu(server, api, processor)
                changed = [_change(database, folder, number, tasks + 1, sdk) for number in range(changes)]
            (errors,) = database.execute("select count(*) from dag_file where error is not null").fetchone() or (None,)
    cpu = {name: round(seconds - before.get(name, 0.0), 2) for name, seconds in spent.items()}
    return {
        "total_s": round(total_s, 2),
        "files_per_s": round(files / total_s, 1),
        "cpu_s": cpu,
        "cpu_ms_per_file": round(1000 * sum(cpu.values()) / files, 1),
        "change_s": {"median": round(statistics.median(changed), 2), "max": round(max(changed), 2)} if changed else None,
        "ok": errors == 0,
    }


def measure_airflow(airflow: str, files: int, tasks: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="airflow-bench-") as directory:
        home = Path(directory)
        folder = home / "dags"
        folder.mkdir()
        for number in range(files):
            write_file(folder, number, tasks, sdk="airflow")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
            "AIRFLOW_HOME": directory,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        _airflow([airflow, "db", "migrate"], environment)
        before, begun = _children_cpu(), time.perf_counter()
        _airflow([airflow, "dags", "reserialize"], environment)
        seconds, cpu = time.perf_counter() - begun, _children_cpu() - before
        with contextlib.closing(sqlite3.connect(home / "airflow.db")) as database:
            (stored,) = database.execute("select count(distinct dag_id) from serialized_dag").fetchone()
    return {
        "total_s": round(seconds, 2),
        "files_per_s": round(files / seconds, 1),
        "cpu_s": {"airflow": round(cpu, 2)},
        "cpu_ms_per_file": round(1000 * cpu / files, 1),
        "ok": stored == files,
    }


def _airflow(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _change(database: psycopg.Connection[Any], folder: Path, number: int, tasks: int, sdk: str) -> float:
    begun = time.perf_counter()
    write_file(folder, number, tasks, sdk=sdk)
    query = f"select count(*) from dag join task using (version_key) where dag_id = 'dag_{number:05}'"
    until(database, query, lambda n: n == tasks)
    return time.perf_counter() - begun


def _cpu(server: Server, api: subprocess.Popen[bytes], processor: subprocess.Popen[bytes] | None = None) -> dict[str, float]:
    """Seconds since each began; ``loading`` is the template and the processes that load files."""
    cpu = {"postgres": measure.cpu_s(server.processes()), "api": measure.cpu_s(measure.tree(api.pid))}
    if processor is not None:
        times = psutil.Process(processor.pid).cpu_times()
        cpu |= {"processor": times.user + times.system, "loading": measure.cpu_s(measure.tree(processor.pid)[1:])}
    return cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--changes", type=int, default=CHANGES, help="files to change, one after the other")
    parser.add_argument("--airflow", metavar="PATH", help="the airflow program to compare with")
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is stopped
    ok = True
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "parsing.jsonl", "a") as results:
        for case in (CASE, *(["parsing_airflow"] if given.airflow else [])):
            head = {"case": case, "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds"), "load": measure.load()}
            if case == CASE:
                figures = measure_evenflow(given.files, given.tasks, given.changes, sdk="evenflow")
            else:
                figures = measure_airflow(given.airflow, given.files, given.tasks)
            line = json.dumps({**head, "files": given.files, "tasks": given.tasks, **figures})
            print(line, flush=True)
            print(line, file=results, flush=True)
            ok = ok and figures["ok"]
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
