"""Runs and tasks of other DAGs in the Task Execution API: their states, and runs that a task triggers."""

from __future__ import annotations

from typing import Any

from evenflow.contracts.airflow.answers import DONE, ExecutionAnswer, found, missing, refused
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.errors import ApiRefused

Lists = dict[str, list[str]]


class OtherRuns:
    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def count_tasks(self, body: Any, *, lists: Lists, **query: Any) -> ExecutionAnswer:
        wanted = set(lists.get("states", ()))
        tallies = [tally for run in self._runs(lists, tasks=True) for tally in run["counts"].values()]
        return found(sum(n for tally in tallies for state, n in tally.items() if not wanted or state in wanted))

    def task_states(self, body: Any, *, lists: Lists, **query: Any) -> ExecutionAnswer:
        return found({"task_states": {run["run_id"]: _by_instance(run["counts"]) for run in self._runs(lists, tasks=True)}})

    def count_runs(self, body: Any, *, lists: Lists, **query: Any) -> ExecutionAnswer:
        wanted = set(lists.get("states", ()))
        return found(sum(not wanted or run["state"] in wanted for run in self._runs(lists)))

    def run_state(self, body: Any, *, dag_id: str, run_id: str, **query: Any) -> ExecutionAnswer:
        runs = self._of_try.ask("states", dag_id=dag_id, run_ids=[run_id])["runs"]
        return found({"state": runs[0]["state"]}) if runs else missing(f"DAG {dag_id!r} has no run {run_id!r}.")

    def trigger(self, body: Any, *, dag_id: str, run_id: str, **query: Any) -> ExecutionAnswer:
        made = self._of_try.ask(
            "trigger",
            dag_id=dag_id,
            run_id=run_id,
            conf=body.get("conf") or {},
            logical_date=body.get("logical_date"),
            reset=bool(body.get("reset_dag_run")),
        )
        if not made["is_own"]:
            return refused(409, "already_exists", f"DAG {dag_id!r} has a run {run_id!r}.")
        return DONE

    def clear(self, body: Any, *, dag_id: str, run_id: str, **query: Any) -> ExecutionAnswer:
        self._of_try.ask("trigger", dag_id=dag_id, run_id=run_id, reset=True)
        return DONE

    def _runs(self, lists: Lists, *, tasks: bool = False) -> list[dict[str, Any]]:
        which: dict[str, Any] = {name: lists[name] for name in ("logical_dates", "run_ids") if name in lists}
        if not which:
            raise ApiRefused(422, "Evenflow has no count over all runs of a DAG: name logical_dates= or run_ids=.")
        asked: dict[str, Any] = {"dag_id": lists["dag_id"][0], **which}
        if tasks:
            asked |= {"task_ids": lists.get("task_ids", []), "group_id": lists.get("task_group_id", [None])[0]}
        runs: list[dict[str, Any]] = self._of_try.ask("states", **asked)["runs"]
        return runs


def _by_instance(tasks: dict[str, dict[str, int]]) -> dict[str, str]:
    """Returns states by the SDK's names of instances. For a mapped task these have its index, although only the number in each
    state is known.
    """
    found_: dict[str, str] = {}
    for task_id, tally in tasks.items():
        states = [state for state, n in sorted(tally.items()) for _ in range(n)]
        for index, state in enumerate(states):
            found_[task_id if len(states) == 1 else f"{task_id}_{index}"] = state
    return found_
