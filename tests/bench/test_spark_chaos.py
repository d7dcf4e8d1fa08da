"""What a series of spark_chaos says of its runs, by the lines that their drivers wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from spark_chaos_verdicts import ORPHAN_S, ChaosRun, append_verdict, read_verdicts, summed, verdict


def told(number: int = 0, **other: Any) -> ChaosRun:
    given = {"mode": "client", "victim": "jvm", "moment": "running", "hit": True, "state": "success", "at": 100.0, **other}
    return ChaosRun(number=number, run=f"chaos-{number}", **given)


def line(key: str, at: float, what: str = "beat") -> dict[str, Any]:
    return {"run": "chaos-0", "key": key, "what": what, "at": at}


ONE_AFTER_THE_OTHER = [line("a", 10), line("a", 20), line("b", 21), line("b", 30, "done")]


def test_drivers_that_follow_each_other_are_one_at_a_time() -> None:
    """R-SP6"""
    judged = verdict(told(), ONE_AFTER_THE_OTHER)
    assert (judged["drivers"], judged["at_once"], judged["false_success"], judged["orphans"]) == (2, 1, False, 0)
    assert summed([judged])["ok"]


def test_a_driver_beside_another_is_seen() -> None:
    """R-SP6"""
    judged = verdict(told(), [*ONE_AFTER_THE_OTHER, line("a", 22)])
    assert judged["at_once"] == 2
    assert not summed([judged])["ok"]


def test_a_success_that_no_driver_reached_is_false() -> None:
    """R-SP6"""
    judged = verdict(told(), ONE_AFTER_THE_OTHER[:-1])
    assert judged["false_success"]
    assert summed([judged])["false_success"] == 1


def test_what_still_writes_half_a_minute_after_the_end_is_an_orphan() -> None:
    """R-SP6"""
    lines = [*ONE_AFTER_THE_OTHER, line("b", 100 + ORPHAN_S - 1)]
    assert verdict(told(), lines)["orphans"] == 0
    judged = verdict(told(), [*lines, line("b", 100 + ORPHAN_S + 1)])
    assert summed([judged]) == {**summed([judged]), "ok": False, "orphans_after_30_s": 1}


def test_parts_add_up_and_a_later_verdict_of_a_run_counts(tmp_path: Path) -> None:
    file = tmp_path / "verdicts"
    assert summed(read_verdicts(file))["runs"] == 0
    for number in range(3):
        append_verdict(file, verdict(told(number), ONE_AFTER_THE_OTHER))
    append_verdict(file, verdict(told(1), [*ONE_AFTER_THE_OTHER, line("b", 200)]))
    append_verdict(file, verdict(told(3, state="given up", hit=False), []))
    total = summed(read_verdicts(file))
    assert (total["runs"], total["hit"], total["orphans_after_30_s"], total["not_brought_to_success"]) == (4, 3, 1, 1)


def test_a_run_that_did_not_end_is_no_proof_of_anything() -> None:
    judged = summed([verdict(told(state="given up"), ONE_AFTER_THE_OTHER)])
    assert (judged["ok"], judged["given_up"]) == (False, 1)


def test_a_cancelled_run_need_not_succeed() -> None:
    judged = verdict(told(victim="cancel", state="failed"), [])
    assert summed([judged]) == {**summed([judged]), "ok": True, "not_brought_to_success": 0}
