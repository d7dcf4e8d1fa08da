"""a_dags_10000: of 10,000 DAGs 2,000 run a chain of 10, beside as many tasks of 100 DAGs on a database of their own, by turns.

In each run it is the next 2,000 of the 10,000, so that in the first five (``cold``) the scheduler meets DAGs that it does not know,
and from then on none. ``ratio_to_100`` is by tasks per second, ``cpu_ratio_to_100`` by tasks per second of CPU, which a busy
machine blurs less. Of CPU and memory the figures are those of the 10,000, and below ``of_100`` those of the 100.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backlog import add_dags
from execution_free import Bench
from server import open_connection, serve
from shapes import Shape

CASE = "a_dags_10000"
DAGS = 10_000
AT_ONCE = 2_000
FEW = 100
ROUNDS = DAGS // AT_ONCE  # until each has run
GROUP = "chain10"
FIGURES = ("tasks_per_s", "cpu_s_per_task", "cpu_s", "buffers_per_start", "wal_bytes_per_task", "round_ms", "peak_pss_mb")


def run(*, runs: int, schedulers: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    with serve(dsn) as server:
        few = Bench(server, CASE, _chains(FEW, AT_ONCE // FEW), schedulers, database="few")
        try:
            many = Bench(server, CASE, _chains(1, AT_ONCE), schedulers)
            try:
                with open_connection(many.url, "bench") as conn:
                    add_dags(conn, f"{GROUP}_000", DAGS - 1, group=GROUP)
                for repeat in range(runs):
                    first = repeat % ROUNDS * AT_ONCE
                    many.runs = {f"{GROUP}_{n:03}": 1 for n in range(first, first + AT_ONCE)}
                    yield _beside(few.run(repeat), many.run(repeat), repeat < ROUNDS)
            finally:
                many.stop()
        finally:
            few.stop()


def _chains(dags: int, runs: int) -> Shape:
    return {"groups": [{"name": GROUP, "dags": dags, "graph": "chain", "n": 10, "body": "noop", "runs": runs}]}


def _beside(few: dict[str, Any], many: dict[str, Any], cold: bool) -> dict[str, Any]:
    known = few["cpu_s_per_task"] is not None  # of a server that runs elsewhere it is not
    return {
        "ok": few["ok"] and many["ok"],
        "cold": cold,
        "load": many["load"],
        "tasks": many["tasks"],
        "ratio_to_100": round(many["tasks_per_s"] / few["tasks_per_s"], 3),
        "cpu_ratio_to_100": round(few["cpu_s_per_task"] / many["cpu_s_per_task"], 3) if known else None,
        **{figure: many.get(figure) for figure in FIGURES},
        "of_100": {figure: few.get(figure) for figure in FIGURES},
    }
