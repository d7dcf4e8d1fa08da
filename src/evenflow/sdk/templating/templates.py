"""Template fields: Jinja in its sandbox turns what an author wrote into what the operator gets.

A string with ``{{`` or ``{%`` is a template; other strings cost nothing. Values replace references (results of other tasks,
parameters of the run), and are never rendered themselves: a value that a task returned or that a person gave to a run is data,
whatever braces it holds.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from evenflow.core.limits import MAX_FIELD_CHARS, MAX_LINE_SHOWN, MAX_RENDERED_CHARS, MAX_TEMPLATE_BYTES
from evenflow.errors import ConnectionNotFound, TemplateError, VariableNotFound, XComError
from evenflow.sdk.context import Context
from evenflow.sdk.context_entries import meant_entry
from evenflow.sdk.dag import DAG
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.references import Reference

if TYPE_CHECKING:
    from jinja2 import Environment, TemplateSyntaxError
    from jinja2 import TemplateError as JinjaError


def is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def texts(values: Any, *, keys: bool = False) -> Iterator[str]:
    """Yields all strings inside, however deep; with ``keys`` also those that are keys."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for key, value in values.items():
            if keys:
                yield from texts(key, keys=True)
            yield from texts(value, keys=keys)
    elif isinstance(values, (list, tuple, set, frozenset)):
        for value in values:
            yield from texts(value, keys=keys)


