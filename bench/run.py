"""Runs a shape and prints one JSON line a run: python bench/run.py SHAPE [-n RUNS] [--schedulers K] [--tag T] [--dsn URL].

a_sustain has options of its own: [--tasks N] [--snapshot]; catch_up has one: [--missed N];
clear_*, cancel_*, change_*, delete_dag and dump_midnight have one: [--size N];
report_storm and shapes whose server is an embedded one of this program: [--commit-ms MS];
sawtooth and autoscaler_steps have [--target native|celery|kubernetes] [--size N];
from_zero, scaling_decision, fleet_week, api_lists and api_fuzz [--size N]; ui_pages [--pages N];
turn_dags takes the number of DAGs as -n; b shapes have three: [--execution-free] [--reuse] [--executor celery|celery-threads];
b shapes, d_idle, d_busy and parsing: [--sdk airflow], the same as DAG files of Airflow; parsing [--size N];
d_full has one: [--busy-s S]; insights has two: [--events N] or [--day TRIES];
a, c and f shapes and curves have one: [--rtt-ms MS], the time of a round trip to PostgreSQL;
e has one: [--kill scheduler|worker|host|postgres|primary] or [--stop scheduler].
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import airflow_examples
import api_fuzz
import api_lists
import autoscaler_steps
import axe
import bulk
import catch_up
import curve
import dump_midnight
import execution_free
import failover
import fleet_week
import from_zero
import insights
import large_runs
import many_dags
import parsing
import pods
import real
import report_storm
import resumes
import roles
import sawtooth
import scaling_decision
import spark_chaos
import spark_start
import startup
import sustain
import turn_dags
import ui_grid
import ui_live
import ui_pages
import ui_size
from sdks import PACKAGES
from shapes import SHAPES
from slow_disk import slow_commits

FLEETS = (sawtooth.CASE, autoscaler_steps.CASE, from_zero.CASE, scaling_decision.CASE, fleet_week.CASE)
UI = (ui_size.CASE, ui_live.CASE, ui_grid.CASE, ui_pages.CASE, axe.CASE, roles.CASE, api_fuzz.CASE, api_lists.CASE)
WITH_DSN = (ui_pages.CASE, api_lists.CASE)  # of the UI
WITH_SDK = ("b_i", "b_ii", "d_idle", "d_busy", parsing.CASE)
RESULTS = Path(__file__).parent / "results"


def results_of(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    case = given.shape
    options = {"runs": given.runs, "schedulers": given.schedulers}
    if case == turn_dags.CASE:
        return turn_dags.run(dags=given.runs, dsn=given.dsn)
    if case in UI:
        return of_the_ui(case, given)
    if case == airflow_examples.CASE:
        return airflow_examples.run()
    if case == parsing.CASE:
        return parsing.run(files=given.size or parsing.FILES, sdk=given.sdk)
    if case == startup.CASE:
        return startup.run(runs=given.runs)
    if case in curve.CASES:
        return curve.run(case, runs=given.runs, rtt_ms=given.rtt_ms, dsn=given.dsn)
    if case == many_dags.CASE:
        return many_dags.run(dsn=given.dsn, **options)
    if case == dump_midnight.CASE:
        return dump_midnight.run(size=given.size, schedulers=given.schedulers, dsn=given.dsn)
    if case == spark_chaos.CASE:
        return spark_chaos.run(runs=given.runs, first=given.first, results=given.results)
    if case in spark_start.TASKS:
        return spark_start.run(case)
    if case == insights.CASE:
        return insights.run(events=given.events, day=given.day)
    if case == insights.PROOFS:
        return insights.run_proofs()
    if case == pods.CASE:
        return pods.run(runs=given.runs, dsn=given.dsn)
    if case == report_storm.CASE:
        return report_storm.run(runs=given.runs, dsn=given.dsn)
    if case in FLEETS:
        return of_fleets(case, given)
    if case in bulk.SIZES:
        return bulk.run(case, size=given.size, dsn=given.dsn, **options)
    if case in large_runs.SIZES:
        return large_runs.run(case, size=given.size, dsn=given.dsn, **options)
    shape = SHAPES[case]
    if case == "a_sustain":
        return sustain.run(shape, tasks=given.tasks, snapshot=given.snapshot, dsn=given.dsn, **options)
    if case == "catch_up":
        return catch_up.run(shape, missed=given.missed, dsn=given.dsn, **options)
    if case[0] in "acf" or given.execution_free:
        return execution_free.run(case, shape, rtt_ms=given.rtt_ms, dsn=given.dsn, **options)
    if given.dsn:
        raise SystemExit(f"{case} measures what `evenflow up` starts, its own server included: leave out --dsn.")
    if case == "e":
        return failover.run(shape, fault=_fault(given), runs=given.runs)
    if case[0] == "d":
        return resumes.run(shape, runs=given.runs, busy_s=given.busy_s, sdk=given.sdk)
    return real.run(case, shape, reuse=given.reuse, executor=given.executor, sdk=given.sdk, **options)


def of_the_ui(case: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The web UI, and the API that it asks."""
    match case:
        case ui_size.CASE:
            return ui_size.run()
        case ui_live.CASE:
            return ui_live.run()
        case ui_grid.CASE:
            return ui_grid.run(runs=given.runs)
        case axe.CASE:
            return axe.run()
        case roles.CASE:
            return roles.run()
        case api_fuzz.CASE:
            return api_fuzz.run(examples=given.size)
        case api_lists.CASE:
            return api_lists.run(size=given.size, dsn=given.dsn)
        case _:
            return ui_pages.run(pages=given.pages, runs=given.runs, schedulers=given.schedulers, dsn=given.dsn)


