"""Mixed load and a fault every so often, for an hour: python bench/soak.py [--minutes M] [--every SECONDS] [--seed S] [--tag T].

Load, faults and verdict are those of the fault suite (``tests/chaos``), with its short leases, so that each fault is over before
the next, and with durability on. Every 30 s memory and files of services, and sizes of tables, are looked at. One service of each
kind is struck by nothing that strikes a single one: what grows with time shows there. At the end nothing may be lost, begun twice
at once or wrong in the books, and what should be flat must have been so over the last two thirds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import measure
import psutil

from evenflow.core.service import ServiceKind
from evenflow.store.serving.metrics import HOT_TABLES
from tests.chaos.cluster import Cluster, NotInTime
from tests.chaos.faults import KINDS, Strike
from tests.chaos.load import Load
from tests.chaos.scenario import finish
from tests.chaos.server import DURABLE, ChaosServer, chaos_server
from tests.chaos.verdict import UNFINISHED, judge
from tests.chaos.wires import Wires

RESULTS = Path(__file__).parent / "results" / "soak.jsonl"
SIZES = {ServiceKind.API: 2, ServiceKind.SCHEDULER: 2, ServiceKind.PROCESSOR: 2, ServiceKind.WORKER: 2, ServiceKind.TRIGGERER: 2}
LIVE_RUNS = 40  # some seconds of work for twelve slots, so that there is always some
LOOK_S = 30.0
STEP_S = 0.2

# Not those that add services, move a clock for the rest of the time, or strike what is to be spared.
LEFT_OUT = ("die-at", "stop-at", "drain", "come-and-go", "kill-in-turn", "clock", "hosts-clock", "apis-away")
FAULTS = [kind for kind in KINDS if not kind.startswith(LEFT_OUT)]

KEPT = frozenset({"dag_run", "task_instance", "upstream_counter"})  # hot, but they keep what has ended
FLAT_PCT = 10.0  # of its mean is what may be added over the last two thirds
# Or this, whichever is more: what little things swing by. A try has 3 files. A hot table is cleaned at 2,000 dead rows, those of
# deferral are a kilobyte each; and a server that crashes forgets how many there were.
FLAT_LEAST = {"mb": 8.0, "files": 24.0, "kb": 2_048.0}
LOOKS_TO_JUDGE = 10  # over the last two thirds: some 8 min in all; before, one swing is a slope
SIZES_OF_TABLES = """
select relname::text, pg_total_relation_size(relid) / 1024.0, n_dead_tup from pg_stat_user_tables
where schemaname = current_schema()
"""


@dataclass
class Watch:
    """What was seen, each series as (seconds since the start, value). Series are ``unit:what``."""

    cluster: Cluster
    began: float = field(default_factory=time.monotonic)
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    due: float = 0.0

    def look(self) -> None:
        """When it is time for that."""
        now = time.monotonic() - self.began
        if now < self.due:
            return
        self.due = now + LOOK_S
        for name, value in [*self._services(), *self._tables()]:
            self.series.setdefault(name, []).append((now, value))

    def _services(self) -> Iterator[tuple[str, float]]:
        """Of those that are spared: their own process, without tries, and without the logs that an API keeps open to append to."""
        logs = str(self.cluster.home / "logs")
        for member in self.cluster.members:
            if member.spared and member.runs():
                yield f"mb:{member.name}", psutil.Process(member.pid).memory_full_info().uss / 1e6
                yield f"files:{member.name}", sum(not name.startswith(logs) for name in _open_files(member.pid))

    def _tables(self) -> Iterator[tuple[str, float]]:
        sizes = self.cluster.until(lambda: self.cluster.all(SIZES_OF_TABLES), "the sizes of tables", within_s=60)
        for table, kb, dead in sizes:
            if table in HOT_TABLES and table not in KEPT:
                yield f"kb:{table}", float(kb)
                yield f"dead:{table}", float(dead)
        yield "history_kb:all other tables", float(sum(kb for table, kb, _ in sizes if table not in HOT_TABLES or table in KEPT))
        yield "runs:ended", float(self.cluster.one("select count(*) from dag_run where ended_at is not null"))


def _open_files(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed by now
            yield os.readlink(link)


def growth_of(series: dict[str, list[tuple[float, float]]]) -> dict[str, dict[str, Any]]:
    """By series: its mean and what its slope comes to, over the last two thirds. ``flat`` where it should be, of enough looks."""
    shown: dict[str, dict[str, Any]] = {}
    for name, points in series.items():
        late = [point for point in points if point[0] >= points[-1][0] / 3]
        if len(late) < 3:
            continue
        slope = statistics.linear_regression(*zip(*late, strict=True)).slope
        mean, added = statistics.fmean(value for _, value in late), slope * (late[-1][0] - late[0][0])
        shown[name] = {"mean": round(mean, 1), "added": round(added, 1)}
        least = FLAT_LEAST.get(name.partition(":")[0])
        if least is not None and len(late) >= LOOKS_TO_JUDGE:
            shown[name]["flat"] = added <= max(least, mean * FLAT_PCT / 100)
    return shown


class Faults:
    """Every kind once, in an order by chance, before any comes again."""

    def __init__(self, rng: random.Random, cluster: Cluster, load: Load, every_s: float) -> None:
        self._rng, self._cluster, self._load, self._every_s = rng, cluster, load, every_s
        self._left: list[str] = []
        self._due = time.monotonic() + every_s
        self.done = Counter[str]()
        self.frozen: set[int] = set()

    def strike(self) -> None:
        """When it is time for that; returns when what was done is mended."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every_s
        self._left = self._left or self._rng.sample(FAULTS, len(FAULTS))
        kind = self._left.pop()
        strike = Strike(kind, self._rng, self._cluster, self._load)
        KINDS[kind](strike)
        self.done[kind] += 1
        self.frozen |= strike.frozen


