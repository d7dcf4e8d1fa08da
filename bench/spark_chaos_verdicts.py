"""What became of the runs of spark_chaos: judged by their ledgers, and kept in a file, in which parts of a long series meet."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ORPHAN_S = 30.0

LedgerLines = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """One that is over at ``at``, or given up then. ``hit`` says whether there was something to strike."""

    number: int
    run: str
    mode: str
    victim: str
    moment: str
    hit: bool
    state: str
    at: float


def verdict(told: ChaosRun, lines: LedgerLines) -> dict[str, Any]:
    """Of a run, by the lines of its ledger up to :data:`ORPHAN_S` after its end, or later."""
    done = any(line["what"] == "done" for line in lines)
    return {
        **asdict(told),
        "drivers": len({line["key"] for line in lines}),
        "at_once": most_at_once(lines),
        "false_success": told.state == "success" and not done,
        "orphans": len({line["key"] for line in lines if line["at"] > told.at + ORPHAN_S}),
    }


def most_at_once(lines: LedgerLines) -> int:
    """Of the spans from the first to the last line of each driver, the most that share an instant. A client of a Connect server is
    none: its query is.
    """
    spans: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        spans[line["key"]].append(line["at"])
    moves = sorted(move for ats in spans.values() for move in ((min(ats), 1), (max(ats), -1)))
    now = most = 0
    for _, change in moves:
        now += change
        most = max(most, now)
    return most


def summed(verdicts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The last verdict of each number counts."""
    judged = list({each["number"]: each for each in verdicts}.values())
    at_once = max((each["at_once"] for each in judged), default=0)
    false, orphans = (sum(each[name] for each in judged) for name in ("false_success", "orphans"))
    wrong = [each["number"] for each in judged if each["victim"] != "cancel" and each["state"] != "success"]
    given_up = sum(each["state"] == "given up" for each in judged)
    return {
        "ok": at_once <= 1 and not false and not orphans and not given_up,
        "runs": len(judged),
        "hit": sum(each["hit"] for each in judged),
        "drivers": sum(each["drivers"] for each in judged),
        "at_once_max": at_once,
        "false_success": false,
        "orphans_after_30_s": orphans,
        "given_up": given_up,
        "not_brought_to_success": len(wrong),
    }


def read_verdicts(file: Path) -> list[dict[str, Any]]:
    """None of them where there is no such file yet."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def append_verdict(file: Path, judged: dict[str, Any]) -> None:
    with file.open("a") as out:
        out.write(json.dumps(judged) + "\n")
