"""Replies of commands: data for programs, words for people, an exit code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import App, Parameter

from evenflow.cli.output.terminal import detail_text, local_time, print_json, print_table, say, state_text
from evenflow.core.quantities import duration
from evenflow.core.states import RunState, TaskState
from evenflow.runtime.exits import ExitCode

if TYPE_CHECKING:
    from pydantic import BaseModel

    from evenflow.contracts import rest

T = TypeVar("T", bound="BaseModel")
Cell = Callable[[T], Any]
Command = Callable[..., Any]

Json = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for programs instead of tables for people.")]


@dataclass(frozen=True, slots=True)
class Reply:
    """``data`` is for ``--json``; ``words`` are a sentence, or a function that prints more."""

    data: Any
    words: str | Callable[[], None]
    exit_code: int = ExitCode.OK


def replies(command: Command) -> Command:
    """Wraps a command that returns a :class:`Reply`, or an awaitable one: it takes ``--json`` beside its own options."""

    def tell(answer: Reply, json: bool) -> int:
        if json:
            print_json(answer.data)
        elif callable(answer.words):
            answer.words()
        elif answer.words:
            say(answer.words)
        return answer.exit_code

    if inspect.iscoroutinefunction(command):

        @functools.wraps(command)
        async def replying(*given: Any, json: bool = False, **named: Any) -> int:
            return tell(await command(*given, **named), json)
    else:

        @functools.wraps(command)
        def replying(*given: Any, json: bool = False, **named: Any) -> int:
            return tell(command(*given, **named), json)

    own = inspect.signature(command)
    option = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    replying.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
    replying.__annotations__ = {**command.__annotations__, "json": Json, "return": int}
    return replying


def verb(app: App, name: str | None = None, *, meant: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Makes a command of a noun. Suggestions offer it for the words in ``meant``, other programs' names for it."""

    def register(command: Command) -> Command:
        replying = replies(command)
        app.command(replying, name=name, synonym=meant)
        return replying

    return register


def listed(
    name: str,
    page: rest.record.Page[T],
    record: type[T],
    *,
    empty: str,
    cells: Mapping[str, Cell[T]] | None = None,
    limit: int | None = None,
    then: Callable[[], None] | None = None,
    **beside: Any,
) -> Reply:
    """Returns a part of a list, as a table of the fields with a title. ``cells`` define how some are shown; ``limit`` is the
    requested one, if there may be more; ``beside`` is further data for programs, ``then`` prints more for people.
    """

    def tell() -> None:
        print_records(page.items, record, cells=cells, empty=empty)
        if page.more and limit is not None:
            say(f"... and more; see them with --limit {2 * limit}", "bright_black")
        if then is not None:
            then()

    return Reply({**beside, name: page.items, "more": page.more}, tell)


def print_records(items: Sequence[T], record: type[T], *, empty: str, cells: Mapping[str, Cell[T]] | None = None) -> None:
    """Prints a table of the fields of ``record`` that have a title, in their order, without empty columns."""
    shown = {name: (cells or {}).get(name) or functools.partial(_cell, name) for name in titles(record)}
    columns = {name: [cell(item) for item in items] for name, cell in shown.items()}
    filled = [name for name, column in columns.items() if any(str(value) for value in column if value is not None)]
    heads = [titles(record)[name] for name in filled]
    print_table(heads, list(zip(*(columns[name] for name in filled), strict=True)), empty=empty)


def titles(record: type[BaseModel]) -> dict[str, str]:
    """Returns the heading of each field in lists; those of numbers begin with ``#``."""
    return {
        name: f"{'#' if _is_number(field.annotation) else ''}{field.title}"
        for name, field in record.model_fields.items()
        if field.title is not None
    }


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float, int | None, float | None)


def _cell(name: str, item: BaseModel) -> Any:
    match value := getattr(item, name):
        case datetime():
            return local_time(value)
        case RunState() | TaskState():
            return state_text(value)
        case bool():
            return "yes" if value else "no"
        case float() if name.endswith("_s"):
            return duration(value)
        case list():
            return ", ".join(map(str, value))
        case dict() if name == "detail":
            return detail_text(value)
        case dict():
            return dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
        case _:
            return value
