"""Reports: stored together, refused one by one, and harmless when they come twice."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.limits import REPORT_AGE
from evenflow.api.tokens import TryToken, mint
from evenflow.api.vault import Vault
from evenflow.client.execution import ExecutionClient
from evenflow.core.ending import AssetChange, Defer, Ending
from evenflow.core.limits import MAX_DEFERRED_BYTES
from evenflow.store.serving.sealed import WAITING
from evenflow.wire import messages as m
from tests.api.world import World, new_worker
from tests.nesting import nested
from tests.tokens import key_state


def success(token: str, result: object = None, **other: Any) -> m.Report:
    raw = None if result is None else json.dumps(result).encode()
    return m.Report(token=token, ending=Ending(outcome="success", result=raw, **other))


async def test_an_exit_is_stored_as_the_scheduler_reads_it(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 5)
    report = m.Report(
        token=world.try_token(5),
        age_s=10.0,
        ending=Ending(
            outcome="failed", ran_s=2.5, exit_code=-9, reason="killed\0 by signal 9", error_types=["builtins.ValueError"]
        ),
    )
    assert await client.report(m.Reports(reports=[report])) == m.ReportsAnswer(accepted=1)
    row = world.one("select run_key, kind::text, epoch, payload, extract(epoch from now() - at)::float from report")
    assert row[:3] == (run, "exit", 5)
    assert row[3] == {
        "outcome": "failed",
        "exit_code": -9,
        "reason": "killed by signal 9",
        "error_types": ["builtins.ValueError"],
        "ran_s": 2.5,
    }
    assert 9.9 < row[4] < 12


async def test_what_no_database_could_apply_is_bounded_or_refused(client: ExecutionClient, world: World) -> None:
    """The scheduler applies reports of many runs in one transaction: none may fail there for what it says."""
    run = world.run(world.add_dag())
    world.dispatch(run, 5)
    change = AssetChange(asset="\u4e2d" * 501, uri="x")
    reports = [success(world.try_token(5), ran_s=1e300), success(world.try_token(5), produced=[change])]
    answer = await client.report(m.Reports(reports=reports))
    assert (answer.accepted, answer.refused_at) == (1, [1])
    assert world.one("select (payload ->> 'ran_s')::float from report") == REPORT_AGE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (AssetChange(asset="a", uri="a", extra={"n": nested(40)}), "is nested more than 32 levels deep"),
        (AssetChange(asset="a", uri="a", extra={"n": "x" * 20_000}), "above the limit of 16,384 bytes"),
        (AssetChange(asset="a", uri="a" * 2_000), "The URI of the asset 'a' is above the limit"),
    ],
)
async def test_what_a_task_says_of_an_asset_is_bounded(
    client: ExecutionClient, world: World, change: AssetChange, words: str
) -> None:
    """R-SE2: who looks at the events of an asset reads as many at once, and a task's process says what it likes."""
    world.dispatch(world.run(world.add_dag()), 5)
    answer = await client.report(m.Reports(reports=[success(world.try_token(5), produced=[change])]))
    assert (answer.accepted, answer.refused_at) == (0, [0])
    assert words in answer.refused[0]


async def test_absent_facts_are_absent(client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 5)
    token = world.try_token(5)
    await client.report(m.Reports(reports=[m.Report(token=token), success(token)]))
    assert world.all("select kind::text, payload from report order by report_id") == [
        ("started", None),
        ("exit", {"outcome": "success"}),
    ]


async def test_schedulers_are_woken_once_a_batch(client: ExecutionClient, world: World, database_url: str) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 51):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    with psycopg.connect(database_url, autocommit=True) as listening:
        listening.execute("listen inbox")
        await client.report(m.Reports(reports=[success(world.try_token(e)) for e in range(1, 51)]))
        woken = await asyncio.to_thread(lambda: list(listening.notifies(timeout=0.3)))
    assert len(woken) == 1


