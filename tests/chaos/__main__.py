"""``python -m tests.chaos``: many scenarios, one after the other. Prints one line for each, then the time to recover by kind.

Without a word about a time it runs them all; with ``--minutes`` it begins none later than that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.chaos.cluster import POINTS
from tests.chaos.faults import KINDS
from tests.chaos.scenario import Outcome, Plan, run
from tests.chaos.server import ChaosServer, chaos_server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many scenarios")
    parser.add_argument("--first", type=int, default=0, help="the first seed; a seed alone repeats its scenario with --seeds 1")
    parser.add_argument("--fault", choices=sorted(KINDS), help="only this one, in every scenario")
    parser.add_argument("--keep", action="store_true", help="the logs and ledgers of what went right, too")
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--out", type=Path, help="a file of JSON lines")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leaving nothing behind
    deadline = time.monotonic() + 60 * args.minutes
    outcomes: list[Outcome] = []
    with chaos_server() as chaos:
        for seed in range(args.first, args.first + args.seeds):
            if time.monotonic() > deadline:
                print(f"-- {args.minutes:g} minutes are over; the next seed is {seed}")
                break
            plan = Plan.of(seed)
            if args.fault:
                plan = Plan(seed, plan.sizes, (args.fault,))
            outcomes.append(_one(plan, chaos, keep=args.keep))
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(outcomes[-1].line()) + "\n")
    _summary(outcomes)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def _one(plan: Plan, chaos: ChaosServer, *, keep: bool) -> Outcome:
    home = Path(tempfile.mkdtemp(prefix=f"evenflow-chaos-{plan.seed}-"))
    home.chmod(0o755)
    outcome = run(plan, chaos, home)
    sizes = "+".join(str(size) for size in plan.sizes.values())
    verdict = "WRONG" if outcome.wrong else "right"
    print(f"seed {plan.seed:4} {sizes} {', '.join(plan.faults):50} {outcome.seconds:5.1f} s {verdict}")
    for fault in outcome.faults:
        print(f"     {fault['what']}: recovered in {fault['recovered_s']} s, silent for {fault['silence_s']} s")
    for wrong in outcome.wrong:
        print(f"     !! {wrong}")
    if outcome.wrong or keep:
        print(f"     its logs: {home}")
    else:
        shutil.rmtree(home)
    sys.stdout.flush()
    return outcome


def _summary(outcomes: list[Outcome]) -> None:
    times: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for fault in outcome.faults:
            times[fault["kind"]].append(fault["recovered_s"])
    print(f"\n{len(outcomes)} scenarios, {sum(bool(outcome.wrong) for outcome in outcomes)} wrong. Seconds to recover:")
    for kind, seconds in sorted(times.items()):
        print(json.dumps({"kind": kind, "n": len(seconds), "p50": round(statistics.median(seconds), 2), "max": max(seconds)}))
    missed = POINTS.difference(*(outcome.passed for outcome in outcomes))
    print(f"kill points never passed: {sorted(missed) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