class Renderer:
    """Renders the fields of one task. ``pull`` returns the value of a reference; ``data`` the arguments of a mapped instance, and
    the author's expressions from which they were taken.
    """

    def __init__(
        self, dag: DAG, task_id: str, context: Context, pull: Callable[[Reference], Any], data: Callable[[], tuple[Any, Any]]
    ) -> None:
        self.dag, self.task_id, self.context, self.pull = dag, task_id, context, pull
        self.rendered: set[str] = set()  # fields that had a template
        self._find_data = data
        self._data: set[int] | None = None
        self._authors: set[str] | None = None  # the only templates, where data might have become one
        self._environment: Environment | None = None

    def render_fields(self, operator: BaseOperator) -> None:
        """Replaces the template fields of ``operator``. Raises :class:`TemplateError`, which names the field and the problem."""
        for field in operator.template_fields:
            endings = tuple(operator.template_ext)
            setattr(operator, field, self.render(getattr(operator, field), field, endings, in_dicts=operator.template_ext_in_dicts))

    def render(self, value: Any, field: str, endings: Sequence[str] = (), *, in_dicts: bool = False) -> Any:
        """Returns ``value`` with all references and templates in it replaced; the same object when it has none. Strings with one of
        ``endings`` are names of files, with ``in_dicts`` also values of dicts.
        """
        if isinstance(value, Reference):
            return self.pull(value)
        if isinstance(value, str):
            return self._render_text(value, field, endings)
        if isinstance(value, (list, tuple)):
            items = [self.render(item, field, endings, in_dicts=in_dicts) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return items if isinstance(value, list) else _rebuilt(value, items)
        if isinstance(value, dict):
            deeper = endings if in_dicts else ()
            values = {key: self.render(item, field, deeper, in_dicts=in_dicts) for key, item in value.items()}
            return values if any(values[key] is not value[key] for key in value) else value
        if isinstance(value, (set, frozenset)) and any(isinstance(item, str) and is_template(item) for item in value):
            return type(value)(self.render(item, field) for item in value)
        if getattr(type(value), "template_fields", None):
            return self._render_object(value, field)
        return value

    def _render_object(self, value: Any, field: str) -> Any:
        """Renders an object with template fields as a copy, because all tries of this process share the DAG."""
        import copy

        rendered = {name: self.render(getattr(value, name), f"{field}.{name}") for name in value.template_fields}
        if all(new is getattr(value, name) for name, new in rendered.items()):
            return value
        made = copy.copy(value)
        for name, new in rendered.items():
            setattr(made, name, new)
        return made

    def _render_text(self, text: str, field: str, endings: Sequence[str]) -> Any:
        if endings and text.endswith(tuple(endings)) and not self._is_data(text):
            self.rendered.add(field.partition(".")[0])
            content = self._read(text, field)
            return self._render_template(content, f"{field} (the file {text})") if is_template(content) else content
        if not is_template(text) or self._is_data(text):
            return text
        self.rendered.add(field.partition(".")[0])
        return self._render_template(text, field)

    def _is_data(self, text: str) -> bool:
        """Returns whether the string came from outside the DAG file. It compares identity, because an equal string may be in the
        file.

        An operator may have changed an argument, or made a new string from it: if the data contain a brace, only strings that are
        in the file count as the author's.
        """
        if self._data is None:
            values, written = self._find_data()
            known = {id(each): each for each in texts(values, keys=True)}
            own = list(texts(written, keys=True))
            self._data = known.keys() - set(map(id, own))
            if any("{" in known[each] for each in self._data):
                self._authors = set(own)
        return id(text) in self._data or (self._authors is not None and text not in self._authors)

    def _render_template(self, text: str, field: str) -> Any:
        from jinja2 import TemplateError as JinjaError
        from jinja2 import TemplateNotFound, TemplateSyntaxError

        names = {name: self.context[name] for name in self.context.lazy_keys if name in text}
        try:
            return self._jinja().from_string(text).render({**self.context, **names})
        except TemplateSyntaxError as error:
            raise TemplateError(f"{self._where(field)} is not a valid template: {syntax_fault(error)}") from None
        except TemplateNotFound as error:
            raise TemplateError(f"{self._where(field)} includes {error.name!r}, which is not in {self._searched()}.") from None
        except JinjaError as error:
            line = _line(error, text)
            raise TemplateError(f"{self._where(field)} cannot be rendered{line}: {error.message}. {self._known(error)}") from None
        except (ConnectionNotFound, VariableNotFound, XComError) as error:
            error.add_note(f"{self._where(field)} asks for it{_line(error, text)}.")
            raise
        except Exception as error:
            message = f"{self._where(field)} cannot be rendered{_line(error, text)}: {type(error).__name__}: {error}"
            raise TemplateError(message) from error.with_traceback(_beyond_template(error))

    def _read(self, name: str, field: str) -> str:
        for folder in self._folders():
            path = folder / name.strip()
            if path.is_file():
                size = path.stat().st_size
                if size > MAX_TEMPLATE_BYTES:
                    raise TemplateError(
                        f"{self._where(field)}: {path} has {size:,} bytes, above {MAX_TEMPLATE_BYTES:,} for a template."
                    )
                return path.read_text(encoding="utf-8")
        raise TemplateError(
            f"{self._where(field)} names the file {name!r}, which is not in {self._searched()}. Put it there, or add its folder to "
            f"template_searchpath of the DAG. If it is no file but the text itself, end it with a space: {name + ' '!r}"
        )

    def _jinja(self) -> Environment:
        if self._environment is None:
            from evenflow.sdk.templating.jinja import make_environment

            self._environment = make_environment(self.dag, self.dag.template_folders())
        return self._environment

    def _folders(self) -> list[Path]:
        return [Path(folder) for folder in self.dag.template_folders()]

    def _searched(self) -> str:
        return ", ".join(os.fspath(folder) for folder in self._folders()) or "any folder: the DAG was not loaded from a file"

    def _where(self, field: str) -> str:
        return f"DAG {self.dag.dag_id!r}, task {self.task_id!r}: the field {field}"

    def _known(self, error: JinjaError) -> str:
        names = sorted({*self.context, *self.context.lazy_keys, *self.dag.header.user_defined_macros})
        undefined = re.fullmatch(r"'(\w+)' is undefined", error.message or "")
        return f"{meant_entry(undefined[1], names) if undefined else ''}A template knows: {', '.join(names)}."


def _line(error: Exception, text: str) -> str:
    """Returns the place in the template, if known: ``, line 3 ({{ 1 / 0 }})``."""
    numbers = [number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == _IN_TEMPLATE]
    lines = text.splitlines()
    if not numbers or not 0 < numbers[-1] <= len(lines):
        return ""
    line = lines[numbers[-1] - 1].strip()
    return f", line {numbers[-1]} ({line if len(line) <= MAX_LINE_SHOWN else line[:MAX_LINE_SHOWN] + '...'})"


def _beyond_template(error: Exception) -> TracebackType | None:
    """Returns the traceback of the author's code that the template called, without the frames of Evenflow and Jinja."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename == _IN_TEMPLATE or trace.tb_frame.f_globals.get("__name__", "").startswith(_NOT_AUTHORS)
    ):
        trace = trace.tb_next
    return trace


_IN_TEMPLATE = "<template>"  # as Jinja calls the file of a text
_NOT_AUTHORS = ("evenflow.sdk.", "jinja2.")


def _rebuilt(old: tuple[Any, ...], items: list[Any]) -> Any:
    return type(old)(*items) if hasattr(old, "_fields") else tuple(items)


def shown_fields(operator: BaseOperator) -> dict[str, str]:
    """Returns the template fields for people: text, each cut at a length, all together below :data:`MAX_RENDERED_CHARS`."""
    shown: dict[str, str] = {}
    left = MAX_RENDERED_CHARS
    for field in operator.template_fields:
        value = getattr(operator, field)
        text = value if isinstance(value, str) else _as_text(value)
        most = min(MAX_FIELD_CHARS, left)
        shown[field] = text if len(text) <= most else text[:most] + f"... ({len(text):,} characters)"
        left = max(0, left - len(shown[field]))
    return shown


def _as_text(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"(it cannot be shown: {type(error).__name__})"


def syntax_fault(error: TemplateSyntaxError) -> str:
    """Returns Jinja's message as a sentence with its line."""
    return f"{(error.message or 'it cannot be read').rstrip('.')} (line {error.lineno})."