def soak(chaos: ChaosServer, home: Path, *, minutes: float, every_s: float, seed: int) -> dict[str, Any]:
    """``home`` keeps the logs and the ledger."""
    wrong: list[str] = []
    with Wires() as wires:
        cluster = Cluster(chaos, home, wires)
        try:
            cluster.start(SIZES)
            for kind in ServiceKind:
                cluster.of(kind)[0].spared = True
            load, watch = Load(cluster), Watch(cluster)
            faults = Faults(random.Random(seed), cluster, load, every_s)
            try:
                while time.monotonic() < watch.began + 60 * minutes:
                    cluster.wait(STEP_S)
                    if load.insist() and cluster.until(lambda: [cluster.one(UNFINISHED)], "the runs", within_s=60)[0] < LIVE_RUNS:
                        load.wave()
                    watch.look()
                    faults.strike()
                lasted = time.monotonic() - watch.began
                finish(cluster, load)
                wrong += judge(cluster, load, faults.frozen)
                wrong += cluster.end()
            except NotInTime as error:
                wrong.append("".join(traceback.format_exception(error)))
                lasted = time.monotonic() - watch.began
        finally:
            cluster.kill()
    growth = growth_of(watch.series)
    wrong += [f"not flat: {name}, {seen}" for name, seen in growth.items() if not seen.get("flat", True)]
    return {
        "ok": not wrong,
        "wrong": wrong,
        "load": measure.load(),
        "minutes": round(lasted / 60, 1),
        "runs": load.runs,
        "faults": dict(sorted(faults.done.items())),
        "growth": growth,
        "series": {name: [round(value, 1) for _, value in points] for name, points in watch.series.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=20.0, metavar="SECONDS", help="from one fault to the next")
    parser.add_argument("--seed", type=int, default=0, help="of the order of faults and whom they strike")
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is stopped
    home = Path(tempfile.mkdtemp(prefix="evenflow-soak-"))
    home.chmod(0o755)
    with chaos_server(settings=DURABLE) as chaos:
        found = soak(chaos, home, minutes=given.minutes, every_s=given.every, seed=given.seed)
    head = {"case": "soak", "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    line = json.dumps({**head, "seed": given.seed, "every_s": given.every, **found})
    print(line)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as results:
        print(line, file=results)
    if found["ok"]:
        shutil.rmtree(home)
        return 0
    print(f"Its logs: {home}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
