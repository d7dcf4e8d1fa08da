"""ui_pages: what 200 open pages of the web UI cost the scheduling of a_i, by turns with and without them on one database.

``throughput_ratio`` is the median of tasks/s with the pages, as a share of that right before without. The API is a real process.
The pages are clients of HTTP in one process on the same machine (page_readers.py): their CPU is taken from the schedulers, too, and
``cpu_s`` tells it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import measure
from crew import HERE
from execution_free import Bench
from server import serve
from services import environment, service, token, until_listening
from shapes import SHAPES

CASE = "ui_pages"
RATIO = 0.95
RUNS = 30  # of each DAG at once: 30,000 tasks, a page asks several times meanwhile
TURNS = 3  # of each kind, the cold one apart
READY_S = 60
BAD = ("refused streams", "lost streams", "failed pages")


def run(*, pages: int, runs: int, schedulers: int, dsn: str | None, of_each: int = RUNS) -> Iterator[dict[str, Any]]:
    """``runs``: how often that is done. A smaller ``of_each`` is for tests."""
    (group,) = SHAPES["a_i"]["groups"]
    shape = {"groups": [{**group, "runs": of_each}]}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-")))
        bench = Bench(stack.enter_context(serve(dsn)), "a_i", shape, schedulers)
        stack.callback(bench.stop)
        settings = environment(home, home / "dags", bench.url)
        bearer = token("operator", settings)
        api = stack.enter_context(service("api", settings))
        until_listening(int(settings["EVENFLOW_API_PORT"]))
        readers = [settings["EVENFLOW_API_URL"], bearer, str(pages), ",".join(bench.runs)]
        ran = [bench.run(0)]
        for _ in range(runs):
            yield _by_turns(bench, api, readers, ran)


def _by_turns(bench: Bench, api: subprocess.Popen[bytes], readers: list[str], ran: list[dict[str, Any]]) -> dict[str, Any]:
    ratios, rates, said = [], [], []
    for _ in range(TURNS):
        without = bench.run(len(ran))
        before = measure.cpu_s(measure.tree(api.pid))
        with _open_pages(readers) as told:
            amid = bench.run(len(ran) + 1)
        told["cpu_s"]["api"] = round(measure.cpu_s(measure.tree(api.pid)) - before, 2)
        ran += [without, amid]
        ratios.append(round(amid["tasks_per_s"] / without["tasks_per_s"], 3))
        rates.append([without["tasks_per_s"], amid["tasks_per_s"]])
        said.append({**told, "total_s": amid["total_s"]})
    ratio = statistics.median(ratios)
    unharmed = all(one["ok"] for one in ran) and not any(one["counted"].get(bad) for one in said for bad in BAD)
    ok = unharmed and ratio >= RATIO
    return {"ok": ok, "load": measure.load(), "throughput_ratio": ratio, "ratios": ratios, "tasks_per_s": rates, "pages": said}


@contextmanager
def _open_pages(readers: list[str]) -> Iterator[dict[str, Any]]:
    """What is yielded is filled in at the end."""
    told: dict[str, Any] = {}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "page_readers.py"), *readers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    timer = threading.Timer(READY_S, process.kill)
    timer.start()
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"The pages were not open after {READY_S} s.")
        timer.cancel()
        yield told
        told["cpu_s"] = {"pages": round(measure.cpu_s(measure.tree(process.pid)), 2)}
        answer, _ = process.communicate(timeout=READY_S)
        told["counted"] = json.loads(answer)
    finally:
        timer.cancel()
        process.kill()
        process.wait()
