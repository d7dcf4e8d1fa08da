"""Checks the call of a function when the DAG is defined, not when the task runs at night."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any, get_origin

from evenflow.core.likeness import meant_or
from evenflow.errors import BadArgument
from evenflow.sdk.context_entries import CONTEXT_KEYS, MISSING_ENTRIES

_CACHED_FUNCTIONS = 1024  # a DAG calls few functions often, and reading a signature is a third of the cost of defining a task
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters that a caller may give; None for a callable that hides them, which is not checked."""

    function: str
    parameters: inspect.Signature | None

    @classmethod
    def of(cls, function: Callable[..., Any], injected: frozenset[str] = frozenset()) -> Signature:
        """The operator fills in ``injected``, so a caller cannot give these."""
        name = getattr(function, "__name__", type(function).__name__)
        signature = _of_function(function) if isinstance(function, FunctionType) else _of_callable(function)
        if signature is None:
            return cls(name, None)
        names = signature.parameters
        for missing in sorted(injected - names.keys()):
            if not any(p.kind is p.VAR_KEYWORD for p in names.values()):
                raise BadArgument(
                    f"{name}() must take an argument {missing!r}, which is filled in when the task runs: def {name}({missing}, ...)"
                )
        kept = [parameter for parameter in signature.parameters.values() if parameter.name not in injected]
        return cls(name, signature.replace(parameters=kept) if len(kept) < len(signature.parameters) else signature)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any], where: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments, by keyword wherever the function allows. Raises :class:`BadArgument` for one that is unknown,
        missing or given twice.

        Parameters that are named after entries of the context may be missing.
        """
        if self.parameters is None:
            return tuple(args), dict(kwargs)
        self._refuse_unknown(kwargs, where)
        try:
            bound = self.parameters.bind_partial(*args, **kwargs)
        except TypeError as error:
            raise BadArgument(f"{where}: {self.function}() cannot be called like this: {error}. {self._takes()}") from None
        missing = [
            p.name
            for p in self.parameters.parameters.values()
            if p.name not in bound.arguments and p.default is p.empty and p.name not in CONTEXT_KEYS and not _is_variadic(p)
        ]
        if missing:
            cure = MISSING_ENTRIES.get(missing[0])
            hint = f"The context has no {missing[0]!r}. {cure}" if cure else self._takes()
            raise BadArgument(f"{where}: {self.function}() needs {_listed(missing)}. {hint}")
        for p in self.parameters.parameters.values():
            if p.name in MISSING_ENTRIES and p.default is None and p.name not in bound.arguments:
                raise BadArgument(
                    f"{where}: {self.function}() has the parameter {p.name!r}, which Airflow would fill in and Evenflow does not. "
                    f"{MISSING_ENTRIES[p.name]} If it is your own, give it a value or another name."
                )
        if any(p.kind is p.VAR_POSITIONAL or p.kind is p.POSITIONAL_ONLY for p in self.parameters.parameters.values()):
            return bound.args, bound.kwargs
        by_name = dict(bound.arguments)
        for p in self.parameters.parameters.values():
            if p.kind is p.VAR_KEYWORD:
                by_name.update(by_name.pop(p.name, {}))
        return (), by_name

    def fill(self, args: Sequence[Any], kwargs: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """Returns ``kwargs`` and the entries of the context that the function declares and was not given."""
        filled = dict(kwargs)
        if self.parameters is None:
            return filled
        parameters = list(self.parameters.parameters.values())
        by_position = {p.name for p in [p for p in parameters if p.kind in _POSITIONAL][: len(args)]}
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            wanted: Sequence[str] = list(context)
        else:
            wanted = [p.name for p in parameters if p.name in CONTEXT_KEYS]
        for name in wanted:
            if name not in filled and name not in by_position:
                filled[name] = context[name]
        return filled

    def _refuse_unknown(self, kwargs: Mapping[str, Any], where: str) -> None:
        assert self.parameters is not None
        parameters = self.parameters.parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return
        for name in kwargs:
            if name not in parameters:
                hint = meant_or(name, parameters, self._takes())
                raise BadArgument(f"{where}: {self.function}() has no argument {name!r}. {hint}")

    def _takes(self) -> str:
        assert self.parameters is not None
        names = [p.name for p in self.parameters.parameters.values() if p.name not in CONTEXT_KEYS]
        return f"It takes: {', '.join(names)}." if names else "It takes no arguments."


def keywords_of(kind: type) -> list[str]:
    """Returns the names that ``kind(...)`` takes, where the constructors of its classes declare them."""
    found: dict[str, None] = {}
    for each in kind.__mro__[:-1]:
        if isinstance(init := vars(each).get("__init__"), FunctionType):
            found |= dict.fromkeys(
                name for name, p in inspect.signature(init).parameters.items() if name != "self" and not _is_variadic(p)
            )
    return list(found)


def returns_mapping(function: Callable[..., Any]) -> bool:
    """Returns whether its return annotation is a kind of ``Mapping``. An annotation that cannot be read here does not count."""
    said = getattr(function, "__annotations__", {}).get("return")
    if isinstance(said, str):
        try:
            said = eval(said, getattr(function, "__globals__", {}))  # as typing.get_type_hints does, for this annotation alone
        except Exception:
            return False
    kind = get_origin(said) or said
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _of_callable(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


@lru_cache(maxsize=_CACHED_FUNCTIONS)
def _of_function(function: FunctionType) -> inspect.Signature | None:
    return _of_callable(function)


def _is_variadic(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _listed(names: Sequence[str]) -> str:
    return f"the argument{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"
