"""From no worker at all to a burst that is done: ``evenflow up --autoscale 0..8``, and 1,000 no-op tasks at once (R-AS7)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import specs
from real import Evenflow, run_shape, times_of, until
from shapes import Shape

from evenflow.client.rest import RestClient

CASE = "from_zero"
TASKS, MOST = 1_000, 8
BAR_S = 15.0


async def _from_zero(evenflow: Evenflow, shape: Shape) -> dict[str, Any]:
    """The result of one burst; there is no worker before it."""
    async with RestClient(evenflow.api_url, evenflow.token) as api:

        async def empty() -> bool:
            [fleet] = (await api.list_fleets()).items
            return fleet.replicas == 0 and fleet.seen_at is not None and not await workers()

        async def workers() -> list[str]:
            [fleet] = (await api.list_fleets()).items
            return [worker.name for worker in (await api.get_fleet(fleet.name)).workers if worker.is_ready]

        await until(empty)
        result = await run_shape(evenflow, shape, 0)
        return {**result, "workers": len(await workers())}


def run(*, tasks: int = TASKS, runs: int = 1, most: int = MOST) -> Iterator[dict[str, Any]]:
    shape: Shape = {"groups": [{"name": "burst", "dags": 1, "graph": "parallel", "n": tasks, "body": "noop"}]}
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
            home = Path(directory)
            home.chmod(0o755)
            dag_file = specs.dag_file(shape, specs.writes_times(str(times_of(home))))
            evenflow = Evenflow(home, dag_file, options=("--autoscale", f"0..{most}"))
            try:
                result = asyncio.run(_from_zero(evenflow, shape))
            finally:
                evenflow.stop()
        yield {**result, "ok": result["ok"] and result["total_s"] <= BAR_S}
