"""A run where nothing can be redrawn (a file, a pipe, a CI log): a line whenever something is worth one."""

from __future__ import annotations

import time

from evenflow.cli.output.terminal import STATE_STYLES, say
from evenflow.cli.run.live import GLYPHS
from evenflow.cli.run.rows import RunSnapshot, TaskRow, task_rows
from evenflow.contracts import rest
from evenflow.core.quantities import duration

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
        self._tell_run(snapshot.run)  # that it has ended comes after its tasks

    def note(self, text: str) -> None:
        self._say(text, "yellow")

    def end(self) -> None:
        """Nothing is left to do."""

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
        elapsed = row.elapsed_s()  # of one that is to be tried again there is none
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
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""
