"""What must be true when a scenario is over, whatever was done to it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenflow.core.limits import MAX_LOSSES
from evenflow.explaining.audit import audit
from tests.chaos.cluster import Cluster
from tests.chaos.load import FAILS, Load

Key = tuple[str, str, str, int]  # dag, run, task, map index

UNFINISHED = "select count(*) from dag_run where state in ('queued', 'running')"
IN_FLIGHT = (
    "select (select count(*) from report) + (select count(*) from dispatch) + (select count(*) from lane)"
    " + (select count(*) from ready_task) + (select count(*) from wake) + (select count(*) from timer)"
    " + (select count(*) from deferral)"
)
ENDED = """
select r.dag_id, r.run_id, t.task_id, i.map_index, i.state::text, i.epoch, i.try_number, i.losses
from task_instance i join dag_run r using (run_key) join task t using (version_key, task_index)
"""
SUCCESSES = """
select r.dag_id, r.run_id, t.task_id, e.map_index, e.epoch
from task_event e join dag_run r using (run_key) join task t using (version_key, task_index)
where e.state = 'success'
"""
RETRIES = """
select t.task_id, e.map_index, e.epoch, e.event, e.state::text, e.detail
from task_event e join dag_run r using (run_key) join task t using (version_key, task_index)
where r.dag_id = %s and r.run_id = %s order by e.at
"""
TWICE = """
select r.dag_id, r.run_id, e.epoch, e.event, count(*)
from task_event e join dag_run r using (run_key)
where e.epoch > 0 and e.state in ('success', 'failed', 'up_for_retry', 'skipped') group by 1, 2, 3, 4 having count(*) > 1
"""
NOT_ONCE = """
select r.dag_id, r.run_id, t.task_id, e.map_index, count(*) filter (where e.event = 'defer') as deferred,
       count(*) filter (where e.event in ('resume', 'ordinary_resume')) as resumed
