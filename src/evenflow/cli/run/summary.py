"""How a run ended: each failure with its reason and the command for its log; or the output of its last task."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from evenflow.cli.output.terminal import output, say
from evenflow.cli.run.rows import RunSnapshot
from evenflow.contracts import rest
from evenflow.core.model import instance_name
from evenflow.core.plain_text import plain
from evenflow.core.quantities import counted, duration
from evenflow.core.states import TaskState

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

FAILURES_SHOWN = 20
LAST_LINES = 6  # of the last task's output: a result, a path, a link


@dataclass(frozen=True, slots=True)
class LastWords:
    """The end of the output of the task that ended last, because a pipeline's last task says where its result is."""

    task_id: str
    lines: list[str]


async def find_failures(client: RestClient, snapshot: RunSnapshot) -> list[rest.tasks.InstanceSummary]:
    run = snapshot.run
    return (await client.list_tasks(run.dag_id, run.run_id, state=TaskState.FAILED, limit=FAILURES_SHOWN)).items


async def find_last_words(client: RestClient, snapshot: RunSnapshot) -> LastWords | None:
    """Returns None when the run failed, the last task is one of many, or its output is empty or too long for one request."""
    ended = [instance for instance in snapshot.instances if instance.ended_at is not None and instance.state == TaskState.SUCCESS]
    if not snapshot.succeeded or not snapshot.all_tasks or not ended:
        return None
    last = max(ended, key=lambda instance: instance.ended_at or snapshot.run.created_at)
    log = await client.read_log(snapshot.run.dag_id, snapshot.run.run_id, last.task_id, map_index=last.map_index)
    lines = [line.rstrip() for line in plain(log.text).splitlines() if line.strip()]
    if last.map_index >= 0 or not log.complete or not lines:
        return None
    return LastWords(last.task_id, lines[-LAST_LINES:])


def print_summary(snapshot: RunSnapshot, failures: list[rest.tasks.InstanceSummary], last_words: LastWords | None) -> None:
    run = snapshot.run
    for task in failures:
        _print_failure(run.dag_id, run.run_id, task)
    hidden = run.tasks_by_state.get(TaskState.FAILED, 0) - len(failures)
    if hidden > 0:
        listing = shlex.join(["evenflow", "tasks", "list", run.dag_id, "--run", run.run_id, "--state", "failed"])
        say(f"\nand {hidden} more: {listing}", "bright_black")
    say("")
    took = duration(snapshot.elapsed_s())
    if snapshot.succeeded:
        tasks = counted(snapshot.total, "task")
        output.print(Text.assemble(("✓ ", "green"), (f"{run.dag_id} succeeded", "bold green"), f" in {took}, {tasks}"))
    else:
        reason = f": {run.reason}" if run.reason else ""
        output.print(Text.assemble(("✗ ", "red"), (f"{run.dag_id} failed", "bold red"), f" after {took}{reason}"), soft_wrap=True)
    if last_words is not None:
        say(f"\n  {last_words.task_id}:", "bright_black")
        for line in last_words.lines:
            say(f"  {line}")


def _print_failure(dag_id: str, run_id: str, task: rest.tasks.InstanceSummary) -> None:
    tries = f" in try {task.try_number}" if task.try_number > 1 else ""
    reason = f" failed{tries}: {task.reason or 'no reason given'}"
    say("")
    output.print(Text.assemble(("✗ ", "red"), (instance_name(task.task_id, task.map_index), "bold red"), reason), soft_wrap=True)
    say(f"  {log_command(dag_id, run_id, task)}", "bright_black")


def log_command(dag_id: str, run_id: str, task: rest.tasks.InstanceSummary) -> str:
    """Returns what to type to read the log of a task's newest try."""
    words = ["evenflow", "tasks", "logs", dag_id, task.task_id, "--run", run_id]
    if task.map_index >= 0:
        words += ["--map-index", str(task.map_index)]
    return shlex.join(words)
