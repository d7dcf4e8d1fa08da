"""Recorded workflows, run again: each becomes a DAG whose tasks sleep as long as they once took, divided by ``speedup``.

WfFormat 1.5 and 1.4 (wfcommons.org) record who waited for whom and how long each task ran. Say in the environment of Evenflow where
the instances are, a file or a folder of files, ``.json`` or ``.json.gz``; without that there is one small sample:

    WFFORMAT=~/wfinstances evenflow up
    evenflow run helloworld-chain-5-chameleon --param speedup=100

A file that is none of these is named in a warning, and the others become DAGs.
Worker and processor both read the files, so they must see them under the same path.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
import warnings
import zlib
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
        try:
            yield key(re.sub(r"\.json(\.gz)?$", "", file.name)), read_instance(file)
        except DagError as error:
            if len(files) == 1:
                raise
            warnings.warn(str(error), stacklevel=2)


def read_instance(file: Path) -> Mapping[str, Any]:
    """Raises :class:`DagError`, which names the file."""
    try:
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        instance: Mapping[str, Any] = json.loads(text)
        recorded(instance)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DagError(
            f"{file} is no instance of WfFormat 1.4 or 1.5 ({type(error).__name__}: {error}). Mend it, or take it away."
        ) from error
    return instance


def recorded(instance: Mapping[str, Any]) -> list[tuple[str, list[str], list[str], float]]:
    """Of each task its id, parents, children and seconds, 0 without a record. Raises what a wrong shape raises.

    1.5 specifies tasks apart from what became of them; in 1.4 one list says both, which knows tasks by id, or else by name.
    """
    workflow = instance["workflow"]
    if "specification" in workflow:
        specified = workflow["specification"]["tasks"]
        ran = {task["id"]: float(task["runtimeInSeconds"]) for task in workflow.get("execution", {}).get("tasks", ())}
        return [
            (task["id"], list(task.get("parents", ())), list(task.get("children", ())), ran.get(task["id"], 0.0))
            for task in specified
        ]
    tasks = workflow["tasks"] if "tasks" in workflow else workflow["jobs"]
    names = {task["name"]: task.get("id", task["name"]) for task in tasks}  # others are named by either
    return [
        (
            names[task["name"]],
            [names.get(name, name) for name in task.get("parents", ())],
            [names.get(name, name) for name in task.get("children", ())],
            float(task.get("runtimeInSeconds", task.get("runtime", 0.0))),
        )
        for task in tasks
    ]


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
    specified = recorded(instance)
    task_ids = {name: key(name) for name, *_ in specified}
    if len(set(task_ids.values())) < len(specified):
        raise DagError(
            f"The workflow {dag_id!r} has two tasks with one id. Task ids must differ in letters, digits, '_', '-' or '.'."
        )
    edges = {(parent, name) for name, needed, _, _ in specified for parent in needed}
    edges |= {(name, child) for name, _, children, _ in specified for child in children}
    unknown = sorted({name for edge in edges for name in edge} - set(task_ids))
    if unknown:
        raise DagError(
            f"The workflow {dag_id!r} names tasks as parents or children that it does not have: {', '.join(unknown[:5])}."
        )
    parents: dict[str, list[str]] = {task_id: [] for task_id in task_ids.values()}
    for parent, child in sorted(edges):
        parents[task_ids[child]].append(task_ids[parent])
    return parents, {task_ids[name]: seconds for name, _, _, seconds in specified}


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
    try:
        build_dag(dag_id, instance)
    except DagError as error:
        if Path(os.environ["WFFORMAT"]).expanduser().is_file():
            raise
        warnings.warn(str(error), stacklevel=1)
