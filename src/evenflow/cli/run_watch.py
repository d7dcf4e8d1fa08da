"""Follows a run to its end, draws it, and tells how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from typing import Literal, Protocol

from rich.text import Text

from evenflow.cli.run_lines import LineView, NoView
from evenflow.cli.run_live import LiveView
from evenflow.cli.run_tasks import Snapshot
from evenflow.cli.terminal import duration, output, print_json, say
from evenflow.client.answers import TaskInstance
from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.runtime.exits import Exit

POLL_S = 0.3  # quick enough to look alive
POLL_BIG_S = 1.0  # of a run with so many instances that asking costs
BIG = 200
PAGE = 1000  # instances that are looked at; beyond, only what runs is shown by name
AWAY_S = 30.0  # how long an API that restarts may be away
FAILURES_SHOWN = 20

Progress = Literal["auto", "none", "json"]


class View(Protocol):
    def show(self, snapshot: Snapshot) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


async def watch_run(
    client: RestClient, dag_id: str, run_id: str, *, interrupt: Literal["cancel", "leave"], progress: Progress = "auto"
) -> int:
    """Returns the exit code: 0 when the run succeeded, 1 when it failed, 130 when Ctrl-C ended the watching.

    The first Ctrl-C cancels the run, or leaves it to itself, as ``interrupt`` says; a second one always leaves it.
    """
    view = _view(progress)
    with _Interrupts() as interrupts:
        try:
            snapshot = await _follow(client, dag_id, run_id, view, interrupts, cancels=interrupt == "cancel")
        finally:
            view.end()
    if snapshot is None:
        say(f"The run goes on. To watch it: evenflow runs watch {shlex.join((dag_id, run_id))}", "yellow")
        return Exit.INTERRUPTED
    failures = await _failures(client, snapshot)
    if progress == "json":
        print_json({"run": snapshot.run, "failed_tasks": failures})
    else:
        _summarise(snapshot, failures)
    return Exit.OK if snapshot.succeeded else Exit.RUN_FAILED


async def _follow(
    client: RestClient, dag_id: str, run_id: str, view: View, interrupts: _Interrupts, *, cancels: bool
) -> Snapshot | None:
    """The last snapshot, or None when the user did not want to see the end."""
    while True:
        snapshot = await _look(client, dag_id, run_id, view)
        view.show(snapshot)
        if snapshot.finished:
            return snapshot
        if await interrupts.within(POLL_BIG_S if snapshot.total > BIG else POLL_S):
            if not cancels:
                return None
            cancels = False
            view.note("Cancelling the run: running tasks are being ended. Ctrl-C again leaves them to it.")
            with contextlib.suppress(ApiRefused):  # it has ended by itself
                await client.cancel_run(dag_id, run_id)


async def _look(client: RestClient, dag_id: str, run_id: str, view: View) -> Snapshot:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + AWAY_S
    while True:
        try:
            run = await client.get_run(dag_id, run_id)
            tasks = await client.list_tasks(dag_id, run_id, limit=PAGE)
            if tasks.more:
                tasks = await client.list_tasks(dag_id, run_id, state="running", limit=PAGE)
                return Snapshot(run, tasks.items, all_tasks=False)
            return Snapshot(run, tasks.items, all_tasks=True)
        except ApiUnavailable:
            if loop.time() > deadline:
                raise
            view.note("The API is away; waiting for it.")
            await asyncio.sleep(POLL_S)


async def _failures(client: RestClient, snapshot: Snapshot) -> list[TaskInstance]:
    run = snapshot.run
    return (await client.list_tasks(run.dag_id, run.run_id, state="failed", limit=FAILURES_SHOWN)).items


def _summarise(snapshot: Snapshot, failures: list[TaskInstance]) -> None:
    run = snapshot.run
    for task in failures:
        index = f"[{task.map_index}]" if task.map_index >= 0 else ""
        tries = f" in try {task.try_number}" if task.try_number > 1 else ""
        output.print()
        output.print(
            Text.assemble(
                ("✗ ", "red"), (f"{task.task_id}{index}", "bold red"), f" failed{tries}: {task.reason or 'no reason given'}"
            )
        )
        say(f"  {log_command(run.dag_id, run.run_id, task)}", "bright_black")
    hidden = run.tasks_by_state.get("failed", 0) - len(failures)
    if hidden > 0:
        say(f"\nand {hidden} more: evenflow tasks list {run.dag_id} --run {run.run_id} --state failed", "bright_black")
    output.print()
    took = duration(snapshot.elapsed_s())
    if snapshot.succeeded:
        output.print(
            Text.assemble(("✓ ", "green"), (f"{run.dag_id} succeeded", "bold green"), f" in {took}, {snapshot.total} tasks")
        )
    else:
        reason = f": {run.reason}" if run.reason else ""
        output.print(Text.assemble(("✗ ", "red"), (f"{run.dag_id} failed", "bold red"), f" after {took}{reason}"), soft_wrap=True)


def log_command(dag_id: str, run_id: str, task: TaskInstance) -> str:
    """What to type to read the log of a task's newest try."""
    words = ["evenflow", "tasks", "logs", dag_id, task.task_id, "--run", run_id]
    if task.map_index >= 0:
        words += ["--map-index", str(task.map_index)]
    return shlex.join(words)


def _view(progress: Progress) -> View:
    if progress != "auto":
        return NoView()
    return LiveView() if output.is_terminal else LineView()


class _Interrupts:
    """Ctrl-C as something to wait for; as usual again after the context."""

    def __init__(self) -> None:
        self._pressed = asyncio.Event()

    def __enter__(self) -> _Interrupts:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._pressed.set)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    async def within(self, seconds: float) -> bool:
        """Whether Ctrl-C was pressed since the last time, or is in the next ``seconds``."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._pressed.wait(), seconds)
        pressed = self._pressed.is_set()
        self._pressed.clear()
        return pressed
