"""A connection that knows what each statement costs: CPU of its backend, as the kernel accounts for it, and CPU of this process."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg

from evenflow.store.db.rows import BEGIN, COMMIT
from evenflow.store.db.sql import sql


@dataclass(slots=True)
class Cost:
    calls: int = 0
    postgres_s: float = 0.0
    python_s: float = 0.0  # since the statement before, and sending this one


@cache
def names() -> dict[bytes, str]:
    """Names of the product's statements by their text."""
    areas = (files("evenflow.store") / "sql").iterdir()
    names = (f"{area.name}/{f.name.removesuffix('.sql')}" for area in areas for f in area.iterdir())
    return {sql(name): name for name in names}


class NoPipeline:
    """In the place of a pipeline: every statement waits for its answer, so that its cost can be told."""

    def sync(self) -> None: ...


class TimedConnection(psycopg.Connection[Any]):
    """Statements of the product by name, any others as ``other``, and ``begin and commit``. For a server on this machine.

    Reading the kernel's figures takes about 20 us of wall time a statement, which neither column counts.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.costs: dict[str, Cost] = defaultdict(Cost)
        self._python = time.process_time()

    def forget(self) -> None:
        """Begins anew."""
        self.costs.clear()
        self._python = time.process_time()

    def resume(self) -> None:
        """What this process did since the last statement is not for this connection to count."""
        self._python = time.process_time()

    def _backend_s(self) -> float:
        with open(f"/proc/{self.info.backend_pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        python = time.process_time() - self._python
        before = self._backend_s()
        begin = time.process_time()
        try:
            yield
        finally:
            python += time.process_time() - begin
            cost = self.costs[name]
            cost.calls += 1
            cost.postgres_s += self._backend_s() - before
            cost.python_s += python
            self._python = time.process_time()

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> psycopg.Cursor[Any]:
        name = (
            "begin and commit" if query in (BEGIN, COMMIT) else names().get(query, "other") if isinstance(query, bytes) else "other"
        )
        with self._timed(name):
            return super().execute(query, params, **kwargs)

    @contextmanager
    def transaction(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        whole = super().transaction(*args, **kwargs)
        with self._timed("begin and commit"):
            inside = whole.__enter__()
        try:
            yield inside
        except BaseException as error:
            whole.__exit__(type(error), error, error.__traceback__)
            raise
        with self._timed("begin and commit"):
            whole.__exit__(None, None, None)

    @contextmanager
    def pipeline(self) -> Iterator[Any]:
        yield NoPipeline()
