"""curve_i, curve_wide: what one, two and three schedulers do, by turns on one server, each crew on a database of its own.

``tasks_per_s`` are those of a warm run, by schedulers; ``of_one`` is what they do of what one did right before. The first is the
shape of a_i, 100 chains: a turn applies whatever has something to say. The second is that of a_wide, of whose 1,000 chains one
turn takes a fifth: there it shows whether schedulers add up. It has four workers, each of which waits for its own answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from execution_free import Bench
from server import serve
from shapes import SHAPES

SCHEDULERS = (1, 2, 3)
CASES = {"curve_i": ("a_i", 1), "curve_wide": ("a_wide", 4)}  # shape, workers
FIGURES = ("tasks_per_s", "created_s", "lag_s", "round_ms", "cpu_s", "commits_per_task", "contention")


def run(case: str, *, runs: int, rtt_ms: float, dsn: str | None) -> Iterator[dict[str, Any]]:
    shape, workers = CASES[case]
    with serve(dsn) as server:
        for _ in range(runs):
            results: dict[int, dict[str, Any]] = {}
            for schedulers in SCHEDULERS:
                bench = Bench(server, shape, SHAPES[shape], schedulers, rtt_ms, f"of_{schedulers}", workers)
                try:
                    results[schedulers] = [bench.run(repeat) for repeat in range(2)][-1]
                finally:
                    bench.stop()
            one = results[1]["tasks_per_s"]
            yield {
                "ok": all(result["ok"] for result in results.values()),
                "load": results[1]["load"],
                "of_one": {n: round(result["tasks_per_s"] / one, 2) for n, result in results.items()},
                **{figure: {n: result.get(figure) for n, result in results.items()} for figure in FIGURES},
            }
