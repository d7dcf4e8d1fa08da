"""The content of a history lake: the tables of bronze with their columns, and the marts in the order in which they are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evenflow.core.states import RUN_MOVES, TASK_MOVES

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2  # of bronze and of plans; a later column is null in earlier files, and the number stays

_OF_TRY = {
    "run_key": "int64",
    "task_index": "int32",
    "map_index": "int32",
    "at": "timestamp",
    "xact": "int64",
    "epoch": "int64",
    "try_number": "int32",
}

# By column, with Arrow's names of types.
BRONZE: dict[str, dict[str, str]] = {
    "task_events": {
        **_OF_TRY,
        "event": "string",
        "state": "string",
        "detail": "string",
    },
    "run_events": {
        "run_key": "int64",
        "at": "timestamp",
        "xact": "int64",
        "event": "string",
        "state": "string",
        "actor": "string",
        "detail": "string",
    },
    "runs": {
        "run_key": "int64",
        "dag_id": "string",
        "run_id": "string",
        "version_key": "int64",
        "run_type": "string",
        "run_after": "timestamp",
        "created_at": "timestamp",
    },
    "tasks": {
        "version_key": "int64",
        "dag_id": "string",
        "task_index": "int32",
        "task_id": "string",
        "operator": "string",
        "owner": "string",
        "pool": "string",
        "pool_slots": "int32",
        "executor": "string",
        "max_active_tis_per_dag": "int32",
        "max_active_tis_per_dagrun": "int32",
        "max_active_tasks": "int32",
        "max_active_runs": "int32",
    },
    "edges": {"version_key": "int64", "task_index": "int32", "upstream": "int32"},
    "spark_applications": {
        **_OF_TRY,
        "application_id": "string",
        "cores": "int32",
        "wall_us": "int64",
        "task_us": "int64",
        "gc_us": "int64",
        "input_bytes": "int64",
        "output_bytes": "int64",
        "shuffle_bytes": "int64",
        "spilled_bytes": "int64",
    },
    "limits": {"kind": "string", "name": "string", "at": "timestamp", "capacity": "int32", "is_change": "bool"},
    "pauses": {"dag_id": "string", "at": "timestamp", "is_paused": "bool"},
}
DAY_OF = {
    "task_events": "at",
    "run_events": "at",
    "runs": "created_at",
    "spark_applications": "at",
}  # tables that are partitioned by the day (UTC) of a column


@dataclass(frozen=True, slots=True)
class Mart:
    """A table that one statement makes from others."""

    layer: str
    name: str

    @property
    def sql(self) -> str:
        return statement(self.layer, self.name).decode()

    @property
    def needs(self) -> frozenset[str]:
        """The names of the tables that its statement reads."""
        return frozenset(re.findall(r"\b(?:from|join) ([a-z]\w*)", self.sql))


def statement(folder: str, name: str) -> bytes:
    """Returns the text of a statement, from a folder of ``sql``."""
    return (files("evenflow.insights") / "sql" / folder / f"{name}.sql").read_bytes()


SILVER = (
    "moves",
    "touched",
    "instances",
    "terms",
    "capacities",
    "ledger",
    "usage",
    "toggles",
    "waits",
    "blocked",
    "segments",
    "attempts",
    "blockers",
)
GOLD = (
    "lags",
    "wait_by_cause",
    "slot_use",
    "durations",
    "anomalies",
    "critical_paths",
    "critical_members",
    "costs",
    "application_costs",
    "advice",
    "worth_raising",
)
MARTS = (
    *(Mart("silver", name) for name in SILVER),
    *(Mart("gold", name) for name in GOLD),
    Mart("proof", "violations"),
)

LAYERS = ("silver", "gold", "proof")

# Marts whose first rows, in descending order of a column, return to the database.
RETURNED = {
    "lags": "day",
    "wait_by_cause": "day",
    "slot_use": "hour",
    "durations": "tries",
    "anomalies": "began_us",
    "critical_members": "us",
    "costs": "day",
    "application_costs": "day",
    "advice": "day",
    "worth_raising": "worth",
    "violations": "at_us",
}


@cache
def schema_of(table: str) -> pa.Schema:
    """Returns the schema of a table of bronze, for Arrow."""
    import pyarrow as pa

    types: dict[str, Any] = {"timestamp": pa.timestamp("us", tz="UTC"), "bool": pa.bool_()}
    return pa.schema([(name, types.get(kind) or getattr(pa, kind)()) for name, kind in BRONZE[table].items()])


def legal_sql() -> dict[str, str]:
    """Returns the moves with which the proofs compare a history, as statements: state before, event, state after, of task instances
    and of runs.
    """
    # A mapped task that is cleared gets a row again.
    tasks = _moves_of(TASK_MOVES) | {("none", "clear", "none")}
    return {"legal": _values(tasks), "legal_runs": _values(_moves_of(RUN_MOVES))}


def _moves_of(table: Mapping[Any, Mapping[Any, Any]]) -> set[tuple[str, str, str]]:
    return {(str(before), str(event), str(after)) for before, moves in table.items() for event, after in moves.items()}


def _values(moves: set[tuple[str, str, str]]) -> str:
    return Mart("proof", "legal").sql.format(moves=", ".join(map(str, sorted(moves))))
