"""XComs of the Task Execution API. A value stays in the SDK's form, and is stored like any other of Evenflow."""

from __future__ import annotations

import json
from typing import Any

from evenflow.contracts.airflow.answers import ExecutionAnswer, found, missing, refused, unknown
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.core.links import is_web_link
from evenflow.core.model import UNMAPPED
from evenflow.sdk.xcom import mapped_length
from evenflow.sdk.xcomarg import RETURN_VALUE

_CLASS, _DATA = "__classname__", "__data__"  # the SDK's form of values that JSON lacks
_SEQUENCES = ("builtins.tuple", "builtins.set", "builtins.frozenset")


class AirflowXComs:
    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try
        self._lists: dict[tuple[str, str, str], list[Any]] = {}  # pulled ones, because the SDK asks for them item by item

    def push(self, body: Any, *, dag_id: str, run_id: str, task_id: str, key: str, **query: Any) -> ExecutionAnswer:
        if not self._of_try.is_own(dag_id, run_id, task_id):
            return refused(403, "forbidden", f"A task can push XComs of its own alone, not of {dag_id}.{task_id}.")
        if key == RETURN_VALUE:
            value = _mappable(body, query)
            text = None if value is None else json.dumps(value, separators=(",", ":")).encode()
            self._of_try.draft.set_result(text, _hidden_length(value, query.get("mapped_length")))
        else:
            self._of_try.channel.xcom_push(key, _mappable(body, query))
            name = self._of_try.link_names.get(key)
            if is_web_link(name, body):  # else there is nothing to see: what is empty, or a path of Airflow's own pages
                self._of_try.ask("record", kind="links", value={name: body})
        return found("ok", 201)

    def pull(self, body: Any, *, task_id: str, key: str, map_index: str = str(UNMAPPED), **path: Any) -> ExecutionAnswer:
        if (refusal := self._refusal(**path)) is not None:
            return refusal
        index = int(map_index)
        run_id = path["run_id"]
        if path.get("include_prior_dates"):
            prior = self._of_try.ask("prior_run", task_id=task_id, key=key, map_index=index)["run_id"]
            if prior is None:
                return missing(f"No run up to this one has the XCom {key!r} of task {task_id!r}.")
            run_id = prior
        is_there, value = self._pulled(task_id, key, index, run_id)
        return found({"key": key, "value": value}) if is_there else missing(f"Task {task_id!r} has pushed no XCom {key!r}.")

    def count(self, body: Any, *, task_id: str, key: str, **path: Any) -> ExecutionAnswer:
        if (refusal := self._refusal(**path)) is not None:
            return refusal
        return ExecutionAnswer(200, heads={"content-range": f"map_indexes {len(self._all(task_id, key, path['run_id']))}"})

    def item(self, body: Any, *, task_id: str, key: str, offset: str, **path: Any) -> ExecutionAnswer:
        if (refusal := self._refusal(**path)) is not None:
            return refusal
        values = self._all(task_id, key, path["run_id"])
        try:
            return found(values[int(offset)])
        except IndexError:
            return missing(f"Task {task_id!r} has pushed {len(values)} XComs {key!r}, and none with the number {offset}.")

    def slice(self, body: Any, *, task_id: str, key: str, **path: Any) -> ExecutionAnswer:
        if (refusal := self._refusal(**path)) is not None:
            return refusal
        start, stop, step = (int(path[name]) if path.get(name) is not None else None for name in ("start", "stop", "step"))
        return found(self._all(task_id, key, path["run_id"])[start:stop:step])

    def delete(self, body: Any, *, dag_id: str, run_id: str, task_id: str, key: str, **path: Any) -> ExecutionAnswer:
        """Deletes an XCom, so that each try begins without those of the one before."""
        if not self._of_try.is_own(dag_id, run_id, task_id):
            return refused(403, "forbidden", f"A task can delete XComs of its own alone, not of {dag_id}.{task_id}.")
        if key == RETURN_VALUE:
            self._of_try.draft.set_result(None)
            return found("ok")
        return unknown(f"way to delete an XCom of a try that runs ({key!r}): push another value")

    def _refusal(self, dag_id: str, **path: Any) -> ExecutionAnswer | None:
        if dag_id == self._of_try.context.dag_id:
            return None
        return refused(403, "forbidden", f"XComs of another DAG ({dag_id!r}) cannot be read: pass the value by conf or by storage.")

    def _all(self, task_id: str, key: str, run_id: str) -> list[Any]:
        """Returns the values of all instances in map order; for a task without instances its only one."""
        place = (task_id, key, run_id)
        if place not in self._lists:
            is_mapped = task_id in self._of_try.mapped
            is_there, value = self._pulled(task_id, key, None if is_mapped else UNMAPPED, run_id)
            self._lists[place] = [] if not is_there else list(value) if is_mapped else [value]
        return self._lists[place]

    def _pulled(self, task_id: str, key: str, map_index: int | None, run_id: str) -> tuple[bool, Any]:
        context = self._of_try.context
        if self._of_try.is_own(context.dag_id, run_id, task_id) and key == RETURN_VALUE:
            own = self._of_try.draft.result()
            if own is not None:
                return True, json.loads(own)
        if task_id not in self._of_try.index_of:
            return False, None
        other = None if run_id == context.run_id else run_id
        return self._of_try.channel.xcom_pull(task_id, key, map_index, other)


def _hidden_length(value: Any, told: str | None) -> int | None:
    """Returns the number of elements that the client says, if it is another one than that of the value: a backend of XComs may put
    a list elsewhere, or into another form.
    """
    length = None if told is None else int(told)
    return None if length == mapped_length(value) else length


def _mappable(value: Any, query: dict[str, Any]) -> Any:
    """Returns a list for a value over which another task maps, because the scheduler does not know the SDK's classes."""
    if query.get("mapped_length") is not None and isinstance(value, dict) and value.get(_CLASS) in _SEQUENCES:
        return list(value[_DATA])
    return value
