"""A run on a terminal, redrawn in place: ended tasks, active ones with their progress, waiting ones."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.spinner import Spinner
from rich.style import Style
from rich.table import Table
from rich.text import Text

from evenflow.cli.output.terminal import STATE_STYLES, in_order, output
from evenflow.cli.run.rows import RunSnapshot, TaskRow, task_rows
from evenflow.core.quantities import duration
from evenflow.core.states import in_state

GLYPHS = {
    "success": "✓",
    "failed": "✗",
    "upstream_failed": "✗",
    "skipped": "–",
    "removed": "–",
    "up_for_retry": "↻",
    "deferred": "⏸",
    "up_for_reschedule": "⏸",
    "queued": "◌",
    "scheduled": "◌",
    "none": "·",
}
_AROUND = 7  # lines of the screen that are not task rows
_REASON_WIDTH = 70


class LiveView:
    """Draws each snapshot over the last one; ``end`` leaves the last one on the screen."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots", style="cyan")
        self._snapshot: RunSnapshot | None = None
        self._note = ""
        self._live = Live(get_renderable=self._draw, console=output, refresh_per_second=10, vertical_overflow="crop")

    def show(self, snapshot: RunSnapshot) -> None:
        self._snapshot = snapshot
        if not self._live.is_started:
            self._live.start()

    def note(self, text: str) -> None:
        self._note = text

    def end(self) -> None:
        self._note = ""
        self._live.stop()

    def _draw(self) -> RenderableType:
        snapshot = self._snapshot
        if snapshot is None:
            return Text()
        parts: list[RenderableType] = [
            Text(),
            self._head(snapshot),
            StateBar(snapshot.run.tasks_by_state),
            _legend(snapshot),
            Text(),
        ]
        parts.append(self._tasks(snapshot))
        if self._note:
            parts.append(Text(self._note, style="yellow"))
        return Group(*parts)

    def _head(self, snapshot: RunSnapshot) -> RenderableType:
        run = snapshot.run
        head = Table.grid(padding=(0, 2))
        state = Text(run.state, style=f"bold {STATE_STYLES.get(run.state, '')}")
        mark: RenderableType = Text(GLYPHS[run.state], style=STATE_STYLES[run.state]) if snapshot.finished else self._spinner
        head.add_row(
            mark, Text(run.dag_id, style="bold"), Text(run.run_id, style="bright_black"), state, duration(snapshot.elapsed_s())
        )
        return head

    def _tasks(self, snapshot: RunSnapshot) -> RenderableType:
        rows = task_rows(snapshot.instances, snapshot.run.progress)
        room = max(output.size.height - _AROUND, 5)
        shown = most_telling(rows, room)
        now = datetime.now(UTC)
        table = Table.grid(padding=(0, 2))
        for row in shown:
            table.add_row(self._mark(row), _name(row), _count(row), duration(row.elapsed_s(now)), _detail(row))
        hidden = len(rows) - len(shown)
        if hidden:
            table.add_row("", Text(f"and {hidden} more tasks", style="bright_black"))
        return table

    def _mark(self, row: TaskRow) -> RenderableType:
        if row.state == "running":
            return self._spinner
        return Text(GLYPHS.get(row.state, "?"), style=STATE_STYLES.get(row.state, ""))


class StateBar:
    """A bar with a part for each state, as wide as its share."""

    def __init__(self, counts: dict[str, int], width: int = 60) -> None:
        self._counts, self._width = counts, width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(self._width, options.max_width)
        total = sum(self._counts.values())
        if not total:
            yield Segment("━" * width, Style.parse("bright_black"))
            return
        drawn = passed = 0
        for state in in_order(self._counts):
            passed += self._counts[state]
            end = round(width * passed / total)
            yield Segment("━" * (end - drawn), Style.parse(STATE_STYLES.get(state, "")))
            drawn = end
        yield Segment.line()


def most_telling(rows: list[TaskRow], room: int) -> list[TaskRow]:
    """Returns at most ``room`` rows in their order: failing and active ones first, then the last to end, then the next ones."""
    if len(rows) <= room:
        return rows
    urgency = {"failed": 0, "running": 0, "up_for_retry": 0, "queued": 1, "deferred": 1, "success": 2}
    positions = range(len(rows))
    last_ended = {p: -ended.timestamp() if (ended := rows[p].ended_at) else 0.0 for p in positions}
    chosen = sorted(positions, key=lambda p: (urgency.get(rows[p].state, 3), last_ended[p], p))[:room]
    return [rows[p] for p in sorted(chosen)]


def _legend(snapshot: RunSnapshot) -> Text:
    text = Text(f"{snapshot.done}/{snapshot.total}", style="bold")
    counts: dict[str, int] = {**snapshot.run.tasks_by_state}
    for state in in_order(counts):
        text.append(f"  {counts[state]} {in_state(state)}", style=f"not bold {STATE_STYLES.get(state, '')}")
    return text


def _name(row: TaskRow) -> Text:
    style = "bright_black" if row.state in ("none", "skipped", "removed") else ""
    return Text(row.task_id, style=style)


def _count(row: TaskRow) -> Text:
    if not row.mapped:
        return Text(f"try {row.try_number}", style="yellow") if row.try_number > 1 else Text()
    text = Text(f"{row.done}/{row.total}")
    if failed := row.counts["failed"]:
        text.append(f" {failed} failed", style="red")
    return text


def _detail(row: TaskRow) -> RenderableType:
    if row.progress:
        return _progress(row)
    if row.reason and row.state not in ("success", "running"):
        return Text(
            row.reason.splitlines()[0][:_REASON_WIDTH], style=STATE_STYLES.get(row.state, ""), overflow="ellipsis", no_wrap=True
        )
    return Text()


def _progress(row: TaskRow) -> RenderableType:
    newest = max(row.progress, key=lambda progress: progress.at)
    grid = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(newest.total, 1), completed=newest.done, width=20)
    grid.add_row(
        bar, Text(f"{newest.done}/{newest.total}", style="bright_black"), Text(newest.label, no_wrap=True, overflow="ellipsis")
    )
    return grid
