"""Drives the Task Execution API with the SDK's own client, and prints what its models made of the answers."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.airflow.installed import configure

configure()
from airflow.api_fastapi.execution_api.datamodels.taskinstance import TIRunContext  # noqa: E402
from airflow.api_fastapi.execution_api.versions import bundle  # noqa: E402
from airflow.sdk import Param  # noqa: E402
from airflow.sdk.api.datamodels._generated import HITLUser  # noqa: E402
from airflow.sdk.execution_time.comms import AwaitInputTask, DeferTask, RescheduleTask, SkipDownstreamTasks  # noqa: E402
from airflow.sdk.serde import deserialize  # noqa: E402
from cadwyn import generate_versioned_models  # noqa: E402
from statuses import status_of  # noqa: E402

from evenflow.airflow.comms import client_of  # noqa: E402
from evenflow.contracts.airflow.handler import ExecutionApi  # noqa: E402
from evenflow.contracts.airflow.of_try import AirflowTry, instance_id  # noqa: E402
from evenflow.core.deferral import AIRFLOW_TRIGGER  # noqa: E402
from evenflow.errors import ApiRefused  # noqa: E402
from evenflow.sdk.secrets import outside  # noqa: E402
from evenflow.sdk.trying.runner import TryContext  # noqa: E402

MODELS = generate_versioned_models(bundle)  # of each date, as Airflow's own server has them
NOW = datetime(2026, 3, 1, tzinfo=UTC)
ID = instance_id(5)
WAITS = AwaitInputTask(timeout=timedelta(seconds=9), next_method="go", next_kwargs={})


class Answers:
    """In the place of a worker: XComs of two tasks, a connection, a variable, runs of another DAG."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}
        self.asked: list[str] = []
        self.kept: dict[str, Any] = {}
        self.of_assets: dict[tuple[str, str], Any] = {}

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        found = {("one", -1): 7, ("many", None): [1, 2, 3], ("many", 1): 2}
        return ((task_id, map_index) in found and key == "return_value"), found.get((task_id, map_index))

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(question)
        match question, arguments.get("name"):
            case "connection", "there":
                return {"text": "postgresql://me:open-sesame@host:5432/db?sslmode=require"}
            case "variable", "there":
                return {"text": "42"}
            case (("connection" | "variable"), "forbidden"):
                raise ApiRefused(403, "not for this DAG")
            case (("connection" | "variable"), _):
                return {"text": None, "similar": []}
            case "states", _:
                runs = {"r1": ("success", {"a": {"success": 1}}), "r2": ("failed", {"a": {"failed": 2}})}
                wanted = arguments.get("run_ids") or list(runs)
                told = [
                    {"run_id": run, "state": runs[run][0], "counts": runs[run][1], "logical_date": None}
                    for run in wanted
                    if run in runs
                ]
                return {"runs": told, "missing": []}
            case "trigger", _:
                return {"run_id": arguments["run_id"], "state": "queued", "is_own": arguments["run_id"] == "new"}
            case "previous_run", _:
                return {"start_date": NOW.isoformat()}
            case "once", name:
                return {"key": "1", "kept": self.kept.get(name)}
            case "set_once", name:
                if arguments.get("replaces"):
                    self.kept[name] = arguments["kept"]
                self.kept.setdefault(name, arguments["kept"])
                return {"key": "1", "kept": self.kept[name]}
            case "forget_once", name:
                self.kept = {} if name is None else {kept: self.kept[kept] for kept in self.kept if kept != name}
            case "asset_value", name:
                return {"kept": self.of_assets.get((arguments["asset"], name))}
            case "set_asset_value", name:
                self.of_assets[arguments["asset"], name] = arguments["kept"]
            case "forget_asset_values", name:
                of = arguments["asset"]
                self.of_assets = {at: kept for at, kept in self.of_assets.items() if at[0] != of or name not in (None, at[1])}
            case "inlet_events", _:
                old, new = NOW, NOW + timedelta(days=1)
                made = {"asset": "orders", "uri": "s3://o", "partition": None, "dag_id": "e", "run_id": "r", "map_index": -1}
                return {
                    "events": [{**made, "at": at.isoformat(), "extra": {"n": n}, "task_id": "t"} for n, at in enumerate((old, new))]
                }
            case "inlet_assets", name:
                there = {"name": "orders", "uri": "s3://o", "group": "asset", "extra": {}}
                return {"assets": [there] if name in ("orders", "alias") else []}
            case "triggering_events", _:
                of = {"task_id": "t", "dag_id": "e", "run_id": "r", "map_index": -1, "at": NOW.isoformat()}
                return {"events": [{"asset": "orders", "uri": "s3://o", "extra": {}, "partition": None, **of}]}
            case "waited", _:
                return {"waited_s": 5.0}
        return {}


