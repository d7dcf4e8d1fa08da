"""Specs that nobody honest sends: each is refused, in time that grows with its length alone (R-SE2)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from evenflow.api.specs import checked_spec
from evenflow.core import limits
from evenflow.core.model import DagSpec, DeadlineSpec, GroupSpec, MapInput, Mapping, RetryRuleSpec, RunParamSpec, Schedule, TaskSpec
from evenflow.errors import DagError, DagTooLarge
from tests.watchdog import within


def task(task_id: str = "t", **fields: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", **fields)


def each(over: int) -> Mapping:
    return Mapping(inputs=(MapInput(task=over),), kind="each")


def spec(*tasks: TaskSpec, **fields: Any) -> DagSpec:
    return DagSpec(dag_id="x", tasks=tasks or (task(),), **fields)


def nested(depth: int) -> MapInput:
    inner = MapInput(length=1)
    for _ in range(depth):
        inner = MapInput(combine="zip", parts=(inner,))
    return inner


MAPPED = Mapping(inputs=(MapInput(length=2),))
DEEP: Any = None
for _ in range(limits.MAX_JSON_DEPTH + 1):
    DEEP = [DEEP]

FORGED = {
    "a group that is its own parent": (spec(groups=(GroupSpec(group_id="g", parent=0),)), "does not come before it"),
    "groups in a ring": (
        spec(groups=(GroupSpec(group_id="a", parent=1), GroupSpec(group_id="b", parent=0))),
        "does not come before it",
    ),
    "a parent that there is not": (spec(groups=(GroupSpec(group_id="g", parent=10**6),)), "does not come before it"),
    "a parent below zero": (spec(groups=(GroupSpec(group_id="g"), GroupSpec(group_id="h", parent=-2))), "does not come before it"),
    "a group that there is not": (spec(task(group=3)), "in a group that does not exist"),
    "a group below zero": (spec(task(group=-1), groups=(GroupSpec(group_id="g"),)), "in a group that does not exist"),
    "two that follow each other": (
        spec(task("a", upstream=(1,), mapping=each(1)), task("b", upstream=(0,), mapping=each(0))),
        "has a cycle: a >> b >> a",
    ),
    "one that follows itself": (spec(task(upstream=(0,), mapping=each(0))), "has a cycle: t >> t"),
    "one that follows what is not mapped": (spec(task("a"), task("b", upstream=(0,), mapping=each(0))), "the one mapped task"),
    "one that follows two": (
        spec(task("a", mapping=MAPPED), task("b", mapping=MAPPED), task("c", upstream=(0, 1), mapping=each(0))),
        "the one mapped task",
    ),
    "a kind of mapping that there is not": (spec(task(mapping=dataclasses.replace(MAPPED, kind="wild"))), "is mapped as 'wild'"),
    "a group that follows": (spec(groups=(GroupSpec(group_id="g", mapping=each(0)),)), "is mapped as 'each'"),
    "a group mapped over nothing that is": (
        spec(groups=(GroupSpec(group_id="g", mapping=Mapping(inputs=(MapInput(task=7),))),)),
        "maps over a task that does not exist",
    ),
    "a mapped group in one": (
        spec(groups=(GroupSpec(group_id="a", mapping=MAPPED), GroupSpec(group_id="b", parent=0, mapping=MAPPED))),
        "inside another one",
    ),
    "a mapped task in a mapped group": (
        spec(task(group=0, mapping=MAPPED), groups=(GroupSpec(group_id="g", mapping=MAPPED),)),
        "inside mapped group 'g'",
    ),
    "an upstream that there is not": (spec(task(upstream=(7,))), "depends on a task that does not exist"),
    "an upstream below zero": (spec(task("a"), task("b", upstream=(-1,))), "depends on a task that does not exist"),
    "upstreams in disorder": (spec(task("a"), task("b"), task("c", upstream=(1, 0))), "not in ascending order"),
    "a combination of nothing": (spec(task(mapping=Mapping(inputs=(MapInput(combine="zip"),)))), "no combination"),
    "a combination that there is not": (
        spec(task(mapping=Mapping(inputs=(MapInput(combine="power", parts=(MapInput(length=2),)),)))),
        "a 'power' of lists",
    ),
    "a list of minus one": (spec(task(mapping=Mapping(inputs=(MapInput(length=-1),)))), "maps over -1 values"),
    "parts in parts": (spec(task(mapping=Mapping(inputs=(nested(limits.MAX_MAP_DEPTH),)))), "maps over too much"),
    "groups in groups": (
        spec(groups=tuple(GroupSpec(group_id=f"g{n}", parent=n - 1 if n else None) for n in range(limits.MAX_GROUP_DEPTH + 1))),
        "groups deep",
    ),
    "more edges than anyone draws": (
        spec(*(task(f"t{n}", upstream=tuple(range(min(n, 400)))) for n in range(1_000))),
        "edges between tasks (limit 200,000)",
    ),
    "an interval of 1e308 s": (
        spec(schedule=Schedule(kind="delta", every_s=1e308)),
        "schedule, every_s: 1e+308 is above 3,162,240,000",
    ),
    "a window of 1e308 s": (
        spec(schedule=Schedule(kind="delta", every_s=9.0, window_s=1e308)),
        "schedule, window_s: 1e+308 is above 3,162,240,000",
    ),
    "the year 9999": (spec(start_date="9999-12-31T23:59:59+00:00"), "not of the years 1900 to 2999"),
    "the year 1": (spec(end_date="0001-01-01T00:00:00+14:00"), "not of the years 1900 to 2999"),
    "a date that is none": (spec(schedule=Schedule(kind="dates", dates=("soon",))), "is no ISO 8601 time"),
    "dates without a zone": (spec(schedule=Schedule(kind="dates", dates=("2026-01-01",))), "has no UTC offset"),
    "dates in disorder": (
        spec(schedule=Schedule(kind="dates", dates=("2026-01-02T00:00:00+00:00", "2026-01-01T00:00:00+00:00"))),
        "not in ascending order",
    ),
    "more crons than anyone writes": (
        spec(schedule=Schedule(kind="cron", cron="0 0 1 1 *", also=("0 0 29 2 1",) * 1_000)),
        "schedule, also: 1,000 items (limit 99)",
    ),
    "a condition of conditions": (spec(schedule=Schedule(kind="assets", assets={"all": [DEEP]})), "no condition over assets"),
    "a default of lists in lists": (spec(params={"p": RunParamSpec(default=DEEP)}), "levels deep"),
    "a schema without end": (spec(params={"p": RunParamSpec(schema={"enum": ["x" * limits.MAX_SCHEMA_BYTES]})}), "schema: 65,5"),
    "a schema that is none": (spec(params={"p": RunParamSpec(schema={"type": 7})}), "This is no JSON Schema"),
    "a link that runs": (spec(owner_links={"me": "javascript:alert(1)"}), "that begins with one of: https://"),
    "a link of two lines": (spec(owner_links={"me": "https://x\n<script>"}), "that begins with one of: https://"),
    "a doc without end": (spec(doc="x" * (limits.MAX_DOC_CHARS + 1)), "doc: 262,145 characters (limit 262,144)"),
    "tags without end": (spec(tags=tuple(f"t{n}" for n in range(limits.MAX_NAMES + 1))), "tags: 1,001 items (limit 1,000)"),
    "a queue that no setting can list": (spec(task(queue="etl,gpu")), "queue: 'etl,gpu' is not"),
    "a queue without end": (spec(task(queue="q" * 251)), "queue: 251 characters (limit 250)"),
    "an event that there is not": (spec(task(callbacks=("on_sunday",))), "'on_sunday' is not one of on_execute_callback, "),
    "a rule that there is not": (
        spec(task(retry_rules=(RetryRuleSpec(action="wait"),))),
        "action: 'wait' is not one of retry, fail, default",
    ),
    "a hold that there is not": (spec(task(while_deferred={"pool": "eat"})), "'eat' is not one of hold, release"),
    "a timeout of 1e300 s": (spec(task(execution_timeout=1e300)), "execution_timeout: 1e+300 is above 31,622,400"),
    "a deadline of 1e300 s": (
        spec(deadlines=(DeadlineSpec(name="n", reference="queued_at", interval=1e300),)),
        "deadline 'n', interval: 1e+300 is above 31,622,400",
    ),
    "an id of Evenflow's own": (DagSpec(dag_id="evenflow_callbacks", tasks=(task(),)), "begins with 'evenflow_'"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_spec_is_refused(name: str) -> None:
    """R-SE2"""
    forged, said = FORGED[name]
    with within(20), pytest.raises(DagError) as raised:
        checked_spec(forged.to_json())
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"format": 1, "dag_id": "x", "tasks": [], "params": {"p": {"default": ' + "[" * 5_000 + "]" * 5_000 + "}}}",
        '{"format": 1, "dag_id": "x", "tasks": [{"task_id": "t", "operator": "o", "mapping": {"inputs": ['
        + '{"combine": "zip", "parts": [' * 2_000
        + '{"length": 1}'
        + "]}" * 2_000
        + "]}}]}",
        '{"format": 1, "dag_id": "x", "tasks": [], "start_date": 1e999}',
        '{"format": 1, "dag_id": "x", "tasks": [{"task_id": "t", "operator": "o", "upstream": [1e400]}]}',
        '{"format": [], "dag_id": {}, "tasks": 7}',
        "null",
        "7",
        "",
        '"\\ud800"',
    ],
)
def test_text_that_is_no_spec_is_refused(text: str) -> None:
    """R-SE2"""
    with within(20), pytest.raises(DagError):
        checked_spec(text)


def test_the_largest_spec_is_checked_in_one_pass() -> None:
    """A mapped group of many tasks and a deep chain of groups, each of which a walk per task would make quadratic."""
    groups = [GroupSpec(group_id="g0", mapping=MAPPED)]
    groups += [GroupSpec(group_id=f"g{n}", parent=n - 1) for n in range(1, limits.MAX_GROUP_DEPTH)]
    tasks = [task(f"t{n}", group=len(groups) - 1, upstream=(n - 1,) if n else ()) for n in range(20_000)]
    with within(60):
        assert len(checked_spec(spec(*tasks, groups=tuple(groups)).to_json()).tasks) == 20_000


def test_what_the_control_plane_would_refuse_is_said_when_the_dag_is_made() -> None:
    """One rule for both: what is accepted in a file is accepted by the API."""
    from evenflow import DAG, EmptyOperator, Param
    from evenflow.errors import BadId

    with pytest.raises(BadId, match="begins with 'evenflow_'"):
        DAG("evenflow_callbacks")
    with DAG("x", params={"p": Param("x", enum=["x", "y" * limits.MAX_SCHEMA_BYTES])}) as dag:
        EmptyOperator(task_id="t")
    with pytest.raises(DagTooLarge, match=r"params 'p', schema: 65,555 bytes of JSON \(limit 65,536\)"):
        dag.to_spec()


def test_what_is_stored_is_what_was_checked() -> None:
    text = spec(task(), params={"p": RunParamSpec(default=1, schema={"type": "integer"})}).to_json()
    assert json.loads(checked_spec(text).to_json()) == json.loads(text)
