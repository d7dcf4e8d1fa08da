"""XComs, as a running try pushes and pulls them."""

from __future__ import annotations

import json

import pytest

from evenflow.api import limits
from evenflow.client.execution import ExecutionClient
from evenflow.core.ending import Ending
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.wire import messages as m
from evenflow.wire import questions as q
from tests.api.world import World


async def pull(
    client: ExecutionClient, token: str, task_id: str, map_index: int | None = None, key: str = "return_value"
) -> object:
    answer = await client.pull_xcom(token, m.XComPull(task_id=task_id, key=key, map_index=map_index))
    return json.loads(answer.value) if answer.value is not None else ("found null" if answer.found else "nothing")


async def finish(client: ExecutionClient, world: World, epoch: int, result: object) -> None:
    report = m.Report(token=world.try_token(epoch), ending=Ending(outcome="success", result=json.dumps(result).encode()))
    assert (await client.report(m.Reports(reports=[report]))).accepted == 1
    world.end(epoch)


async def test_a_value_of_the_run_is_pulled(client: ExecutionClient, world: World) -> None:
    version = world.add_dag()
    run, other = world.run(version), world.run(version, "r2")
    for epoch, key in ((1, run), (2, other)):
        world.dispatch(key, epoch)
        await finish(client, world, epoch, {"of": epoch, "text": "ä☃"})
    world.dispatch(run, 3, task=2)
    assert await pull(client, world.try_token(3), "extract") == {"of": 1, "text": "ä☃"}
    assert await pull(client, world.try_token(3), "extract", key="other") == "nothing"


async def test_values_of_a_mapped_task_come_in_map_order(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    for index in (2, 0, 10, 1):
        world.dispatch(run, 100 + index, task=1, map_index=index)
        await finish(client, world, 100 + index, {"index": index})
    world.dispatch(run, 3, task=2)
    token = world.try_token(3)
    assert await pull(client, token, "clean") == [{"index": n} for n in (0, 1, 2, 10)]
    assert await pull(client, token, "clean", map_index=10) == {"index": 10}
    assert await pull(client, token, "clean", map_index=5) == "nothing"
    assert await pull(client, token, "clean", key="other") == []


async def test_pushing_again_replaces(client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    token = world.try_token(1)
    for value in (b"[1, 2]", b"null", b'{"a": 1}'):
        await client.push_xcom(token, m.XComPush(key="k", value=value))
        assert await pull(client, token, "extract", key="k") == (json.loads(value) if value != b"null" else None)
    assert world.one("select value, length, epoch from xcom") == ({"a": 1}, 1, 1)


async def test_what_an_earlier_try_pushed_is_gone(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 5)
    await client.push_xcom(world.try_token(5), m.XComPush(key="k", value=b"1"))
    world.end(5)
    world.dispatch(run, 3, tries=2)  # epochs of two schedulers need not grow
    assert await pull(client, world.try_token(3), "extract", key="k") == "nothing"
    await client.push_xcom(world.try_token(3), m.XComPush(key="k", value=b"2"))
    assert await pull(client, world.try_token(3), "extract", key="k") == 2


async def test_pulling_from_a_task_that_does_not_exist(client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused, match="DAG 'sales' has no task 'exract' to pull from"):
        await pull(client, world.try_token(1), "exract")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("k", b'"' + b"x" * MAX_INLINE_XCOM + b'"', "The XCom 'k' is 262,146 bytes as JSON, above the limit of 262,144"),
        ("k", b"{", "The XCom 'k' cannot be stored"),
        ("k", b'"\\u0000"', "The XCom 'k' cannot be stored"),
        ("k", b"\xff", "The XCom 'k' is not JSON"),
        ("", b"1", "An XCom key has 1 to 250 characters"),
        ("x" * 251, b"1", "An XCom key has 1 to 250 characters"),
        ("a\0b", b"1", "cannot"),
    ],
)
async def test_what_cannot_be_pushed(client: ExecutionClient, world: World, key: str, value: bytes, said: str) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    with pytest.raises(ApiRefused, match=said):
        await client.push_xcom(world.try_token(1), m.XComPush(key=key, value=value))
    assert world.one("select count(*) from xcom") == 0