from task_event e join dag_run r using (run_key) join task t using (version_key, task_index)
group by 1, 2, 3, 4
having count(*) filter (where e.event = 'defer') <> count(*) filter (where e.event in ('resume', 'ordinary_resume'))
"""


@dataclass
class Execution:
    """What one process did for a task instance."""

    key: Key
    epoch: int
    pid: int
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def first(self) -> float:
        return float(self.lines[0]["at"])

    @property
    def last(self) -> float:
        return float(self.lines[-1]["at"])

    def count(self, what: str) -> int:
        return sum(line["what"] == what for line in self.lines)


def read_ledger(folder: Path, name: str = "ledger.jsonl") -> list[Execution]:
    found: dict[tuple[int, int], Execution] = {}
    for text in _read_lines(folder / name):
        line = json.loads(text)
        key = (line["dag"], line["run"], line["task"], line["map"])
        found.setdefault((line["epoch"], line["pid"]), Execution(key, line["epoch"], line["pid"])).lines.append(line)
    return sorted(found.values(), key=lambda execution: execution.first)


def judge(cluster: Cluster, load: Load, frozen: set[int]) -> list[str]:
    """All that is wrong. ``frozen`` are pids of tries whose host was frozen: for those alone it is known that they may go on for a
    moment while another runs.
    """
    executions = read_ledger(cluster.ledger)
    return [
        *_runs(cluster, load),
        *_books(cluster),
        *_counted_once(cluster, executions),
        *_tries(cluster, load),
        *_events(cluster, executions),
        *_triggers(cluster.ledger, frozen),
        *side_by_side(executions, frozen),
        *outlived(read_ledger(cluster.ledger, "strays.jsonl"), executions, frozen),
    ]


def _runs(cluster: Cluster, load: Load) -> Iterator[str]:
    runs = cluster.all("select dag_id, run_id, state::text from dag_run")
    if len(runs) != load.runs:
        yield f"{len(runs)} runs, not {load.runs}"
    for dag, run, state in runs:
        if state != ("failed" if dag in FAILS else "success"):
            yield f"{dag}/{run} is {state}"


def _books(cluster: Cluster) -> Iterator[str]:
    with cluster.database() as conn:
        for finding in audit(conn):
            yield f"auditor: {finding}"
    for row in cluster.all(TWICE):
        yield f"applied twice: {row}"


def _counted_once(cluster: Cluster, executions: list[Execution]) -> Iterator[str]:
    """The try that counted did its work once, from its begin to its end."""
    of: dict[tuple[Key, int], list[Execution]] = defaultdict(list)
    for execution in executions:
        of[execution.key, execution.epoch].append(execution)
    for (key, epoch), found in of.items():
        if len(found) > 1:
            yield f"{key} epoch {epoch} was executed {len(found)} times"
    counted: dict[Key, int] = {}
    for *name, epoch in cluster.all(SUCCESSES):
        key = (name[0], name[1], name[2], name[3])
        if key in counted:
            yield f"{key} succeeded twice, as {counted[key]} and {epoch}"
        counted[key] = epoch
        ends = [execution.count("end") for execution in of.get((key, epoch), ())]
        if ends != [1]:
            yield f"{key} succeeded as epoch {epoch}; its executions ended {ends} times"


def _tries(cluster: Cluster, load: Load) -> Iterator[str]:
    """What infrastructure lost has used up no try. A clear begins another one."""
    for dag, run, task, index, state, epoch, tries, losses in cluster.all(ENDED):
        if (dag, run) in load.cleared:
            continue
        usual = 2 if (dag, task) in (("flaky", "again"), ("strays", "late")) else 1
        if state in ("success", "failed") and tries != usual and losses <= MAX_LOSSES:
            why = [row for row in cluster.all(RETRIES, dag, run) if row[:2] == (task, index)]
            yield f"{(dag, run, task, index)} used {tries} tries, epoch {epoch}, losses {losses}: {why}"


def _events(cluster: Cluster, executions: list[Execution]) -> Iterator[str]:
    """R-DQ9: what waited resumed once, with the event that it waited for."""
    for dag, run, task, index, deferred, resumed in cluster.all(NOT_ONCE):
        yield f"{(dag, run, task, index)} was deferred {deferred} times, and resumed {resumed} times"
    for execution in executions:
        for line in execution.lines:
            if line["what"] == "resumes" and line["of"] != line["event"]:
                yield f"{execution.key} epoch {execution.epoch} waited for {line['of']} and was told of {line['event']}"


def _triggers(folder: Path, frozen: set[int]) -> Iterator[str]:
    """No trigger ran twice at once, and one fired for each resume."""
    lines = [json.loads(text) for text in _read_lines(folder / "triggers.jsonl")]
    for line in lines:
        if line["what"] == "overlap" and line["holder"] not in frozen:
            yield f"the trigger of {line['of']} began beside one in process {line['holder']} ({line['state']})"
    fired = {line["of"] for line in lines if line["what"] == "fires"}
    for text in _read_lines(folder / "ledger.jsonl"):
        line = json.loads(text)
        if line["what"] == "resumes" and line["of"] not in fired:
            yield f"what waited for {line['of']} resumed, and that never fired"


def _read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def side_by_side(executions: list[Execution], frozen: set[int]) -> Iterator[str]:
    """R-CS7."""
    last: dict[Key, Execution] = {}
    for execution in executions:
        for line in execution.lines:
            if line["what"] == "overlap" and line["holder"] not in frozen:
                yield f"{execution.key} epoch {execution.epoch} began beside process {line['holder']} ({line['state']})"
        before = last.get(execution.key)
        if before is not None and before.last > execution.first and before.pid not in frozen:
            late = before.last - execution.first
            yield f"{execution.key} epoch {before.epoch} went on for {late:.3f} s beside epoch {execution.epoch}"
        last[execution.key] = execution


def outlived(strays: list[Execution], executions: list[Execution], frozen: set[int]) -> Iterator[str]:
    """R-CS9: no process of a try goes on beside a later try of its task, nor beside a process of that. An epoch says which try it
    is, not which came first: each scheduler has a block of them.
    """
    for wrong in side_by_side(strays, frozen):
        yield f"stray process: {wrong}"
    begun: dict[Key, dict[int, float]] = defaultdict(dict)  # when the first process of each try did, by epoch
    for process in (*executions, *strays):
        epochs = begun[process.key]
        epochs[process.epoch] = min(process.first, epochs.get(process.epoch, process.first))
    for stray in strays:
        epochs = begun[stray.key]
        for epoch, first in epochs.items():
            if epochs[stray.epoch] < first < stray.last and stray.pid not in frozen:
                late = stray.last - first
                yield f"{stray.key} epoch {stray.epoch}: its stray process went on for {late:.3f} s beside epoch {epoch}"
