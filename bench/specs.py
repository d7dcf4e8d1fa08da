"""Shapes as Evenflow's own descriptions: DagSpecs for execution-free runs, and a DAG file for real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sdks import NO_LIMIT, PACKAGES
from shapes import upstream

from evenflow.core.model import DEFAULT_POOL, DagSpec, MapInput, Mapping, TaskSpec

UNBOUNDED = 1_000_000  # slots of the "default" pool of shapes


@dataclass(frozen=True)
class Planned:
    spec: DagSpec
    runs: int
    group: str


def pools(shape: dict[str, Any]) -> dict[str, int]:
    return {DEFAULT_POOL: UNBOUNDED, **shape.get("pools", {})}


def plan(shape: dict[str, Any]) -> list[Planned]:
    return [
        Planned(_spec(group, f"{group['name']}_{i:03}", i), group.get("runs", 1), group["name"])
        for group in shape["groups"]
        for i in range(group["dags"])
    ]


def _spec(group: dict[str, Any], dag_id: str, dag_number: int) -> DagSpec:
    n, graph = group["n"], group["graph"]
    common = {
        "operator": "python",
        "pool_slots": group.get("pool_slots", 1),
        "priority_weight": _priority(group.get("priority", 1), dag_number),
        "max_active_tis_per_dag": group.get("max_active"),
    }
    if graph == "mapped":
        mapping = Mapping(inputs=(MapInput(name="x", length=n),))
        tasks: tuple[TaskSpec, ...] = (TaskSpec(task_id="t", mapping=mapping, pool=_pool(group, 0), **common),)
    else:
        tasks = tuple(
            TaskSpec(task_id=f"t{i}", upstream=() if (u := upstream(graph, i)) is None else (u,), pool=_pool(group, i), **common)
            for i in range(n)
        )
    return DagSpec(dag_id=dag_id, tasks=tasks, max_active_runs=None, max_active_tasks=group.get("run_cap"))


def _priority(given: int | str, dag_number: int) -> int:
    """``100+i%1000`` is 100 plus the DAG's number modulo 1000."""
    return 100 + dag_number % 1000 if given == "100+i%1000" else int(given)


def _pool(group: dict[str, Any], task_number: int) -> str:
    given: str = group.get("pool", DEFAULT_POOL)
    return given.split(" ")[0].split("|")[task_number % 2] if " by task parity" in given else given


# Every task begins and ends an entry of the ledger of the fault suite (tests/chaos/dags/ledger.py).
WRITES_LEDGER = [
    "from ledger import Entry",
    "from evenflow import dag, get_current_context, task",
    "",
    "def body(sleep_s):",
    "    entry = Entry(get_current_context()['ti'])",
    "    entry.begin()",
    "    entry.work(sleep_s)",
    "    entry.end()",
    "",
]


def writes_times(times: str, *, sdk: str = "evenflow") -> list[str]:
    """Every task appends ``dag_id task_id map_index begin end``, seconds since 1970, to the file ``times``."""
    return [
        "import os, time",
        f"from {PACKAGES[sdk]} import dag, get_current_context, task",
        "",
        f"TIMES = {times!r}",
        "",
        "def body(sleep_s):",
        "    begin = time.time()",
        "    if sleep_s:",
        "        time.sleep(sleep_s)",
        "    ti = get_current_context()['ti']",
        "    line = f'{ti.dag_id} {ti.task_id} {ti.map_index} {begin:.6f} {time.time():.6f}\\n'.encode()",
        "    fd = os.open(TIMES, os.O_WRONLY | os.O_APPEND | os.O_CREAT)",
        "    os.write(fd, line)",
        "    os.close(fd)",
        "",
    ]


def dag_file(shape: dict[str, Any], body: list[str], *, reuse: bool = False, sdk: str = "evenflow") -> str:
    """A DAG file for the shape. ``body`` are the lines that import what is needed and define what a task does; with ``reuse`` tries
    follow each other in one process.
    """
    lines, no_limit = list(body), NO_LIMIT[sdk]
    for planned, group in ((p, g) for g in shape["groups"] for p in plan({"groups": [g]})):
        spec = planned.spec
        sleep_s = group.get("sleep_s", 0) if group["body"] in ("sleep", "log") else 0
        limits = f"max_active_tasks={spec.max_active_tasks or no_limit}, max_active_runs={no_limit}"
        lines += [f"@dag(dag_id={spec.dag_id!r}, schedule=None, {limits})"]
        lines += [f"def {spec.dag_id}():"]
        first = spec.tasks[0]
        options = f"pool={first.pool!r}, pool_slots={first.pool_slots}, max_active_tis_per_dag={first.max_active_tis_per_dag}"
        options += f", priority_weight={first.priority_weight}, weight_rule='absolute'" + (", reuse=True" if reuse else "")
        if first.mapping is not None:
            lines += [f"    @task({options})", "    def t(x):", f"        body({sleep_s})"]
            lines += [f"    t.expand(x=list(range({group['n']})))"]
        else:
            lines += [f"    @task({options})", "    def t():", f"        body({sleep_s})"]
            lines += [f"    ts = [t.override(task_id=f't{{i}}')() for i in range({len(spec.tasks)})]"]
            lines += [f"    ts[{u}] >> ts[{i}]" for i, s in enumerate(spec.tasks) for u in s.upstream]
        lines += [f"{spec.dag_id}()", ""]
    return "\n".join(lines)
