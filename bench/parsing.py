"""How fast DAG files are parsed: all of them at first, and one that changed, through real processes.

    python -m bench.parsing                              2,000 files of 20 tasks, then changes of single files
    python -m bench.parsing --files 1000 --airflow PATH  and the same DAGs with `airflow dags reserialize`, PATH being that program

A full parse is counted from the start of the processor's process until the database knows all files. A change is counted from
the write of the file until its new version is the DAG's newest. Airflow gets its own folder and an SQLite database that is
migrated before, and is counted from the start of its process to its end; the same for ours is `full_s`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from evenflow.runtime.embedded import EmbeddedPostgres

FULL_BAR_S = 60.0  # for 2,000 files of 20 tasks on 2 cores
CHANGE_BAR_S = 2.0
DEADLINE_S = 600.0

DAG_FILE = """\
from datetime import datetime

from {package} import DAG, {task_import}

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


def write_file(folder: Path, number: int, tasks: int, *, airflow: bool = False) -> None:
    text = DAG_FILE.format(
        package="airflow.sdk" if airflow else "evenflow", task_import="task", number=number, hour=number % 24, tasks=tasks
    )
    (folder / f"file_{number:05}.py").write_text(text)


def measure(files: int, tasks: int, changes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        folder = home / "dags"
        folder.mkdir()
        with _control_plane(home, folder) as (database, environment):
            for number in range(files):
                write_file(folder, number, tasks)
            begun = time.perf_counter()
            with _service("processor", environment):
                _until(database, "select count(*) from dag_file where parsed = fingerprint", lambda n: n == files)
                full_s = time.perf_counter() - begun
                changed = [_change(database, folder, number, tasks + 1) for number in range(changes)]
            errors = database.execute("select count(*) from dag_file where error is not null").fetchone()
            assert errors == (0,), "files with errors"
    return {
        "files": files,
        "tasks": tasks,
        "full_s": round(full_s, 2),
        "files_per_s": round(files / full_s, 1),
        "change_s": {"median": round(statistics.median(changed), 2), "most": round(max(changed), 2)} if changed else None,
    }


def measure_airflow(airflow: str, files: int, tasks: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="airflow-bench-") as directory:
        home = Path(directory)
        folder = home / "dags"
        folder.mkdir()
        for number in range(files):
            write_file(folder, number, tasks, airflow=True)
        environment = {
            **os.environ,
            "AIRFLOW_HOME": directory,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        subprocess.run([airflow, "db", "migrate"], env=environment, check=True, capture_output=True)
        begun = time.perf_counter()
        done = subprocess.run([airflow, "dags", "reserialize"], env=environment, check=False, capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        if done.returncode:
            raise SystemExit(f"airflow dags reserialize failed:\n{done.stderr[-2000:]}")
        with contextlib.closing(sqlite3.connect(home / "airflow.db")) as database:
            (stored,) = database.execute("select count(distinct dag_id) from serialized_dag").fetchone()
    return {"files": files, "tasks": tasks, "full_s": round(seconds, 2), "files_per_s": round(files / seconds, 1), "stored": stored}


def _change(database: psycopg.Connection[Any], folder: Path, number: int, tasks: int) -> float:
    begun = time.perf_counter()
    write_file(folder, number, tasks)
    query = f"select count(*) from dag join task using (version_key) where dag_id = 'dag_{number:05}'"
    _until(database, query, lambda n: n == tasks)
    return time.perf_counter() - begun


@contextlib.contextmanager
def _control_plane(home: Path, folder: Path) -> Iterator[tuple[psycopg.Connection[Any], dict[str, str]]]:
    """A database and an API; the environment is that of a processor."""
    server = EmbeddedPostgres(home)
    url = server.start()
    port = "18974"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}
    environment = {
        **clean,
        "EVENFLOW_HOME": str(home),
        "EVENFLOW_DAGS": str(folder),
        "EVENFLOW_API_PORT": port,
        "EVENFLOW_API_URL": f"http://127.0.0.1:{port}",
        "EVENFLOW_DATABASE_URL": url,
        "EVENFLOW_LOG_LEVEL": "warning",
    }
    try:
        subprocess.run([sys.executable, "-m", "evenflow", "db", "migrate"], env=environment, check=True, capture_output=True)
        command = [sys.executable, "-m", "evenflow", "tokens", "create", "processor", "--json"]
        made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        with psycopg.connect(url, autocommit=True) as database, _service("api", environment):
            environment["EVENFLOW_TOKEN"] = json.loads(made.stdout)["token"]
            yield database, environment
    finally:
        server.stop()


@contextlib.contextmanager
def _service(kind: str, environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "evenflow", kind], env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _until(database: psycopg.Connection[Any], query: str, enough: Callable[[int], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        row = database.execute(query).fetchone()  # type: ignore[arg-type]
        assert row is not None
        if enough(row[0]):
            return
        time.sleep(0.02)
    raise SystemExit(f"not after {DEADLINE_S:g} s: {query}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--changes", type=int, default=10, help="files to change, one after the other")
    parser.add_argument("--airflow", help="path of the airflow program to compare with")
    given = parser.parse_args()
    print(json.dumps({"evenflow": measure(given.files, given.tasks, given.changes), "cores": os.cpu_count()}), flush=True)
    if given.airflow:
        print(json.dumps({"airflow": measure_airflow(given.airflow, given.files, given.tasks)}), flush=True)


if __name__ == "__main__":
    main()
