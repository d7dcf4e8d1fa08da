"""startup: `evenflow up` on a database that exists, and `evenflow run` of a DAG of one task, as real processes.

``up_ready_s``: from the start of the command until it says that it is ready. ``run_first_line_s``: from the start of the other
one, with no Evenflow running, until the task's own line is there. Each repeat is both; the first start makes the database.
``up_cpu_s``: CPU that the processes of the first command have taken by then, its services among them, PostgreSQL not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure

CASE = "startup"
TIMEOUT_S = 120
HELLO = "hello from the task"
DAG = f"""
from evenflow import dag, task


@dag
def hello():
    @task
    def say():
        print("{HELLO}")

    say()


hello()
"""


def run(*, runs: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        (home / "dags").mkdir()
        (home / "dags" / "hello.py").write_text(DAG)
        up = ["up", "--port", "0", "--dags", str(home / "dags")]
        first_s, _ = _until(home, up, "is ready in")
        for _ in range(runs):
            load = measure.load()
            up_s, up_cpu_s = _until(home, up, "is ready in")
            run_s, _ = _until(home, ["run", str(home / "dags" / "hello.py")], HELLO)
            yield {
                "ok": True,
                "load": load,
                "first_up_s": round(first_s, 2),
                "up_ready_s": round(up_s, 2),
                "up_cpu_s": round(up_cpu_s, 2),
                "run_first_line_s": round(run_s, 2),
            }


def _until(home: Path, arguments: list[str], said: str) -> tuple[float, float]:
    """Seconds until the command says so, and of CPU. It is told to end then. Raises :class:`RuntimeError` when it never does."""
    environment = {**os.environ, "EVENFLOW_HOME": str(home / "home")}
    command = [str(Path(sys.executable).parent / "evenflow"), *arguments]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        assert process.stdout is not None
        heard: list[str] = []
        for line in process.stdout:
            heard.append(line)
            if said in line:
                took_s = time.monotonic() - began
                took_cpu_s = measure.cpu_s(measure.tree(process.pid))
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=TIMEOUT_S)
                return took_s, took_cpu_s
    raise RuntimeError(f"evenflow {' '.join(arguments)} has never said {said!r}: {''.join(heard)[-2000:]}")
