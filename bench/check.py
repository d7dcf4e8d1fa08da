"""The gate: python bench/check.py [CASE ...] [--counted] [--write]. Says which figure moved against baseline.json, and fails
when one got worse.

A machine that is twice as slow today must not look like a regression. So times are told in lives of the reference (floor.py),
measured beside the case: a task that takes 0.8 lives takes that on any machine, about. What is counted (bytes, blocks, commits)
stands as it is, and may move least.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from floor import BATCHES, Reference
from server import serve

BASELINE = Path(__file__).parent / "baseline.json"
RUNNER = Path(__file__).parent / "run.py"

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a case's result lines. ``unit``: ``rate`` and ``time`` are told in lives of the reference, ``count`` as it is,
    ``points`` as what it is above the same of ``c_none``. It may get worse by ``allowed`` of the baseline, of points by so many.
    """

    path: str
    unit: Literal["rate", "time", "count", "points"]
    allowed: float

    @property
    def more_is_better(self) -> bool:
        return self.unit == "rate"

    def of(self, line: Mapping[str, Any]) -> float | None:
        value: Any = line
        for key in self.path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value if value is None else float(value)


_THROUGHPUT = (
    Figure("tasks_per_s", "rate", 0.15),
    Figure("cpu_s_per_task", "time", 0.15),
    Figure("wal_bytes_per_task", "count", 0.05),
    Figure("commits_per_task", "count", 0.2),
    Figure("buffers_per_start", "count", 0.1),
)
_BLOCKED = (Figure("wide_slots_idle_pct", "points", 1.0), Figure("lanes_touched_per_start", "count", 0.1))
_REAL = (Figure("cpu_s_per_task", "time", 0.15), Figure("peak_pss_total_mb", "count", 0.1))

COUNTED = frozenset({"wal_bytes_per_task", "buffers_per_start", "lanes_touched_per_start"})  # the same however busy the machine is
BASE_OF_POINTS = "c_none"
RUNS = {"a": 6, "b": 4, "c": 3, "d": 3}  # by the first letter; of a and b the first is cold and does not count
CASES: dict[str, tuple[Figure, ...]] = {
    "a_i": _THROUGHPUT,
    "a_ii": _THROUGHPUT,
    "a_iii": _THROUGHPUT,
    "a_iv": _THROUGHPUT,
    BASE_OF_POINTS: (),
    "c_pool_1000": _BLOCKED,
    "c_lanes_1000": _BLOCKED,
    "b_i": (*_REAL, Figure("lag_s.median", "time", 0.2)),
    "b_ii": (*_REAL, Figure("tasks_per_s", "rate", 0.2)),
    "d_idle": (Figure("fire_to_resume_s.median", "time", 0.25),),
}


class Moved(NamedTuple):
    case: str
    figure: str
    before: float
    now: float
    worse: bool
    better: bool


def counted(wanted: Iterable[Figure]) -> tuple[Figure, ...]:
    """Those of them that a busy machine does not change."""
    return tuple(figure for figure in wanted if figure.path in COUNTED)


def figures_of(wanted: Sequence[Figure], lines: Sequence[Mapping[str, Any]], life_s: float, base: Mapping[str, float]) -> Figures:
    """Medians of the warm lines, or of all when each begins cold. ``base`` has what points are counted from."""
    warm = [line for line in lines if not line.get("cold")] or lines
    found: Figures = {}
    for figure in wanted:
        values = [value for line in warm if (value := figure.of(line)) is not None]
        if not values:
            continue
        value = statistics.median(values)
        match figure.unit:
            case "rate":
                value *= life_s
            case "time":
                value /= life_s
            case "points":
                value -= base[figure.path]
        found[figure.path] = round(value, 4)
    return found


def compare(case: str, wanted: Iterable[Figure], before: Mapping[str, float], now: Mapping[str, float]) -> list[Moved]:
    """How each figure stands that both have."""
    rows: list[Moved] = []
    for figure in wanted:
        if figure.path not in before or figure.path not in now:
            continue
        was, value = before[figure.path], now[figure.path]
        bound = figure.allowed if figure.unit == "points" else figure.allowed * abs(was)
        loss = was - value if figure.more_is_better else value - was
        rows.append(Moved(case, figure.path, was, value, loss > bound, -loss > bound))
    return rows


def _run(case: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(RUNNER), case, "-n", str(RUNS[case[0]]), "--tag", "check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case} failed. Type: {' '.join(command)}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _measure(case: str) -> tuple[list[dict[str, Any]], float]:
    """The lines of a case, and what a life of the reference takes in seconds: as the lines say, or measured before and after."""
    before = None if case[0] == "a" else _rate()
    lines = _run(case)
    rates = [line["reference_tasks_per_s"] for line in lines] if before is None else [before, _rate()]
    return lines, 1 / statistics.median(rates)


def _rate() -> float:
    with serve(None) as server, Reference(server) as reference:
        return reference.measure(BATCHES[0]).tasks_per_s


def _idle(lines: Sequence[Mapping[str, Any]]) -> Figures:
    path = _BLOCKED[0].path
    return {path: statistics.median(line[path] for line in lines)}


def _show(rows: Iterable[Moved]) -> None:
    print(f"{'case':<14} {'figure':<26} {'baseline':>10} {'now':>10} {'change':>8}")
    for row in rows:
        change = f"{100 * (row.now / row.before - 1):+.0f} %" if row.before else ""
        verdict = "  WORSE" if row.worse else "  better: keep it with --write" if row.better else ""
        print(f"{row.case:<14} {row.figure:<26} {row.before:>10.4g} {row.now:>10.4g} {change:>8}{verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="some of " + ", ".join(CASES))
    parser.add_argument("--counted", action="store_true", help="only bytes, blocks and lanes, which a busy machine does not change")
    parser.add_argument("--write", action="store_true", help="keep what was measured as the new baseline")
    given = parser.parse_args()
    if unknown := set(given.cases) - set(CASES):
        raise SystemExit(f"There is no {', '.join(sorted(unknown))} in the gate. Choose from {', '.join(CASES)}.")
    wanted = {case: counted(figures) for case, figures in CASES.items()} if given.counted else CASES
    cases = [case for case in CASES if (case in given.cases if given.cases else wanted[case] or not given.counted)]
    if any(figure.unit == "points" for case in cases for figure in wanted[case]) and BASE_OF_POINTS not in cases:
        cases.insert(0, BASE_OF_POINTS)
    baseline: dict[str, Figures] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    if (unmeasured := [case for case in cases if wanted[case] and case not in baseline]) and not given.write:
        raise SystemExit(f"The baseline has no {unmeasured[0]}. Type: make bench-check ARGS='{' '.join(unmeasured)} --write'")
    base: Figures = {}
    rows: list[Moved] = []
    for case in cases:
        lines, life_s = _measure(case)
        if case == BASE_OF_POINTS:
            base = _idle(lines)
        found = figures_of(wanted[case], lines, life_s, base)
        rows += compare(case, wanted[case], baseline.get(case, {}), found)
        if given.write and found:
            baseline[case] = baseline.get(case, {}) | found
            BASELINE.write_text(json.dumps(baseline, indent=2) + "\n")
    _show(rows)
    return 1 if any(row.worse for row in rows) and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
