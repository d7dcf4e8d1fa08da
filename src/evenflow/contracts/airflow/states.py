"""Task instances of the Task Execution API: a try begins and reports its result, which becomes Evenflow's ending."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.contracts.airflow.answers import DONE, ExecutionAnswer, found, refused, unknown
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.contracts.airflow.people import HumanInput, event_of
from evenflow.core.deferral import AIRFLOW_TRIGGER, AIRFLOW_WATCH, Purpose
from evenflow.core.ending import AssetChange, Defer, Ending, OutcomeName
from evenflow.core.limits import MAX_REASON
from evenflow.core.model import UNMAPPED
from evenflow.core.people.approvals import ANSWER_TRIGGER
from evenflow.core.retry import tries_left

_FAIL, _TIMEOUT, _FAILURE = "__fail__", "Trigger timeout", "Trigger failure"  # the SDK's marks of triggers without an event
_RUN_TYPES = {"scheduled", "backfill", "asset_triggered"}  # all others are manual
_EVENT = "event"
_OLD_HITL = "airflow.providers.standard.triggers.hitl.HITLTrigger"  # of Airflow before 3.3; it looks for the answer again and again


class TaskInstances:
    """``ending`` is the try's own report; None while it runs. ``reason`` is for people, from its log."""

    def __init__(self, of_try: AirflowTry, people: HumanInput) -> None:
        self._of_try, self._people = of_try, people
        self._policy: str | None = None  # why its retry policy wants another try
        self.ending: Ending | None = None

    def run(self, body: Any, **path: str) -> ExecutionAnswer:
        """Begins the try. The answer has exactly the fields of DagRun and TIRunContext of the client's date: the client refuses the
        whole answer for an unknown field.
        """
        context = self._of_try.context
        resumed = context.resumed or {}
        method, kwargs = _continued(resumed)
        waits = {"dag_run": self.dag_run(), "max_tries": context.max_tries - 1, "variables": [], "connections": []}
        waits |= {"should_retry": self._tries_left(), "xcom_keys_to_clear": []}
        waits["task_reschedule_count"] = self._of_try.looks
        if method is not None:
            waits |= {"next_method": method, "next_kwargs": kwargs, "start_date": _ago(resumed.get("began_s", 0.0))}
        return found(waits)

    def dag_run(self) -> dict[str, Any]:
        """Returns the run of the try, in the client's form."""
        context = self._of_try.context
        events = self._of_try.ask("triggering_events")["events"] if context.run_type == "asset_triggered" else []
        return {
            "dag_id": context.dag_id,
            "run_id": context.run_id,
            "logical_date": _text(context.logical_date),
            "data_interval_start": _text(context.data_interval_start),
            "data_interval_end": _text(context.data_interval_end),
            "run_after": _text(context.run_after),
            "start_date": _text(context.run_after),
            "end_date": None,
            "clear_number": 0,
            "run_type": context.run_type if context.run_type in _RUN_TYPES else "manual",
            "state": "running",
            "conf": context.params,
            "triggering_user_name": None,
            "consumed_asset_events": [_consumed(event) for event in events],
            "partition_key": None,
        }

    def state(self, body: Any, **path: str) -> ExecutionAnswer:
        """Notes a state. A repetition does nothing, because the client repeats it after an error."""
        draft = self._of_try.draft
        match body["state"]:
            case "success":
                self.ending = Ending(
                    outcome="success", result=draft.result(), length=draft.length(), produced=_produced(body), skip=draft.skipped()
                )
            case "skipped":
                self.ending = Ending(outcome="skipped", reason="The task has skipped itself.")
            case "up_for_retry":
                self._policy = body.get("retry_reason")
                self.ending = Ending(outcome="failed", reason="The task has failed.", delay_s=body.get("retry_delay_seconds"))
            case "up_for_reschedule":
                due = datetime.fromisoformat(body["reschedule_date"])
                self.ending = Ending(outcome="rescheduled", delay_s=max((due - datetime.now(UTC)).total_seconds(), 0.0))
            case "awaiting_input":
                waits = self._people.awaited(body, _seconds(body.get("timeout")))
                if waits is None:
                    return unknown("wait for people without a question")
                self.ending = Ending(outcome="deferred", defer=waits)
            case "deferred" if body["classpath"] == _OLD_HITL:
                return unknown("HITLTrigger: people are asked by the SDK 1.3 and later")
            case "deferred":
                self.ending = Ending(outcome="deferred", defer=_defer(body))
            case "failed" | "removed" | "upstream_failed":
                outcome: OutcomeName = "failed_for_good" if self._tries_left() else "failed"
                self.ending = Ending(outcome=outcome, reason="The task has failed.")
            case other:
                return unknown(f"state {other!r} of a task")
        return DONE

    def _tries_left(self) -> bool:
        context = self._of_try.context
        return tries_left(context.try_number, context.max_tries - 1)

    def explain(self, reason: str | None, error_types: list[str], skipped_for: str | None) -> None:
        """Completes the ending by the log, because the client reports only states."""
        if self.ending is None:
            return
        if self.ending.outcome in ("failed", "failed_for_good") and reason:
            told = f"{reason}; retry policy: {self._policy}" if self._policy else reason
            self.ending = replace(self.ending, reason=told[:MAX_REASON], error_types=error_types)
        elif self.ending.outcome == "skipped" and skipped_for:
            self.ending = replace(self.ending, reason=skipped_for[:MAX_REASON])

    def heartbeat(self, body: Any, **path: str) -> ExecutionAnswer:
        """Does nothing for a client in a worker, which beats for its tries, and ends the process of one that must not continue."""
        ends_for = self._of_try.beat()
        return DONE if ends_for is None else refused(409, "not_running", ends_for)

    def rendered(self, body: Any, **path: str) -> ExecutionAnswer:
        fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
        self._of_try.ask("rendered", fields=fields)
        return found({"ok": True}, 201)

    def rendered_map_index(self, body: Any, **path: str) -> ExecutionAnswer:
        """Does nothing: instances are named by their index here, and the log has the author's name of this one."""
        return found({"ok": True})

    def skip_downstream(self, body: Any, **path: str) -> ExecutionAnswer:
        own = self._of_try.context.map_index
        for named in body["tasks"]:
            task_id, index = (named, UNMAPPED) if isinstance(named, str) else named
            if index in (UNMAPPED, own) and (skipped := self._of_try.index_of.get(task_id)) is not None:
                self._of_try.draft.skip([skipped])
        return DONE

    def previous_success(self, body: Any, **path: str) -> ExecutionAnswer:
        told = self._of_try.ask("previous_run")
        return found({name: told.get(name) for name in ("data_interval_start", "data_interval_end", "start_date", "end_date")})

    def validate_assets(self, body: Any, **path: str) -> ExecutionAnswer:
        """Assets exist while a DAG names them."""
        return found({"inactive_assets": []})

    def first_look(self, body: Any, **path: str) -> ExecutionAnswer:
        return found(_ago(self._of_try.ask("waited")["waited_s"]))


