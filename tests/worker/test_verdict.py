"""The words for how a process ended, and the kernel's evidence of a lack of memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenflow.core.ending import Ending
from evenflow.forking.exits import UNFROZEN, Exit, describe_exit
from evenflow.worker.memory import KillCounter, MemoryWatch, kernel_counters
from evenflow.worker.said import Result, ending_of, judge, read_head


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (
            Exit(-9, rss_kb=3 * 2**19),
            "killed by SIGKILL; if nobody did that, the host probably ran out of memory (the process itself "
            "used 1.50 GiB at its peak)",
        ),
        (Exit(-15), "killed by SIGTERM, which somebody or something outside the task sent"),
        (Exit(-11), "crashed with SIGSEGV: a fault in native code, in a C extension or library; the log shows where Python was"),
        (
            Exit(3),
            "the process ended with exit code 3 without reporting a result; something called os._exit, or a library ended "
            "the process",
        ),
        (Exit(-64), "killed by SIGRTMAX, which somebody or something outside the task sent"),
        (Exit(-50), "killed by signal 50, which somebody or something outside the task sent"),
        (Exit(0, lost="gone"), "gone"),
    ],
)
def test_reasons(end: Exit, reason: str) -> None:
    assert describe_exit(end) == reason


def test_what_the_task_said_decides() -> None:
    said = Ending(outcome="skipped", reason="nothing new")
    assert judge(said, Exit(0), ended_for="timeout", out_of_memory=None) == Ending(
        outcome="skipped", reason="nothing new", exit_code=0
    )


def test_why_the_worker_ended_it_comes_before_how() -> None:
    assert judge(None, Exit(-9), ended_for="timeout", out_of_memory="much").reason == "timeout"


def test_memory_is_named_for_sure_when_the_kernel_says_so() -> None:
    verdict = judge(None, Exit(-9), ended_for=None, out_of_memory="the kernel ...")
    assert verdict == Ending(outcome="failed", reason="out of memory: the kernel ...", exit_code=-9)
    assert "out of memory" not in str(judge(None, Exit(1), ended_for=None, out_of_memory="the kernel ...").reason)


def test_a_try_that_did_not_stand_still_in_time_is_lost_through_no_fault_of_its_task() -> None:
    """R-CS7: its worker killed it because the control plane did not answer."""
    end = Exit(-9, unfrozen=True)
    assert judge(None, end, ended_for=None, out_of_memory="much") == Ending(outcome="lost", reason=UNFROZEN)
    assert judge(None, end, ended_for="timeout", out_of_memory=None).outcome == "failed"
    said = Ending(outcome="success")
    assert judge(said, end, ended_for=None, out_of_memory=None) == said


@pytest.mark.parametrize("head", [{}, {"ending": {}}, {"ending": {"outcome": "fine", "reason": None, "error_types": []}}])
def test_a_result_that_no_task_says(head: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Object missing|Invalid enum"):
        read_head(json.dumps({"say": "result", **head}).encode())


def test_kills_are_told_from_those_before(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 7\noom_kill 3\noom_group_kill 0\n")
    watch = MemoryWatch([KillCounter(events, "this worker's cgroup")])
    assert watch.evidence() is None
    events.write_text("low 0\noom 8\noom_kill 4\n")
    assert watch.evidence() == "the kernel's out-of-memory killer ended 1 process(es) of this worker's cgroup just then"
    assert watch.evidence() is None
    events.write_text("oom_kill 5\n")
    watch.look()
    assert watch.evidence() is None


def test_this_kernel_counts() -> None:
    counters = kernel_counters()
    assert counters
    assert all(counter.read() is not None for counter in counters)


def test_a_branch_names_the_tasks_that_it_skips() -> None:
    ending = {"outcome": "success", "reason": None, "error_types": [], "skip": [2, 5]}
    said = read_head(json.dumps({"say": "result", "ending": ending}).encode())
    assert isinstance(said, Result)
    assert ending_of(said, b"").skip == [2, 5]
    with pytest.raises(ValueError, match="skip"):
        read_head(json.dumps({"say": "result", "ending": {**ending, "skip": "all"}}).encode())
