"""Follows a run to its end: draws it, or without a terminal prints a line for each change, and reports how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import time
from typing import TYPE_CHECKING, Literal, Protocol

from evenflow.cli.output.terminal import STATE_STYLES, output, print_json, say
from evenflow.cli.run.live import GLYPHS, LiveView
from evenflow.cli.run.rows import RunSnapshot, TaskRow, task_rows
from evenflow.cli.run.summary import find_failures, find_last_words, print_summary
from evenflow.contracts import rest
from evenflow.core.limits import PAGE
from evenflow.core.quantities import duration
from evenflow.core.states import TaskState
from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.runtime.exits import ExitCode

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

POLL_S = 0.3  # quick enough to look alive
POLL_BIG_S = 1.0  # for a run whose many instances make requests expensive
BIG = 200
AWAY_S = 30.0  # how long an API may take to restart

ProgressStyle = Literal["auto", "none", "json"]


class View(Protocol):
    def show(self, snapshot: RunSnapshot) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self) -> None: ...


async def watch_run(
    client: RestClient, dag_id: str, run_id: str, *, interrupt: Literal["cancel", "leave"], progress: ProgressStyle = "auto"
) -> int:
    """Returns the exit code: 0 when the run succeeded, 1 when it failed, 130 when Ctrl-C ended the watching.

    The first Ctrl-C cancels the run, or leaves it alone, as ``interrupt`` says; a second one always leaves it.
    """
    view = _view(progress)
    with _Interrupts() as interrupts:
        try:
            snapshot = await _follow(client, dag_id, run_id, view, interrupts, cancels=interrupt == "cancel")
        finally:
            view.end()
    if snapshot is None:
        say(f"The run goes on. To watch it: evenflow runs watch {shlex.join((dag_id, run_id))}", "yellow")
        return ExitCode.INTERRUPTED
    failures = await find_failures(client, snapshot)
    if progress == "json":
        print_json({"run": snapshot.run, "failed_tasks": failures})
    else:
        print_summary(snapshot, failures, await find_last_words(client, snapshot))
    return ExitCode.OK if snapshot.succeeded else ExitCode.FAILED


async def _follow(
    client: RestClient, dag_id: str, run_id: str, view: View, interrupts: _Interrupts, *, cancels: bool
) -> RunSnapshot | None:
    """Returns the last snapshot, or None when the user stopped watching."""
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


async def _look(client: RestClient, dag_id: str, run_id: str, view: View) -> RunSnapshot:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + AWAY_S
    while True:
        try:
            run = await client.get_run(dag_id, run_id)
            tasks = await client.list_tasks(dag_id, run_id, limit=PAGE)
            if tasks.more:  # only running ones are shown by name
                tasks = await client.list_tasks(dag_id, run_id, state=TaskState.RUNNING, limit=PAGE)
                return RunSnapshot(run, tasks.items, all_tasks=False)
            return RunSnapshot(run, tasks.items, all_tasks=True)
        except ApiUnavailable:
            if loop.time() > deadline:
                raise
            view.note("The API is away; waiting for it.")
            await asyncio.sleep(POLL_S)


def _view(progress: ProgressStyle) -> View:
    if progress != "auto":
        return NoView()
    return LiveView() if output.is_terminal else LineView()


class _Interrupts:
    """Makes Ctrl-C an event to wait for; after the context it works as usual again."""

    def __init__(self) -> None:
        self._pressed = asyncio.Event()

    def __enter__(self) -> _Interrupts:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._pressed.set)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    async def within(self, seconds: float) -> bool:
        """Returns whether Ctrl-C was pressed since the last call, or is in the next ``seconds``."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._pressed.wait(), seconds)
        pressed = self._pressed.is_set()
        self._pressed.clear()
        return pressed


PROGRESS_EVERY_S = 5.0  # lines about one task's progress


class LineView:
    def __init__(self) -> None:
        self._state = ""
        self._told: set[tuple[str, str]] = set()
        self._progress_at: dict[str, float] = {}

    def show(self, snapshot: RunSnapshot) -> None:
        if not snapshot.finished:
            self._tell_run(snapshot.run)
        for row in task_rows(snapshot.instances, snapshot.run.progress):
            if row.state == "up_for_retry" or row.finished:
                self._tell(row)
            for progress in row.progress[:1]:
                self._tell_progress(row.task_id, f"{progress.label} {progress.done}/{progress.total}")
        self._tell_run(snapshot.run)  # the end of the run comes after its tasks

    def note(self, text: str) -> None:
        self._say(text, "yellow")

    def end(self) -> None:
        """Does nothing."""

    def _tell_run(self, run: rest.runs.RunDetail) -> None:
        if run.state != self._state:
            self._state = run.state
            self._say(f"{run.dag_id} {run.run_id} is {run.state}", "bold")

    def _tell(self, row: TaskRow) -> None:
        key = (row.task_id, f"{row.state} {row.try_number}")
        if key in self._told:
            return
        self._told.add(key)
        count = f" {row.done}/{row.total}" if row.mapped else f" (try {row.try_number})" if row.try_number > 1 else ""
        reason = f": {row.reason.splitlines()[0]}" if row.reason and row.state != "success" else ""
        elapsed = row.elapsed_s()  # before a retry it has none
        took = f" in {duration(elapsed)}" if elapsed is not None else ""
        mark = GLYPHS.get(row.state, "?")
        self._say(f"  {mark} {row.task_id}{count} {row.state}{took}{reason}", STATE_STYLES.get(row.state, ""))

    def _tell_progress(self, task_id: str, text: str) -> None:
        if time.monotonic() - self._progress_at.get(task_id, float("-inf")) >= PROGRESS_EVERY_S:
            self._progress_at[task_id] = time.monotonic()
            self._say(f"    {task_id}: {text}", "bright_black")

    def _say(self, text: str, style: str) -> None:
        say(f"{time.strftime('%H:%M:%S %Z')} {text}", style)


class NoView:
    """For ``--json`` and ``--no-progress``."""

    def show(self, snapshot: RunSnapshot) -> None:
        """Does nothing."""

    def note(self, text: str) -> None:
        """Does nothing."""

    def end(self) -> None:
        """Does nothing."""