def _continued(resumed: Any) -> tuple[str | None, dict[str, Any]]:
    """Returns how a deferred task continues: the method of its operator, and its arguments."""
    match resumed.get("purpose"):
        case None:
            return None, {}
        case Purpose.EVENT | Purpose.TIMEOUT if resumed["trigger"] == ANSWER_TRIGGER:
            return resumed["method"], {**resumed.get("kwargs", {}), _EVENT: event_of(resumed)}
        case Purpose.EVENT:
            return resumed["method"], {**resumed.get("kwargs", {}), _EVENT: resumed.get("event")}
        case Purpose.TIMEOUT:
            return _FAIL, {"error": _TIMEOUT}
        case _:
            return _FAIL, {"error": _FAILURE, "traceback": [str(resumed.get("reason") or "")]}


def _defer(body: Any) -> Defer:
    path, arguments = body["classpath"], body.get("trigger_kwargs") or {}
    watches = path == AIRFLOW_WATCH  # its arguments are those of every trigger of Airflow's here
    return Defer(
        trigger=path if watches else AIRFLOW_TRIGGER,
        trigger_kwargs=arguments if watches else {"classpath": path, "arguments": arguments},
        method=body["next_method"],
        kwargs=body.get("next_kwargs") or {},
        timeout_s=_seconds(body.get("trigger_timeout")),
        queue=body.get("queue"),
    )


def _produced(body: Any) -> list[AssetChange]:
    """Returns what outlets say beside the change itself, and the assets of aliases."""
    changes = []
    for event in body.get("outlet_events") or ():
        key, alias = event["dest_asset_key"], event.get("source_alias_name")
        if alias is not None or event.get("extra"):
            changes.append(AssetChange(asset=key["name"], uri=key["uri"], extra=event.get("extra") or {}, alias=alias))
    return changes


def _consumed(event: Any) -> dict[str, Any]:
    return {
        "asset": {"name": event["asset"], "uri": event["uri"], "extra": {}},
        "extra": event["extra"],
        "source_task_id": event["task_id"],
        "source_dag_id": event["dag_id"],
        "source_run_id": event["run_id"],
        "source_map_index": event["map_index"],
        "source_aliases": [],
        "timestamp": event["at"],
        "partition_key": event["partition"],
    }


def _seconds(text: str | float | None) -> float | None:
    """Returns the seconds of a duration in Pydantic's form: ISO 8601."""
    from pydantic import TypeAdapter

    return None if text is None else TypeAdapter(timedelta).validate_python(text).total_seconds()


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