def of_fleets(case: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Their size is what a test makes smaller; the bars are for the size that they have without."""
    target = given.target or "native"
    match case:
        case sawtooth.CASE:
            return sawtooth.run(target=target, tasks=given.size or sawtooth.TASKS, dsn=given.dsn)
        case autoscaler_steps.CASE:
            return autoscaler_steps.run(target=target, every=given.size or 1, dsn=given.dsn)
        case scaling_decision.CASE:
            return scaling_decision.run(workers=given.size or scaling_decision.WORKERS, dsn=given.dsn)
        case from_zero.CASE:
            return from_zero.run(tasks=given.size or from_zero.TASKS, runs=given.runs)
        case _:
            return fleet_week.run(days=float(given.size or 7))


def _fault(given: argparse.Namespace) -> str | None:
    if given.kill:
        return f"kill-{given.kill}"
    return f"stop-{given.stop}" if given.stop else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*SHAPES, *bulk.SIZES, *large_runs.SIZES, *curve.CASES]
    names += [many_dags.CASE, pods.CASE, turn_dags.CASE, dump_midnight.CASE, report_storm.CASE, spark_chaos.CASE]
    names += [airflow_examples.CASE, parsing.CASE, startup.CASE, *spark_start.TASKS, *FLEETS, insights.CASE, insights.PROOFS, *UI]
    parser.add_argument("shape", choices=sorted(names), metavar="SHAPE", help="one of " + ", ".join(names))
    parser.add_argument("-n", "--runs", type=int, default=1)
    parser.add_argument("--schedulers", type=int, default=1)
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    parser.add_argument("--dsn", metavar="URL", help="use this server, whose databases evenflow_bench_* are made anew")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="a_sustain: how many in all")
    parser.add_argument(
        "--size",
        type=int,
        help="clear_*, cancel_*, change_*, delete_dag, dump_midnight: how many runs, tasks or instances; sawtooth, from_zero:"
        " tasks; scaling_decision: workers; autoscaler_steps: each so manieth step; fleet_week: days;"
        " parsing: files; api_lists: task instances; api_fuzz: requests of each kind to each operation",
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="spark_chaos: the number of the first run")
    parser.add_argument("--results", type=Path, metavar="FILE", help="spark_chaos: where the verdicts of several parts add up")
    parser.add_argument("--pages", type=int, default=200, help="ui_pages: how many are open")
    parser.add_argument("--target", choices=sawtooth.TARGETS, help="sawtooth, autoscaler_steps: what runs the workers")
    parser.add_argument("--snapshot", action="store_true", help="a_sustain: another session holds a snapshot open for 10 minutes")
    parser.add_argument("--missed", type=int, default=17_280, help="catch_up: how many runs; a day of every 5 s")
    parser.add_argument("--events", type=int, help="insights: how many events; 1,000,000 when absent")
    parser.add_argument("--day", type=int, help="insights: the tries of a day instead")
    parser.add_argument("--execution-free", action="store_true", help="b shapes: as a shapes, with a worker that executes nothing")
    parser.add_argument("--reuse", action="store_true", help="b shapes: tries follow each other in one process")
    parser.add_argument("--executor", default="native", help="b shapes: celery, with a Redis; a pool may follow, as celery-threads")
    parser.add_argument("--sdk", choices=PACKAGES, default="evenflow", help="b shapes, d_idle, d_busy, parsing: of the DAG files")
    parser.add_argument("--busy-s", type=float, metavar="S", help="d_full: how long every slot is busy, instead of 600 s")
    parser.add_argument("--commit-ms", type=float, default=0.0, metavar="MS", help="each flush to disk takes so much longer")
    parser.add_argument(
        "--rtt-ms", type=float, default=0.0, metavar="MS", help="a, c, f shapes, curves: a round trip to PostgreSQL takes so long"
    )
    kill = parser.add_mutually_exclusive_group()
    kills = [name.removeprefix("kill-") for name in failover.FAULTS if name.startswith("kill-")]
    kill.add_argument("--kill", choices=kills, help="e: SIGKILL in the middle, after a run without")
    kill.add_argument("--stop", choices=["scheduler"], help="e: SIGSTOP inside of a transaction, after a run without")
    given = parser.parse_args()
    if (given.kill or given.stop) and given.shape != "e":
        raise SystemExit(f"{given.shape} is not disturbed: --kill and --stop are for e.")
    if given.sdk != "evenflow" and (given.shape not in WITH_SDK or given.execution_free or given.reuse):
        raise SystemExit(f"--sdk is for {', '.join(WITH_SDK)}, without --execution-free and --reuse.")
    if given.target and given.shape not in (sawtooth.CASE, autoscaler_steps.CASE):
        raise SystemExit(f"{given.shape} has no fleet to choose: --target is for sawtooth and autoscaler_steps.")
    if given.dsn and given.shape in (from_zero.CASE, fleet_week.CASE, *(one for one in UI if one not in WITH_DSN)):
        raise SystemExit(f"{given.shape} needs no server of yours: leave out --dsn.")
    if given.busy_s is not None and given.shape != "d_full":
        raise SystemExit(f"{given.shape} does not fill its slots for long: --busy-s is for d_full.")
    if given.commit_ms and (given.dsn or (given.shape[0] in "bde" and not given.execution_free)):
        raise SystemExit(f"The server of {given.shape} is not this program's: leave out --commit-ms.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is stopped
    ok = True
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{given.shape}.jsonl", "a") as results, slow_commits(given.commit_ms):
        for result in results_of(given):
            case = given.shape + " execution free" * given.execution_free + " reuse" * given.reuse
            case += f" {given.executor}" * (given.executor != "native") + f" {given.sdk}" * (given.sdk != "evenflow")
            head = {"case": case, "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds")}
            distance = {"schedulers": given.schedulers, "rtt_ms": given.rtt_ms, "commit_ms": given.commit_ms}
            line = json.dumps({**head, **distance, **result})
            print(line, flush=True)
            print(line, file=results, flush=True)
            ok = ok and result["ok"]
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
