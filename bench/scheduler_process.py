"""A scheduler as ``evenflow scheduler`` runs it: scheduler_process.py URL NAME.

It answers lines on its standard input as JSON. ``turns``: those since the last such line that did something: (milliseconds, starts,
lanes touched). ``contention``: what it has counted of that since its start. ``lost``: how many turns failed
or lost their database since then.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

from evenflow.core.metrics import CONTENDED_PICKS, DATABASE_FAILURES, ISOLATIONS, PICKS, REPORTS, ROUNDS, SAMPLES, TURNS
from evenflow.runtime.lifecycle import host
from evenflow.scheduler import service
from evenflow.scheduler.advance import TurnOutcome
from evenflow.scheduler.turn_metrics import TurnMetrics
from evenflow.store.db.sessions import STATES

Taken = tuple[float, int, int]

taken: list[Taken] = []
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the service prints is its log


class RecordingTally(TurnMetrics):
    """The scheduler's own, and each turn by itself."""

    def add(self, progress: TurnOutcome, took_s: float) -> None:
        super().add(progress, took_s)
        if progress.moves or progress.reports:
            taken.append((round(took_s * 1e3, 3), progress.starts, progress.started.lanes_touched))


def contention() -> dict[str, float]:
    meter = scheduler.health.meter
    counted = {"picks": meter.value(PICKS), "contended": meter.value(CONTENDED_PICKS)}
    counted |= {"turns": meter.value(TURNS), "rounds": meter.value(ROUNDS), "reports": meter.value(REPORTS)}
    return counted | {state: meter.value(SAMPLES, state) for state in STATES}


def answer() -> None:
    for line in sys.stdin:
        if line.strip() == "contention":
            print(json.dumps(contention()), file=answers, flush=True)
            continue
        if line.strip() == "lost":
            meter = scheduler.health.meter
            print(json.dumps(meter.value(ISOLATIONS) + meter.value(DATABASE_FAILURES, "turns")), file=answers, flush=True)
            continue
        said = len(taken)
        print(json.dumps(taken[:said]), file=answers, flush=True)
        del taken[:said]


vars(service)["TurnMetrics"] = RecordingTally
scheduler = service.SchedulerService(sys.argv[1], name=sys.argv[2])
threading.Thread(target=answer, daemon=True).start()
asyncio.run(host(scheduler, drain_timeout=5))
