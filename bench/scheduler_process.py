"""A scheduler as ``evenflow scheduler`` runs it: scheduler_process.py URL NAME.

For each line on its standard input it prints, as JSON, the turns since the last one that did something: (milliseconds, starts,
lanes touched).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

from evenflow.runtime.lifecycle import host
from evenflow.scheduler import service
from evenflow.scheduler.advance import Progress
from evenflow.scheduler.tally import Tally

Taken = tuple[float, int, int]

taken: list[Taken] = []
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the service prints is its log


class RecordingTally(Tally):
    """The scheduler's own, and each turn by itself."""

    def add(self, progress: Progress, took_s: float) -> None:
        super().add(progress, took_s)
        if progress.moves or progress.reports:
            taken.append((round(took_s * 1e3, 3), progress.starts, progress.started.lanes_touched))


def answer() -> None:
    for _ in sys.stdin:
        said = len(taken)
        print(json.dumps(taken[:said]), file=answers, flush=True)
        del taken[:said]


vars(service)["Tally"] = RecordingTally
threading.Thread(target=answer, daemon=True).start()
asyncio.run(host(service.SchedulerService(sys.argv[1], name=sys.argv[2]), drain_timeout=5))
