"""SQL that a benchmark spells out names columns, functions and states that the schema has: no type checker reads it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import errors

BENCH = Path(__file__).parents[2] / "bench"
BEGINS = re.compile(r"\s*(select|insert into|update|delete from)\s")
PARAMETER = re.compile(r"%\((\w+)\)s|%s|%%")
UNKNOWN = (errors.UndefinedColumn, errors.UndefinedFunction, errors.InvalidTextRepresentation)


def test_benchmarks_name_what_the_schema_has(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        told = {where: _unknown(conn, statement) for path in sorted(BENCH.glob("*.py")) for where, statement in _literal(path)}
    assert len(told) > 50
    assert {where: error for where, error in told.items() if error} == {}


def test_a_column_that_is_not_there_is_noticed(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        assert _unknown(conn, "insert into mapped_task (run_key, rest) values (%s, %(word)s)")
        assert _unknown(conn, "select 'resting'::task_state where 1 %% 1 = 0")
        assert _unknown(conn, "select run_key from mapped_task where run_key = %s and length = %(n)s + %(n)s") is None


def _literal(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts and BEGINS.match(node.value):
            yield f"{path.name}:{node.lineno}", node.value


def _unknown(conn: psycopg.Connection, statement: str) -> str | None:
    """What PostgreSQL does not know in it; None also for tables, which a benchmark may make by itself."""
    numbers = itertools.count(1)
    named: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if found[1] is None:
            return f"${next(numbers)}"
        return f"${named[found[1]] if found[1] in named else named.setdefault(found[1], next(numbers))}"

    try:
        conn.execute(f"prepare literal as {PARAMETER.sub(numbered, statement)}".encode())
    except UNKNOWN as error:
        return str(error)
    except psycopg.Error:
        return None
    conn.execute("deallocate literal")
    return None