@pytest.mark.parametrize(
    ("value", "length"),
    [([1, 2, 3], 3), ({"a": 1, "b": None}, 2), ("text", None), (7, None), (False, None), ([], 0), ("5" * 200_000, None)],
)
async def test_a_result_becomes_the_return_value(client: ExecutionClient, world: World, value: object, length: int | None) -> None:
    run = world.run(world.add_dag())
    world.dispatch(run, 5)
    await client.report(m.Reports(reports=[success(world.try_token(5), value)]))
    assert world.one("select run_key, task_index, map_index, key, value, length, epoch from xcom") == (
        run,
        0,
        -1,
        "return_value",
        value,
        length,
        5,
    )


async def test_a_result_of_null_is_not_stored(client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 5)
    report = m.Report(token=world.try_token(5), ending=Ending(outcome="success", result=b"null"))
    assert (await client.report(m.Reports(reports=[report]))).accepted == 1
    assert world.one("select count(*) from xcom") == 0


async def test_the_result_of_a_past_epoch_is_not_stored(client: ExecutionClient, world: World) -> None:
    """R-CS3: the report is recorded, what it brings is not."""
    world.dispatch(world.run(world.add_dag()), 5)
    token = world.try_token(5)
    world.end(5)
    assert (await client.report(m.Reports(reports=[success(token, [1])]))).accepted == 1
    assert world.one("select count(*) from report") == 1
    assert world.one("select count(*) from xcom") == 0


async def test_a_result_waits_for_nobody_who_ends_the_try(client: ExecutionClient, world: World) -> None:
    """A dispatch that a scheduler is deleting at this moment is over; the report neither blocks nor brings its result."""
    world.dispatch(world.run(world.add_dag()), 5)
    token = world.try_token(5)
    with world.conn.transaction():
        world.end(5)
        await asyncio.wait_for(client.report(m.Reports(reports=[success(token, [1])])), 5)
    assert world.one("select count(*) from xcom") == 0


async def test_a_batch_that_comes_again_changes_nothing_that_counts(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 31):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    batch = m.Reports(reports=[success(world.try_token(e), {"n": e}) for e in range(1, 31)])
    answers = await asyncio.gather(*(client.report(batch) for _ in range(8)))
    assert {answer.accepted for answer in answers} == {30}
    assert world.one("select count(*), count(distinct value) from xcom") == (30, 30)
    twice = m.Reports(reports=[*batch.reports, *reversed(batch.reports)])
    assert (await client.report(twice)).accepted == 60
    assert world.one("select count(*) from xcom") == 30


async def test_a_forged_or_expired_token_refuses_only_its_report(
    client: ExecutionClient, world: World, api_url: str, worker_token: str
) -> None:
    """R-CS1"""
    fleet = ExecutionClient(api_url, worker_token)
    await new_worker(fleet)  # so it is listed, and known
    await fleet.close()
    run = world.run(world.add_dag())
    for epoch in (1, 2):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    good = world.try_token(1)
    foreign = replace(key_state(world.conn), keys={1: b"x" * 32})
    other_key = mint(foreign, TryToken(epoch=2, run_key=run, task_index=1, map_index=2, try_number=1), ttl=60)
    tampered = good[:-6] + ("AAAAAA" if good[-6:] != "AAAAAA" else "BBBBBB")
    batch = [success(other_key), success(good), success(tampered), success(worker_token), success(world.try_token(2))]
    answer = await client.report(m.Reports(reports=batch))
    assert (answer.accepted, answer.refused_at) == (2, [0, 2, 3])
    assert "signed with a key that is not in use" in answer.refused[0]
    assert "token of its try" in answer.refused[2]
    assert world.all("select epoch from report order by epoch") == [1, 2]