async def test_a_list_of_values_has_a_limit(client: ExecutionClient, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.run(world.add_dag())
    for index in range(3):
        world.dispatch(run, index + 1, task=1, map_index=index)
        await finish(client, world, index + 1, "x" * 100)
    world.dispatch(run, 9, task=2)
    monkeypatch.setattr(limits, "XCOM_LIST", 306)
    assert await pull(client, world.try_token(9), "clean") == ["x" * 100] * 3
    monkeypatch.setattr(limits, "XCOM_LIST", 305)
    with pytest.raises(ApiRefused, match="The list of all values 'return_value' of task 'clean' is above the limit"):
        await pull(client, world.try_token(9), "clean")


async def test_the_newest_progress_replaces_the_one_before(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    token = world.try_token(1)
    await client.send_progress(token, m.Progress(label="reading", done=1, total=10))
    await client.send_progress(token, m.Progress(label="writing", done=2, total=5, detail={"stage": 3}))
    assert world.all("select run_key, epoch, payload from task_progress") == [
        (run, 1, {"label": "writing", "done": 2, "total": 5, "detail": {"stage": 3}})
    ]
    with pytest.raises(ApiRefused, match="The progress is above the limit"):
        await client.send_progress(token, m.Progress(label="x" * 9_000, done=0, total=0))


async def test_an_instance_asks_which_element_is_its_own(client: ExecutionClient, world: World) -> None:
    """Without the list: instances that pushed nothing are passed over, as they are counted."""
    run = world.run(world.add_dag())
    for index in (4, 0, 2):
        world.dispatch(run, 100 + index, task=1, map_index=index)
        await finish(client, world, 100 + index, index)
    world.dispatch(run, 3, task=2)
    token = world.try_token(3)
    found = [
        await client.ask(token, "element", q.AskElement(task_id="clean", key="return_value", index=index)) for index in range(4)
    ]
    assert found == [q.Element(length=3, map_index=map_index) for map_index in (0, 2, 4, None)]
    with pytest.raises(ApiRefused, match="no task 'missing'"):
        await client.ask(token, "element", q.AskElement(task_id="missing", key="return_value", index=0))
    with pytest.raises(ApiRefused, match="An index is 0 to"):
        await client.ask(token, "element", q.AskElement(task_id="clean", key="return_value", index=-1))


async def test_the_elements_are_counted_once_for_all_who_ask(client: ExecutionClient, world: World) -> None:
    """Until an operator changes the run: what a thousand instances ask for costs one list."""
    run = world.run(world.add_dag())
    for index in (0, 2):
        world.dispatch(run, 100 + index, task=1, map_index=index)
        await finish(client, world, 100 + index, index)
    world.dispatch(run, 3, task=2)
    token = world.try_token(3)

    async def second() -> int | None:
        asked = q.AskElement(task_id="clean", key="return_value", index=1)
        answer = await client.ask(token, "element", asked)
        assert isinstance(answer, q.Element)
        return answer.map_index

    assert await second() == 2
    world.conn.execute("update xcom set map_index = 5 where map_index = 2")
    assert await second() == 5  # the instances are still running, so that nothing is kept
    world.conn.execute("update task_instance set state = 'success' where task_index = 1")
    assert await second() == 5
    world.conn.execute("update xcom set map_index = 7 where map_index = 5")
    assert await second() == 5
    world.conn.execute("update dag_run set clears = 1")
    assert await second() == 7
    world.conn.execute("delete from dispatch where epoch = 3")
    with pytest.raises(StaleEpoch):
        await second()


async def test_values_of_other_runs_of_the_dag(client: ExecutionClient, world: World) -> None:
    """By name, or the newest of those with earlier logical dates: never of another DAG, and never of a later date."""
    version = world.add_dag()
    first, second, own, later = (world.run(version, name) for name in ("first", "second", "own", "later"))
    for epoch, run in ((10, first), (20, second), (40, later)):
        world.dispatch(run, epoch)
        await client.push_xcom(world.try_token(epoch), m.XComPush(key="k", value=str(epoch).encode()))
    world.dispatch(own, 30, task=2)
    token = world.try_token(30)

    async def prior(key: str) -> str | None:
        answer = await client.ask(token, "prior_run", q.AskPriorRun(task_id="extract", key=key, map_index=-1))
        assert isinstance(answer, q.PriorRun)
        return answer.run_id

    assert [await prior("k"), await prior("nothing")] == ["second", None]
    found = await client.pull_xcom(token, m.XComPull(task_id="extract", key="k", map_index=-1, run_id="first"))
    assert found.value == b"10"
    world.dispatch(own, 31)
    await client.push_xcom(world.try_token(31), m.XComPush(key="k", value=b"31"))
    assert await prior("k") == "own"
    with pytest.raises(ApiRefused, match="DAG 'sales' has no run 'nowhere' to pull from"):
        await client.pull_xcom(token, m.XComPull(task_id="extract", key="k", map_index=-1, run_id="nowhere"))
    world.end(30)
    with pytest.raises(StaleEpoch):
        await prior("k")
