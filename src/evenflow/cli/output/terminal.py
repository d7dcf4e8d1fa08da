"""Terminal output: the two consoles, tables, states, times, and JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from json import dumps
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evenflow.core.plain_text import escaped_json, plain
from evenflow.core.states import in_state


class Screen(Console):
    """Shows names, reasons and errors of others without their terminal sequences."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


output = Screen(highlight=False)
errors = Screen(stderr=True, highlight=False)

UNFOLDED = 10_000  # columns; no table is wider, and a table takes only what it needs

# One colour a meaning, in every table, bar and tree.
STATE_STYLES = {
    "success": "green",
    "running": "cyan",
    "queued": "blue",
    "scheduled": "blue",
    "deferred": "magenta",
    "up_for_retry": "yellow",
    "up_for_reschedule": "yellow",
    "failed": "red",
    "upstream_failed": "dark_orange3",
    "skipped": "bright_black",
    "removed": "bright_black",
    "none": "bright_black",
}
# The order of states in output: ended, active, waiting.
STATE_ORDER = (
    "success",
    "failed",
    "upstream_failed",
    "skipped",
    "running",
    "up_for_retry",
    "deferred",
    "up_for_reschedule",
    "queued",
    "scheduled",
    "none",
    "removed",
)


def in_order(states: Iterable[str]) -> list[str]:
    """Returns states in the order of output; those of a newer API come last."""
    found = set(states)
    return [*(state for state in STATE_ORDER if state in found), *sorted(found.difference(STATE_ORDER))]


def state_text(name: str) -> Text:
    return Text(in_state(name), style=STATE_STYLES.get(name, ""))


def print_json(data: Any) -> None:
    """One JSON document on standard output, indented for a terminal, on one line for a program."""
    import msgspec
    from pydantic import BaseModel

    text = msgspec.json.encode(data, enc_hook=BaseModel.model_dump)
    if sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    print_json_text(text.decode())


def print_json_text(text: str) -> None:
    sys.stdout.write(escaped_json(text) + "\n")
    sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines for programs: neither folded nor styled."""
    sys.stdout.writelines(plain(line) + "\n" for line in lines)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Prints a table; ``empty`` says what to do when there is nothing to show. Columns that begin with ``#`` are numbers. Only a
    terminal folds lines: output into a file or a pipe is never folded.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        name = column.removeprefix("#")
        table.add_column(name, justify="right" if name != column else "left", overflow="fold", min_width=len(name))
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else _cell(cell) for cell in row))
    if table.row_count:
        screen = output if output.is_terminal else Screen(file=output.file, width=UNFOLDED, highlight=False)
        screen.print(table)
    else:
        output.print(Text(empty, style="bright_black"))


def local_time(at: datetime | None) -> str:
    """Returns the time in the terminal's zone, with its name; without the date if it is today's."""
    if at is None:
        return ""
    today = at.astimezone().date() == datetime.now(UTC).astimezone().date()
    return at.astimezone().strftime("%H:%M:%S %Z") if today else local_date(at)


def local_date(at: datetime | None) -> str:
    """Returns the same always with the date: for the date of a run, not for the time of an event."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if at else ""


def say(text: str, style: str = "") -> None:
    """Prints a line of text, however long, without markup."""
    output.print(Text(text, style=style), soft_wrap=True)


def detail_text(detail: dict[str, Any] | None) -> str:
    """Returns ``kind=worker, scope=all``: the details of an event beside its actor and action."""
    return ", ".join(f"{name}={_detail(name, value)}" for name, value in (detail or {}).items())


_ALL_IF_NONE = frozenset({"scope", "dags"})  # lists of the objects that something is for


def _detail(name: str, value: Any) -> str:
    match value:
        case []:
            return "all" if name in _ALL_IF_NONE else "none"
        case [*several]:
            return " ".join(_detail(name, each) for each in several)
        case str():
            return value
        case None:
            return "none"
        case dict():
            return " ".join(f"{each} {_detail(each, of_it)}" for each, of_it in value.items()) or "none"
        case _:
            return dumps(value, ensure_ascii=False)


def _cell(value: Any) -> str:
    from rich.markup import escape

    return "" if value is None else escape(str(value))