def of_try(answers: Answers, **more: Any) -> AirflowTry:
    context = TryContext(
        dag_id="d",
        run_id="r",
        task_id="t",
        run_after=NOW,
        logical_date=NOW,
        params={"p": 1},
        try_number=1,
        max_tries=3,
        epoch=5,
        **more,
    )
    return AirflowTry(context, answers, {"one": 0, "many": 1, "t": 2, "skipped": 3}, frozenset({"many"}))  # type: ignore[arg-type]


def main() -> dict[str, Any]:
    answers = Answers()
    api = ExecutionApi(of_try(answers))
    client = client_of(api)
    told: dict[str, Any] = {}
    with outside.reaching(answers):
        run = client.task_instances.start(ID, 1, NOW)
        told["run"] = json.loads(run.model_dump_json())
        told["one"] = client.xcoms.get("d", "r", "one", "return_value").value
        told["none"] = client.xcoms.get("d", "r", "one", "other").value
        told["count"] = client.xcoms.head("d", "r", "many", "return_value").len
        told["item"] = client.xcoms.get_sequence_item("d", "r", "many", "return_value", 1).root
        told["beyond"] = client.xcoms.get_sequence_item("d", "r", "many", "return_value", 3).error
        told["slice"] = client.xcoms.get_sequence_slice("d", "r", "many", "return_value", None, None, 2).root
        told["unmapped slice"] = client.xcoms.get_sequence_slice("d", "r", "one", "return_value", None, None, None).root
        client.xcoms.set("d", "r", "t", "k", {"a": 1})
        client.xcoms.set(
            "d", "r", "t", "return_value", {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]}, mapped_length=1
        )
        told["pushed"] = answers.pushed
        told["other dag"] = status_of(lambda: client.xcoms.get("e", "r", "one", "return_value"))
        connection = client.connections.get("there")
        told["connection"] = json.loads(connection.model_dump_json(by_alias=True))
        told["no connection"] = client.connections.get("missing").error
        told["forbidden"] = client.connections.get("forbidden").error
        told["variable"], told["no variable"] = client.variables.get("there").value, client.variables.get("missing").error
        client.variables.set("new", "1", "why")
        client.variables.delete("new")
        told["keys"] = status_of(lambda: client.variables.keys())
        told["tasks"] = client.task_instances.get_count(dag_id="e", task_ids=["a"], run_ids=["r1", "r2"], states=["success"]).count
        told["states"] = client.task_instances.get_task_states(dag_id="e", run_ids=["r1", "r2"]).task_states
        told["runs"] = client.dag_runs.get_count(dag_id="e", run_ids=["r1", "r2"], states=["failed"]).count
        told["all runs"] = status_of(lambda: client.dag_runs.get_count(dag_id="e", states=["failed"]))
        told["run state"] = client.dag_runs.get_state("e", "r2").state
        told["triggered"] = client.dag_runs.trigger("e", "new", {"a": 1}).ok
        told["exists"] = client.dag_runs.trigger("e", "old").error
        told["previous"] = json.loads(client.task_instances.get_previous_successful_dagrun(ID).model_dump_json())["start_date"]
        told["first look"] = client.task_instances.get_reschedule_start_date(ID).start_date is not None
        told["inactive"] = client.task_instances.validate_inlets_and_outlets(ID).inactive_assets
        client.task_instances.heartbeat(ID, 1)
        client.task_instances.set_rtif(ID, {"bash_command": "echo 1", "env": None})
        client.task_instances.skip_downstream_tasks(ID, SkipDownstreamTasks(tasks=["skipped"]))
        client.task_instances.succeed(ID, NOW, [], [], None)
        told["success"] = (api.tasks.ending.outcome, api.tasks.ending.skip)
        told["result"] = json.loads(api.tasks.ending.result or b"null")
        told["lengths"] = [api.tasks.ending.length]
        client.xcoms.set("d", "r", "t", "return_value", "s3://lake/a-list", mapped_length=3)
        client.task_instances.succeed(ID, NOW, [], [], None)
        told["lengths"].append(api.tasks.ending.length)
        client.task_instances.retry(ID, NOW, None, retry_delay_seconds=7.0)
        told["retry"] = (api.tasks.ending.outcome, api.tasks.ending.delay_s)
        client.task_instances.finish(ID, "failed", NOW, None)
        told["fail"] = api.tasks.ending.outcome
        client.task_instances.reschedule(
            ID, RescheduleTask(reschedule_date=datetime.now(UTC) + timedelta(seconds=50), end_date=NOW)
        )
        told["reschedule"] = 40 < api.tasks.ending.delay_s < 60
        client.task_instances.defer(
            ID,
            DeferTask(
                classpath="a.B",
                trigger_kwargs={"x": 1},
                next_method="go",
                next_kwargs={"y": 2},
                trigger_timeout=timedelta(seconds=9),
            ),
        )
        told["defer"] = [
            api.tasks.ending.defer.trigger_kwargs,
            api.tasks.ending.defer.method,
            api.tasks.ending.defer.kwargs,
            api.tasks.ending.defer.timeout_s,
        ]
        asks = {"ti_id": ID, "subject": "Where?", "params": {"n": Param(7, type="integer").serialize()}}
        told["waits for nothing"] = status_of(lambda: client.task_instances.await_input(ID, WAITS))
        told["too many"] = status_of(lambda: client.hitl.add_response(options=[str(n) for n in range(11)], **asks))
        users = [HITLUser(id="1", name="grace")]
        posted = client.hitl.add_response(options=["a", "b"], defaults=["b"], multiple=True, assigned_users=users, **asks)
        told["posted"] = [posted.options, posted.defaults, posted.multiple]
        client.task_instances.await_input(ID, WAITS)
        waits = api.tasks.ending.defer
        question = json.loads(waits.trigger_kwargs["question"])
        told["question"] = [question[name] for name in ("choices", "default", "multiple", "who")]
        told["waits"] = [waits.method, waits.kwargs, waits.timeout_s, waits.queue]
        kept = {"trigger": waits.trigger, "method": waits.method, "trigger_kwargs": waits.trigger_kwargs}
        said = {"choice": ["a"], "values": {"n": 8}, "answered_by": "grace", "answered_at": NOW.isoformat()}
        for name, how in (("answered", {"purpose": "event", "event": json.dumps(said)}), ("unanswered", {"purpose": "timeout"})):
            again = client_of(ExecutionApi(of_try(answers, resumed={**kept, **how}))).task_instances.start(ID, 1, NOW)
            event = deserialize(again.next_kwargs)["event"]
            told[name] = [event[key] for key in ("chosen_options", "params_input", "responded_by_user", "timedout")]
            told[f"{name} at"] = event["responded_at"] if name == "answered" else event["responded_at"] > NOW
        question["default"] = None
        none = {**kept, "trigger_kwargs": {"question": json.dumps(question)}, "purpose": "timeout"}
        again = client_of(ExecutionApi(of_try(answers, resumed=none))).task_instances.start(ID, 1, NOW)
        told["no answer"] = again.next_kwargs["event"]["error_type"]
        told["nothing kept"] = client.task_state_store.get(ID, "k").error
        client.task_state_store.set(ID, "k", {"job": 7}, None)
        told["kept"] = client.task_state_store.get(ID, "k").value
        client.task_state_store.set(ID, "k", {"job": 8}, datetime.now(UTC) - timedelta(seconds=1))
        told["over"] = client.task_state_store.get(ID, "k").error
        client.task_state_store.set(ID, "other", 1, None)
        client.task_state_store.clear(ID)
        told["cleared"] = client.task_state_store.get(ID, "other").error
        store = client.asset_state_store
        told["of no asset"] = store.get("k", name="orders").error
        store.set("k", {"n": 1}, name="orders")
        store.set("k", {"n": 2}, name="orders")
        store.set("k", None, uri="s3://o")
        told["of assets"] = [store.get("k", name="orders").value, store.get("k", uri="s3://o").value]
        store.set("l", 1, name="orders")
        store.delete("k", name="orders")
        told["deleted"] = [store.get("k", name="orders").error, store.get("l", name="orders").value]
        store.clear(name="orders")
        told["cleared asset"] = [store.get("l", name="orders").error, store.get("k", uri="s3://o").value]
        events = client.asset_events.get(name="orders", ascending=False, limit=1).asset_events
        told["events"] = [(event.asset.uri, event.extra, event.source_task_id) for event in events]
        told["asset"] = client.assets.get(name="orders").uri
        told["assets of an alias"] = [asset.name for asset in client.assets.get_by_alias("alias").assets]
        told["no asset"] = client.assets.get(uri="s3://none").error
        resumed = {
            "purpose": "event",
            "trigger": AIRFLOW_TRIGGER,
            "method": "go",
            "kwargs": {"y": 2},
            "event": {"z": 3},
            "began_s": 60.0,
        }
        again = client_of(ExecutionApi(of_try(answers, resumed=resumed))).task_instances.start(ID, 1, NOW)
        told["resumed"] = [again.next_method, again.next_kwargs, again.start_date < datetime.now(UTC)]
        late = client_of(ExecutionApi(of_try(answers, resumed={**resumed, "purpose": "timeout"}))).task_instances.start(ID, 1, NOW)
        told["late"] = [late.next_method, late.next_kwargs]
        told["other date"] = api.handle("GET", "/variables/there", "", b"", "2025-04-28").status
        told["other try"] = status_of(lambda: client.task_instances.heartbeat(uuid.UUID(int=1), 1))
        told["no request"] = api.handle("PATCH", f"/task-instances/{ID}/state", "", b'{"state": ').status
        by_asset = ExecutionApi(of_try(answers, run_type="asset_triggered"))
        for date in ("2026-06-30", "2026-04-06"):
            begun = by_asset.handle("PATCH", f"/task-instances/{ID}/run", "", b"{}", date).body
            MODELS[date][TIRunContext].model_validate_json(begun)
            told[f"event of {date}"] = sorted(json.loads(begun)["dag_run"]["consumed_asset_events"][0])
    return told


print(json.dumps(main(), default=str))