async def test_what_cannot_be_stored_is_refused_with_the_reason(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 8):
        world.dispatch(run, epoch, task=1, map_index=epoch)

    def raw(epoch: int, result: bytes) -> m.Report:
        return m.Report(token=world.try_token(epoch), ending=Ending(outcome="success", result=result))

    forged = b'1},{"run_key":1,"task_index":0,"map_index":-1,"epoch":99,"kind":"exit","age_s":0'
    batch = [
        raw(1, b'"fine"'),
        raw(2, b'"' + b"x" * 262_144 + b'"'),
        raw(3, b'"a\\u0000b"'),
        raw(4, b"NaN"),
        raw(5, b"\xff"),
        raw(6, forged),
        raw(7, b"[7]"),
        m.Report(token=world.try_token(7), ending=Ending(outcome="deferred")),
    ]
    answer = await client.report(m.Reports(reports=batch))
    assert (answer.accepted, answer.refused_at) == (2, [1, 2, 3, 4, 5, 7])
    assert answer.refused[0].startswith("The result is 262,146 bytes as JSON, above the limit of 262,144.")
    assert "u0000" in answer.refused[1]
    assert "NaN" in answer.refused[2]
    assert "not UTF-8" in answer.refused[3]
    assert "needs to say what it waits for" in answer.refused[5]
    assert world.all("select epoch from report order by epoch") == [1, 7]
    assert world.all("select value from xcom order by epoch") == ["fine", [7]]


async def test_what_a_deferred_try_waits_for_is_sealed(client: ExecutionClient, world: World, tmp_path: Path) -> None:
    world.dispatch(world.run(world.add_dag()), 5)
    defer = Defer(
        trigger="x.Waits", trigger_kwargs={"key": "open-sesame"}, method="go", kwargs={"n": 1}, timeout_s=9.5, queue="far"
    )
    report = m.Report(token=world.try_token(5), ending=Ending(outcome="deferred", ran_s=1.0, defer=defer))
    assert await client.report(m.Reports(reports=[report, report])) == m.ReportsAnswer(accepted=2)
    payload = world.one("select payload from report limit 1")
    sealed = payload["defer"].pop("sealed")
    assert payload == {"outcome": "deferred", "ran_s": 1.0, "defer": {"trigger": "x.Waits", "queue": "far", "timeout_s": 9.5}}
    opened = Vault(tmp_path / "secrets.key").open(WAITING, str(world.one("select run_key from dag_run")), base64.b64decode(sealed))
    assert json.loads(opened) == {
        "trigger": "x.Waits",
        "trigger_kwargs": {"key": "open-sesame"},
        "method": "go",
        "kwargs": {"n": 1},
        "timeout_s": 9.5,
        "queue": "far",
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"trigger_kwargs": {"x": "y" * MAX_DEFERRED_BYTES}}, "the arguments of trigger x.Waits"),
        ({"kwargs": {"x": "y" * MAX_DEFERRED_BYTES}}, "the arguments of method go"),
        ({"kwargs": {"x": nested(200)}}, "the arguments of method go is nested more than 128 levels deep"),
        ({"trigger_kwargs": {"x": nested(900)}}, "the arguments of trigger x.Waits is nested more than 128 levels deep"),
        ({"trigger": ""}, "class path of the trigger"),
        ({"queue": "x" * 501}, "name of the queue"),
    ],
)
async def test_what_cannot_be_waited_for_is_refused(
    client: ExecutionClient, world: World, change: dict[str, object], why: str
) -> None:
    world.dispatch(world.run(world.add_dag()), 5)
    defer = Defer(**{"trigger": "x.Waits", "method": "go", **change})  # type: ignore[arg-type]
    answer = await client.report(
        m.Reports(reports=[m.Report(token=world.try_token(5), ending=Ending(outcome="deferred", defer=defer))])
    )
    assert answer.accepted == 0
    assert why in answer.refused[0]


async def test_an_outcome_and_what_it_says_belong_together(client: ExecutionClient, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 5)
    token = world.try_token(5)
    defer = Defer(trigger="x.Waits", method="go")
    reports = [
        m.Report(token=token, ending=Ending(outcome="deferred")),
        m.Report(token=token, ending=Ending(outcome="success", defer=defer)),
    ]
    assert (await client.report(m.Reports(reports=reports))).refused_at == [0, 1]
