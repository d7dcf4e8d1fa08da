"""Runs a shape and prints one JSON line a run: python bench/run.py SHAPE [-n RUNS] [--schedulers K] [--tag T]."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import execution_free
import real
from shapes import SHAPES

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=sorted(SHAPES), metavar="SHAPE", help="one of " + ", ".join(SHAPES))
    parser.add_argument("-n", "--runs", type=int, default=1)
    parser.add_argument("--schedulers", type=int, default=1)
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    shape = SHAPES[given.shape]
    harness = execution_free if given.shape[0] in "acf" else real
    ok = True
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{given.shape}.jsonl", "a") as results:
        for result in harness.run(given.shape, shape, runs=given.runs, schedulers=given.schedulers):
            head = {"case": given.shape, "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds")}
            line = json.dumps({**head, "schedulers": given.schedulers, **result})
            print(line, flush=True)
            print(line, file=results, flush=True)
            ok = ok and result["ok"]
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
