"""What tries ask when they wait or trigger, and what people see and do with assets."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import AssetSpec, DagSpec, GroupSpec, MapInput, Mapping, RunParamSpec, Schedule, TaskSpec
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from evenflow.wire.code import pack
from tests.api.world import World
from tests.nesting import nested
from tests.world import CODE, CODE_HASH

DAY = "2026-03-01T00:00:00+00:00"

ORDERS = AssetSpec(name="orders", uri="s3://shop/orders", extra={"owner": "shop"})
ASKING = DagSpec(
    dag_id="asking",
    tasks=(TaskSpec(task_id="ask", operator="python", inlets=("orders", "daily")),),
    assets=(ORDERS,),
)
OTHER = DagSpec(
    dag_id="other",
    tasks=(
        TaskSpec(task_id="a", operator="python"),
        TaskSpec(task_id="g.b", operator="python", upstream=(0,), group=0, mapping=Mapping(inputs=(MapInput(name="x", length=3),))),
        TaskSpec(task_id="g.h.c", operator="python", upstream=(0,), group=1),
    ),
    groups=(GroupSpec(group_id="g"), GroupSpec(group_id="g.h", parent=0)),
    params={"n": RunParamSpec(default=1, schema={"type": "integer"})},
)


@pytest.fixture
def token(world: World) -> str:
    """Of a try of the task ``ask``."""
    run = world.run(world.add_dag(ASKING), "mine")
    return world.try_token(world.dispatch(run, 7, notify=False))


def on_day(world: World, run_key: int) -> int:
    world.conn.execute("update dag_run set logical_date = %s where run_key = %s", [DAY, run_key])
    return run_key


# -- how long a sensor has waited --------------------------------------------------------------------------------------


async def test_waited(client: ExecutionClient, world: World, token: str) -> None:
    assert await client.ask(token, "waited", q.AskWaited()) == q.Waited(waited_s=0.0)
    world.conn.execute("update task_instance set poking_since = now() - interval '1 minute'")
    answer = await client.ask(token, "waited", q.AskWaited())
    assert isinstance(answer, q.Waited)
    assert 60 <= answer.waited_s < 90
    world.end(7)
    with pytest.raises(StaleEpoch):
        await client.ask(token, "waited", q.AskWaited())


# -- states of other runs ----------------------------------------------------------------------------------------------


async def states(client: ExecutionClient, token: str, **question: Any) -> q.States:
    answer = await client.ask(token, "states", q.AskStates(**{"dag_id": "other", "logical_dates": [DAY], **question}))
    assert isinstance(answer, q.States)
    return answer


async def test_states_of_runs_and_tasks(client: ExecutionClient, world: World, token: str) -> None:
    run = on_day(world, world.run(world.add_dag(OTHER), "r1"))
    world.instance(run, 0, state="success")
    world.conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, 3)", [run])
    world.instance(run, 1, 0, state="failed")
    found = await states(client, token)
    assert [(r.run_id, r.logical_date, r.state, r.counts) for r in found.runs] == [("r1", DAY, "running", {})]
    assert found.missing == []
    (one,) = (await states(client, token, task_ids=["a", "g.h.c"])).runs
    assert one.counts == {"a": {"success": 1}, "g.h.c": {}}
    version = world.conn.execute("select version_key from dag_run where run_key = %s", [run]).fetchone()
    assert version is not None
    world.run(version[0], "by_name")
    (named,) = (await states(client, token, logical_dates=[], run_ids=["by_name", "nobody"])).runs
    assert (named.run_id, named.state) == ("by_name", "running")
    world.conn.execute("update dag_run set logical_date = null where run_id = 'by_name'")
    assert [run.logical_date for run in (await states(client, token, logical_dates=[], run_ids=["by_name"])).runs] == [None]
    (group,) = (await states(client, token, group_id="g")).runs
    assert group.counts == {"g.b": {"failed": 1, "scheduled": 2}, "g.h.c": {}}
    assert (await states(client, token, task_ids=["x"])).missing == ["x"]
    assert (await states(client, token, group_id="x")).missing == ["x"]
    assert (await states(client, token, logical_dates=["2026-03-02T00:00:00+00:00"])).runs == []
    assert (await states(client, token, dag_id="nobody")).missing is None
    with pytest.raises(ApiRefused, match="ISO 8601"):
        await states(client, token, logical_dates=["2026-03-02"])


# -- triggering --------------------------------------------------------------------------------------------------------


async def trigger(client: ExecutionClient, token: str, **question: Any) -> q.Triggered:
    answer = await client.ask(token, "trigger", q.AskTrigger(**{"dag_id": "other", **question}))
    assert isinstance(answer, q.Triggered)
    return answer


async def test_triggers_once_however_often_it_asks(client: ExecutionClient, world: World, token: str) -> None:
    world.add_dag(OTHER)
    first = await trigger(client, token, conf={"n": 5})
    assert (first.state, first.is_own) == ("queued", True)
    assert await trigger(client, token) == first
    world.end(7)
    later_try = world.try_token(world.dispatch(world.one("select run_key from dag_run where run_id = 'mine'"), 8, tries=2))
    assert await trigger(client, later_try) == first
    assert world.all("select run_type, params from dag_run where dag_id = 'other'") == [("triggered", {"n": 5})]
    assert world.all("select event, actor from run_event") == [("triggered", "task asking/mine/ask #0")]
    world.conn.execute("update task_instance set tries_before = 2")  # as an operator's clear leaves it
    assert (await trigger(client, later_try)).run_id != first.run_id


@pytest.mark.parametrize(
    ("conf", "flaw"),
    [
        ({"n": nested(33)}, "nested more than 32 levels"),
        ({"n": nested(900)}, "nested more than 32 levels"),
        ({"n": math.inf}, "holds inf"),
    ],
)
async def test_a_run_that_nobody_could_be_shown_is_not_made(
    client: ExecutionClient, world: World, token: str, conf: dict[str, Any], flaw: str
) -> None:
    """R-SE2: the list of all runs has its params, and workers are told them."""
    world.add_dag(OTHER)
    with pytest.raises(ApiRefused, match=f"The parameter 'n' .*{flaw}"):
        await trigger(client, token, conf=conf)
    assert world.one("select count(*) from dag_run where dag_id = 'other'") == 0


async def test_a_run_of_somebody_else(client: ExecutionClient, world: World, token: str) -> None:
    on_day(world, world.run(world.add_dag(dataclasses.replace(OTHER, reset_by=("ask*",))), "theirs", state="success"))
    found = await trigger(client, token, run_id="theirs")
    assert (found.run_id, found.state, found.is_own) == ("theirs", "success", False)
    same_date = await trigger(client, token, run_id="new", logical_date=DAY)
    assert (same_date.run_id, same_date.is_own) == ("theirs", False)
    reset = await trigger(client, token, run_id="theirs", reset=True)
    assert (reset.state, reset.is_own) == ("queued", True)
    assert await trigger(client, token, run_id="theirs", reset=True) == reset
    assert world.all("select payload from report") == [{"event": "clear", "actor": "task asking/mine/ask #0"}]


@pytest.mark.parametrize("reset_by", [(), ("payroll",), ("elsewhere:asking",)])
async def test_a_task_resets_no_run_that_it_did_not_make(
    client: ExecutionClient, world: World, token: str, reset_by: tuple[str, ...]
) -> None:
    """R-SE2. Unless its DAG is named by the one that is to be reset."""
    world.run(world.add_dag(dataclasses.replace(OTHER, reset_by=reset_by)), "theirs", state="success")
    with pytest.raises(ApiRefused, match=r"write into that DAG: reset_by=\['asking'\]") as refused:
        await trigger(client, token, run_id="theirs", reset=True)
    assert refused.value.status == 403
    assert world.one("select count(*) from report") == 0


async def test_a_task_resets_the_run_that_it_made_before_it_was_cleared(client: ExecutionClient, world: World, token: str) -> None:
    """R-SE5: and that stands in the audit."""
    world.add_dag(OTHER)
    made = await trigger(client, token, run_id="child")
    world.conn.execute("update task_instance set tries_before = 2")
    again = await trigger(client, token, run_id="child", reset=True)
    assert (again.run_id, again.is_own) == (made.run_id, True)
    assert world.all("select payload from report") == [{"event": "clear", "actor": "task asking/mine/ask #2"}]
    assert world.all("select actor, action, object from audit_event") == [("task asking/mine/ask", "run.reset", "other/child")]


@pytest.mark.parametrize(
    ("maker", "asker"), [(("ask #1", -1), ("ask", -1)), (("ask", 3), ("ask[3]", -1)), (("ask[3]", -1), ("ask", 3))]
)
async def test_a_task_resets_no_run_of_one_whose_name_is_like_its_own(
    client: ExecutionClient, world: World, maker: tuple[str, int], asker: tuple[str, int]
) -> None:
    """R-SE2: who made a run is a task instance, and no text."""
    names = ("ask", "ask #1", "ask[3]")
    run = world.run(
        world.add_dag(DagSpec(dag_id="asking", tasks=tuple(TaskSpec(task_id=n, operator="python") for n in names))), "mine"
    )
    world.add_dag(OTHER)
    theirs, ours = (
        world.try_token(world.dispatch(run, epoch, task=names.index(task_id), map_index=map_index))
        for epoch, (task_id, map_index) in enumerate((maker, asker), 7)
    )
    made = await trigger(client, theirs, run_id="child")
    assert (await trigger(client, theirs, run_id="child", reset=True)) == made
    assert not (await trigger(client, ours, run_id="child")).is_own
    with pytest.raises(ApiRefused, match=r"was not triggered by this task"):
        await trigger(client, ours, run_id="child", reset=True)


async def test_refusals(client: ExecutionClient, world: World, token: str) -> None:
    with pytest.raises(ApiRefused, match="no DAG 'other' to trigger"):
        await trigger(client, token)
    world.add_dag(OTHER)
    with pytest.raises(ApiRefused, match="no parameter 'm'"):
        await trigger(client, token, conf={"m": 1})
    world.conn.execute("update dag set is_paused = true")
    with pytest.raises(ApiRefused, match="is paused"):
        await trigger(client, token, fail_when_paused=True)
    world.end(7)
    with pytest.raises(StaleEpoch):
        await trigger(client, token)


# -- assets ------------------------------------------------------------------------------------------------------------


async def deliver(processor: ExecutionClient, *specs: DagSpec) -> None:
    seen = m.FileSeen(file="pipeline.py", fingerprint="1")
    await processor.files_seen(m.FilesSeen(bundle="main", files=[seen]))
    await processor.put_code(CODE_HASH, pack(CODE))
    parsed = m.ParsedFile(
        bundle="main", file="pipeline.py", fingerprint="1", seconds=0.1, specs=[s.to_json() for s in specs], code_hash=CODE_HASH
    )
    assert (await processor.file_parsed(parsed)).errors == []


def consumer(condition: Any) -> DagSpec:
    return DagSpec(
        dag_id="use",
        tasks=(TaskSpec(task_id="t", operator="python"),),
        schedule=Schedule(kind="assets", assets=condition),
        assets=(ORDERS,),
    )


async def test_what_dag_files_declare(processor: ExecutionClient, rest: RestClient, world: World) -> None:
    making = DagSpec(dag_id="making", tasks=(TaskSpec(task_id="t", operator="python", outlets=("orders",)),), assets=(ORDERS,))
    await deliver(processor, making, consumer({"any": ["orders", {"alias": "daily"}]}))
    (found,) = (await rest.list_assets()).items
    assert found.producers == ["making"]
    assert (found.name, found.uri, found.extra, found.consumers) == ("orders", "s3://shop/orders", {"owner": "shop"}, ["use"])
    assert (await rest.emit_asset_event(asset="orders")).dag_ids == ["use"]
    assert world.one("select count(*) from asset_queue") == 1
    await deliver(processor, dataclasses.replace(making, tasks=ASKING.tasks), consumer({"alias": "daily"}))
    (found,) = (await rest.list_assets()).items
    assert (found.producers, found.consumers) == ([], [])
    assert world.one("select count(*) from asset_queue") == 0, "what is waited for no more is queued no more"


async def test_an_event_by_hand(processor: ExecutionClient, rest: RestClient, world: World) -> None:
    await deliver(processor, ASKING, consumer("orders"))
    emitted = await rest.emit_asset_event(asset="orders", extra={"rows": 3})
    (event,) = (await rest.list_asset_events(asset="orders")).items
    assert (event.event_id, event.extra, event.actor, event.task_id) == (emitted.event_id, {"rows": 3}, "ada", None)
    assert (await rest.list_asset_events()).items == [event]
    with pytest.raises(ApiRefused, match="no asset 'x'"):
        await rest.emit_asset_event(asset="x")
    with pytest.raises(ApiRefused, match="above the limit"):
        await rest.emit_asset_event(asset="orders", extra={"x": "y" * 20_000})


async def test_events_for_tasks(client: ExecutionClient, world: World, token: str) -> None:
    world.conn.execute("insert into asset (name, uri) values ('orders', 's3://shop/orders')")
    for day in (1, 2):
        world.conn.execute(
            "insert into asset_event (asset, alias, extra, dag_id, run_id, task_id, map_index, actor)"
            " values ('orders', 'daily', %s, 'd', 'r', 't', -1, 'scheduler')",
            [json.dumps({"day": day})],
        )
    world.conn.execute(
        "insert into run_asset_event select run_key, event_id from dag_run, asset_event where extra = '{\"day\": 2}'"
    )
    answers = {
        "inlet": await client.ask(token, "inlet_events", q.AskInletEvents(name="orders")),
        "alias": await client.ask(token, "inlet_events", q.AskInletEvents(name="daily", is_alias=True)),
        "triggering": await client.ask(token, "triggering_events", q.AskTriggeringEvents()),
    }
    days = {name: [event.extra["day"] for event in answer.events] for name, answer in answers.items()}
    assert days == {"inlet": [1, 2], "alias": [1, 2], "triggering": [2]}
    named = await client.ask(token, "inlet_assets", q.AskInletAssets(name="orders"))
    of_alias = await client.ask(token, "inlet_assets", q.AskInletAssets(name="daily", is_alias=True))
    assert [asset.name for asset in (*named.assets, *of_alias.assets)] == ["orders", "orders"]
    with pytest.raises(ApiRefused, match="no inlet of task 'ask'"):
        await client.ask(token, "inlet_events", q.AskInletEvents(name="secrets"))
