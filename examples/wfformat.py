"""Recorded workflows, run again: each becomes a DAG whose tasks sleep as long as they once took, divided by ``speedup``.

WfFormat 1.5 (wfcommons.org) records who waited for whom and how long each task ran. Say in the environment of Evenflow where the
instances are, a file or a folder of files, ``.json`` or ``.json.gz``; without that there is one small sample:

    WFFORMAT=~/wfinstances evenflow up
    evenflow run helloworld-chain-5-chameleon --param speedup=100

Worker and processor both read the files, so they must see them under the same path.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from wfformat_sample import INSTANCE

from evenflow import DAG, DagError, Param, PythonOperator

LONGEST_PATH_S = 5.0  # of a run at the default speedup, if every task could start at once
ALL_TASKS_S = 60.0  # of sleep at the default speedup, for machines with few slots


def instances(where: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(DAG id, instance) of every file at ``where``, the id from the file's name; of the sample when ``where`` is empty."""
    if not where:
        yield "wfformat_sample", INSTANCE
        return
    path = Path(where).expanduser()
    files = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise DagError(f"WFFORMAT names {path}, where there is no .json or .json.gz file. Name a file or a folder of them.")
    for file in files:
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        yield key(re.sub(r"\.json(\.gz)?$", "", file.name)), json.loads(text)


def build_dag(dag_id: str, instance: Mapping[str, Any]) -> DAG:
    """Raises :class:`DagError` when the instance contradicts itself."""
    parents, seconds = read_tasks(dag_id, instance)
    speedup = default_speedup(dag_id, parents, seconds)
    with DAG(
        dag_id,
        description=str(instance.get("description", "")),
        params={"speedup": Param(speedup, type="number", minimum=0.001, description="How much faster than it was recorded.")},
        max_active_tasks=None,
        tags=["wfformat"],
    ) as dag:
        tasks = {
            task_id: PythonOperator(
                task_id=task_id, python_callable=sleep, op_kwargs={"seconds": seconds[task_id], "speedup": dag.param("speedup")}
            )
            for task_id in parents
        }
        for task_id, needed in parents.items():
            for parent in needed:
                tasks[parent] >> tasks[task_id]
    return dag


def read_tasks(dag_id: str, instance: Mapping[str, Any]) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Of each task its parents and its recorded seconds, 0 when it has no record; keys are task ids that Evenflow allows."""
    workflow = instance["workflow"]
    specified = workflow["specification"]["tasks"]
    task_ids = {task["id"]: key(task["id"]) for task in specified}
    if len(set(task_ids.values())) < len(specified):
        raise DagError(
            f"The workflow {dag_id!r} has two tasks with one id. Task ids must differ in letters, digits, '_', '-' or '.'."
        )
    edges = {(parent, task["id"]) for task in specified for parent in task.get("parents", ())}
    edges |= {(task["id"], child) for task in specified for child in task.get("children", ())}
    unknown = sorted({name for edge in edges for name in edge} - set(task_ids))
    if unknown:
        raise DagError(
            f"The workflow {dag_id!r} names tasks as parents or children that it does not have: {', '.join(unknown[:5])}."
        )
    parents: dict[str, list[str]] = {task_id: [] for task_id in task_ids.values()}
    for parent, child in sorted(edges):
        parents[task_ids[child]].append(task_ids[parent])
    ran = {task["id"]: float(task["runtimeInSeconds"]) for task in workflow.get("execution", {}).get("tasks", ())}
    return parents, {task_id: ran.get(name, 0.0) for name, task_id in task_ids.items()}


def default_speedup(dag_id: str, parents: Mapping[str, list[str]], seconds: Mapping[str, float]) -> float:
    """Such that a run takes seconds; at least 1."""
    ends: dict[str, float] = {}
    try:
        for task_id in TopologicalSorter(parents).static_order():
            ends[task_id] = seconds[task_id] + max((ends[parent] for parent in parents[task_id]), default=0.0)
    except CycleError as error:
        raise DagError(f"The workflow {dag_id!r} has a circle: {' >> '.join(reversed(error.args[1]))}.") from None
    return max(1.0, float(round(max(max(ends.values(), default=0.0) / LONGEST_PATH_S, sum(seconds.values()) / ALL_TASKS_S))))


def key(name: str) -> str:
    """``name`` with what is not allowed in an id replaced."""
    return re.sub(r"[^\w.-]", "_", name)


def sleep(seconds: float, speedup: float) -> None:
    """All that a task does."""
    time.sleep(seconds / speedup)


for dag_id, instance in instances(os.environ.get("WFFORMAT")):
    build_dag(dag_id, instance)
