"""Claims: who gets what, once; and the long poll behind them."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import pytest

from evenflow.api import long_poll
from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiRefused
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.notify import DISPATCH, deliver
from evenflow.store.scheduling import tasks
from evenflow.store.serving import dispatch
from evenflow.wire import messages as m
from tests.api.world import World, new_worker
from tests.waiting import until
from tests.world import CODE_HASH


def claim(
    worker: int,
    key: str = "k",
    slots: int = 10,
    queues: list[str] | None = None,
    wait_s: float = 0.0,
    resume_slots: int | None = 0,
) -> m.Claim:
    return m.Claim(
        service_id=worker, request_key=key, slots=slots, resume_slots=resume_slots, queues=queues or ["default"], wait_s=wait_s
    )


@pytest.fixture
def without_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """For an API that starts after it."""
    monkeypatch.setattr(long_poll, "SWEEP_S", 3600.0)


async def until_waiting(world: World, api, number: int) -> None:
    await until(lambda: api._claims.waiting == number, f"{number} claims that wait", within_s=5)


async def test_an_assignment_has_all_that_a_try_needs(client: ExecutionClient, worker: int, world: World) -> None:
    run = world.run(world.add_dag(), params={"day": "2026-03-01"})
    world.dispatch(run, 7)
    (got,) = (await client.claim(claim(worker))).assignments
    assert (got.epoch, got.dag_id, got.run_id, got.task_id, got.map_index) == (7, "sales", "r1", "extract", -1)
    assert (got.try_number, got.max_tries, got.operator, got.execution_timeout) == (1, 3, "python", 60.0)
    assert (got.code_hash, got.file, got.version_number, got.run_type) == (CODE_HASH, "pipeline.py", 1, "manual")
    assert got.params == {"day": "2026-03-01"}
    assert got.logical_date == "2026-03-01T00:00:00+00:00"
    assert got.run_after.endswith("+00:00")
    assert got.data_interval_start is None
    assert got.map_length is None


async def test_a_mapped_try_knows_the_length(client: ExecutionClient, worker: int, world: World) -> None:
    run = world.run(world.add_dag())
    world.conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, 12)", [run])
    world.dispatch(run, 7, task=1, map_index=3)
    (got,) = (await client.claim(claim(worker))).assignments
    assert (got.task_id, got.map_index, got.map_length) == ("clean", 3, 12)


async def test_resumes_first_then_priority_then_age(client: ExecutionClient, worker: int, world: World) -> None:
    run = world.run(world.add_dag())
    world.conn.execute("insert into mapped_task (run_key, task_index, length) values (%s, 1, 12)", [run])
    world.dispatch(run, 11, task=1, map_index=0, priority=1)
    world.dispatch(run, 12, task=1, map_index=1, priority=5)
    world.resume(run, 13, task=1, map_index=2, priority=1)
    world.dispatch(run, 14, task=1, map_index=3, priority=5, queue="big")
    world.dispatch(run, 15, task=1, map_index=4, priority=9, queue="other")
    first = await client.claim(claim(worker, "k1", slots=3, queues=["default", "big"]))
    assert [a.epoch for a in first.assignments] == [13, 12, 14]
    second = await client.claim(claim(worker, "k2", queues=["default", "big"]))
    assert [a.epoch for a in second.assignments] == [11]


async def test_the_same_request_key_gives_the_same_tries(client: ExecutionClient, worker: int, world: World) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 6):
        world.dispatch(run, epoch, task=1, map_index=epoch)
    answers = await asyncio.gather(*(client.claim(claim(worker, "same", slots=2)) for _ in range(6)))
    first, *others = ([a.epoch for a in answer.assignments] for answer in answers)
    assert first in ([1, 2], [3, 4])  # of two at once one holds the first tries until it sees that the other has won
    assert others == [first] * 5
    assert world.one("select count(*) from dispatch where worker_id is null") == 3


@pytest.mark.parametrize("key", ["", "k" * 65, "ü"])
async def test_a_key_that_no_turn_could_write_is_refused(client: ExecutionClient, worker: int, world: World, key: str) -> None:
    """R-SE2: a claim that waits is answered by a turn, which has to fit its key into an index and a notification."""
    with pytest.raises(ApiRefused, match="request_key is 1 to 64 characters of ASCII"):
        await client.claim(claim(worker, key))
    assert world.one("select count(*) from service where waiting_claim is not null") == 0


async def test_no_try_goes_to_two_workers(client: ExecutionClient, world: World) -> None:
    run = world.run(world.add_dag())
    for epoch in range(1, 101):
        world.dispatch(run, epoch, task=1, map_index=epoch, notify=False)
    workers = [await new_worker(client) for _ in range(8)]
    answers = await asyncio.gather(*(client.claim(claim(w, f"{w}.{n}", slots=7)) for w in workers for n in range(3)))
    epochs = [a.epoch for answer in answers for a in answer.assignments]
    assert len(epochs) == len(set(epochs))
    while rest := (await client.claim(claim(workers[0], f"rest{len(epochs)}"))).assignments:
        epochs += [a.epoch for a in rest]
    assert sorted(epochs) == list(range(1, 101))


@pytest.mark.parametrize(("state", "answer"), [("draining", "draining"), ("lost", "lost"), ("stopped", "lost")])
async def test_only_an_active_worker_gets_work(client, worker: int, world: World, state: str, answer: str) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    world.conn.execute("update service set state = %s where service_id = %s", [state, worker])
    got = await client.claim(claim(worker, wait_s=30))
    assert (got.assignments, got.state) == ([], answer)
    assert world.one("select worker_id from dispatch") is None


async def test_a_service_that_is_no_worker_gets_no_work(client: ExecutionClient, world: World, api) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    assert (await client.claim(claim(api._service_id))).state == "lost"
    assert (await client.claim(claim(999_999))).state == "lost"


async def test_a_worker_whose_lease_has_lapsed_gets_work_after_its_next_beat(client, worker: int, world: World) -> None:
    """R-CS7: until someone declares it lost, it is only late."""
    world.dispatch(world.run(world.add_dag()), 1)
    world.conn.execute("update service set beat_at = now() - interval '16 seconds' where service_id = %s", [worker])
    assert await client.claim(claim(worker, "k1")) == m.ClaimAnswer()
    assert (await client.beat(worker, m.Beat())).known
    assert len((await client.claim(claim(worker, "k2"))).assignments) == 1


async def test_a_try_avoids_the_worker_that_could_not_start_it(client: ExecutionClient, world: World, api) -> None:
    """R-CS5"""
    first, second = await new_worker(client), await new_worker(client)
    run = world.run(world.add_dag())
    waits = [asyncio.create_task(client.claim(claim(first, "a", wait_s=20)))]
    await until_waiting(world, api, 1)
    waits.append(asyncio.create_task(client.claim(claim(second, "b", wait_s=20))))
    await until_waiting(world, api, 2)
    world.dispatch(run, 1, notify=False)
    world.conn.execute("update dispatch set avoid = %s", [first])
    world.conn.execute("notify dispatch")
    done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=4)
    assert done == {waits[1]}
    waits[0].cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def test_a_lone_worker_gets_a_try_that_avoids_it_after_a_while(client: ExecutionClient, worker: int, world: World) -> None:
    world.dispatch(world.run(world.add_dag()), 1)
    world.conn.execute("update dispatch set avoid = %s", [worker])
    assert not (await client.claim(claim(worker, "k1"))).assignments
    world.conn.execute("update dispatch set created_at = now() - interval '6 seconds'")
    assert (await client.claim(claim(worker, "k2"))).assignments


async def test_a_waiting_worker_is_woken(client: ExecutionClient, worker: int, world: World, api) -> None:
    run = world.run(world.add_dag())
    waiting = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    begun = time.monotonic()
    world.dispatch(run, 1)
    assert [a.epoch for a in (await waiting).assignments] == [1]
    assert time.monotonic() - begun < 0.9, "by the notification, not by the sweep"


async def test_the_sweep_finds_what_no_notification_announced(client: ExecutionClient, worker: int, world: World, api) -> None:
    run = world.run(world.add_dag())
    waiting = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    world.dispatch(run, 1, notify=False)
    assert [a.epoch for a in (await asyncio.wait_for(waiting, 5)).assignments] == [1]


def give(world: World, worker: int, run: int, key: str, *, tell: bool = True) -> None:
    """What a turn does that finds the claim of this key waiting."""
    world.instance(run, 0, epoch=5)
    of_try = (1, 1, "default", [], 1, 0, "start", None, None, 0, 0, worker)
    tasks.insert_dispatches(world.conn, [tasks.Dispatch(5, run, 0, -1, 1, *of_try)], {worker: key})
    assert world.one("select claim_key from dispatch") == key
    if tell:
        deliver(world.conn)


@pytest.mark.parametrize("known", [False, True])
async def test_what_a_turn_gives_is_answered_at_once(without_sweeps, client, worker: int, world: World, api, known: bool) -> None:
    """R-ST5: with all that a try needs, whether its run is known here or not."""
    run = world.run(world.add_dag(), params={"day": "2026-03-01"})
    if known:
        world.dispatch(run, 1, task=1, map_index=0)
        assert (await client.claim(claim(worker, "before"))).assignments
        world.end(1)
    waits = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    give(world, worker, run, "k")
    (got,) = (await asyncio.wait_for(waits, 5)).assignments
    assert (got.epoch, got.task_id, got.run_id, got.try_number, got.params) == (5, "extract", "r1", 1, {"day": "2026-03-01"})
    assert got.token


async def test_what_a_turn_gives_is_found_when_nobody_was_told(client: ExecutionClient, worker: int, world: World, api) -> None:
    """R-HA5: by a sweep."""
    run = world.run(world.add_dag())
    waits = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    give(world, worker, run, "k", tell=False)
    assert [a.epoch for a in (await asyncio.wait_for(waits, 5)).assignments] == [5]


async def test_a_claim_whose_tries_have_ended_waits_no_more(client: ExecutionClient, worker: int, world: World, api) -> None:
    """R-HA5: its worker heard of them by a heartbeat, and ran them; nothing more would be given under this key."""
    run = world.run(world.add_dag())
    waits = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    give(world, worker, run, "k", tell=False)
    world.end(5)
    assert await asyncio.wait_for(waits, 5) == m.ClaimAnswer()


async def test_a_claim_that_ends_looks_whether_it_was_given_something(
    without_sweeps, client, worker: int, world: World, api
) -> None:
    """R-HA5: and waits no more, so that nothing comes when its worker asks anew."""
    run = world.run(world.add_dag())
    assert await client.claim(claim(worker, "first", wait_s=0.05)) == m.ClaimAnswer()
    assert world.one("select waits_since from service where service_id = %s", worker) is None
    waits = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    give(world, worker, run, "k", tell=False)
    for waiting in list(api._claims._line):
        waiting.expire()
    assert [a.epoch for a in (await asyncio.wait_for(waits, 5)).assignments] == [5]


async def test_waiting_ends(client: ExecutionClient, worker: int) -> None:
    assert await client.claim(claim(worker, wait_s=0.05)) == m.ClaimAnswer()


async def test_many_waiting_workers_are_served_in_order_and_without_a_stampede(client, world: World, api) -> None:
    run = world.run(world.add_dag())
    workers = [await new_worker(client) for _ in range(12)]
    waits = []
    for number, worker in enumerate(workers, 1):
        waits.append(asyncio.create_task(client.claim(claim(worker, slots=1, wait_s=30))))
        await until_waiting(world, api, number)
    attempts = 0
    attempt = api._claims._attempt

    async def counted(conn: object, message: m.Claim) -> m.ClaimAnswer:
        nonlocal attempts
        attempts += 1
        return await attempt(conn, message)

    api._claims._attempt = counted
    with world.conn.transaction():
        for epoch in (1, 2, 3):
            world.dispatch(run, epoch, task=1, map_index=epoch)
    served = await asyncio.gather(*waits[:3])
    assert [[a.epoch for a in answer.assignments] for answer in served] == [[1], [2], [3]]
    await until_waiting(world, api, 9)
    assert attempts <= 5
    assert not any(wait.done() for wait in waits[3:])
    for wait in waits[3:]:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def test_one_who_hangs_up_leaves_the_line(client: ExecutionClient, worker: int, world: World, api) -> None:
    run = world.run(world.add_dag())
    waiting = asyncio.create_task(client.claim(claim(worker, "gone", wait_s=30)))
    await until_waiting(world, api, 1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await until_waiting(world, api, 0)
    world.dispatch(run, 1)
    assert [a.epoch for a in (await client.claim(claim(worker, "new", wait_s=5))).assignments] == [1]


async def test_a_kill_ends_the_wait_of_its_worker_only(client: ExecutionClient, world: World, api) -> None:
    first, second = await new_worker(client), await new_worker(client)
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    await client.claim(claim(second, "k0"))
    waits = {w: asyncio.create_task(client.claim(claim(w, "k1", wait_s=30))) for w in (first, second)}
    await until_waiting(world, api, 2)
    world.conn.execute("update dispatch set kill_at = now()")
    world.conn.execute("notify dispatch")
    assert (await asyncio.wait_for(waits[second], 5)).kill == [1]
    assert not waits[first].done()
    waits[first].cancel()
    await until_waiting(world, api, 0)
    again = asyncio.create_task(client.claim(claim(second, "k2", wait_s=30)))
    await until_waiting(world, api, 1)
    world.dispatch(run, 2, task=1, map_index=0)
    answer = await again
    assert [a.epoch for a in answer.assignments] == [2], "a kill that is known already does not end the wait again"
    assert answer.kill == [1], "but every answer has it"


async def test_drain_sends_the_waiting_away(client: ExecutionClient, worker: int, api, world: World) -> None:
    waiting = asyncio.create_task(client.claim(claim(worker, wait_s=30)))
    await until_waiting(world, api, 1)
    await api.drain()
    assert await asyncio.wait_for(waiting, 3) == m.ClaimAnswer()


async def test_a_claim_that_makes_no_sense_is_refused(client: ExecutionClient, worker: int) -> None:
    with pytest.raises(ApiRefused, match="at least one slot"):
        await client.claim(claim(worker, slots=0))


# -- resumes -----------------------------------------------------------------------------------------------------------


def fill(world: World, *, resumes: int, starts: int) -> None:
    """Resumes of epochs from 101 on, first starts from 1 on."""
    run = world.run(world.add_dag())
    for number in range(starts):
        world.dispatch(run, 1 + number, task=1, map_index=number, notify=False)
    for number in range(resumes):
        world.resume(run, 101 + number, task=1, map_index=100 + number, priority=-5, notify=False)


@pytest.mark.parametrize(
    ("slots", "resume_slots", "resumes", "starts"),
    [
        (2, 1, [101], [1]),  # what is left of the ordinary slots
        (4, 2, [101], [1, 2, 3]),
        (1, 3, [101], []),
        (0, 2, [101], []),
    ],
)
async def test_resumes_come_first_and_starts_get_what_they_leave(
    client: ExecutionClient, worker: int, world: World, slots: int, resume_slots: int, resumes: list[int], starts: list[int]
) -> None:
    """R-DQ3: slots for resumes are for nothing else."""
    fill(world, resumes=1, starts=5)
    answer = await client.claim(claim(worker, slots=slots, resume_slots=resume_slots))
    assert [a.epoch for a in answer.assignments] == resumes + starts


async def test_resumes_take_all_slots(client: ExecutionClient, worker: int, world: World) -> None:
    fill(world, resumes=6, starts=5)
    answer = await client.claim(claim(worker, slots=3, resume_slots=1))
    assert [a.epoch for a in answer.assignments] == [101, 102, 103, 104]
    assert world.one("select count(*) from dispatch where worker_id is null") == 7


async def test_a_worker_of_the_release_before_gets_no_resumes(client: ExecutionClient, worker: int, world: World) -> None:
    """It would begin them anew."""
    fill(world, resumes=2, starts=1)
    answer = await client.claim(claim(worker, resume_slots=None))
    assert [a.epoch for a in answer.assignments] == [1]


async def test_who_waits_for_resumes_only_is_woken_by_resumes_only(without_sweeps, client, worker: int, world: World, api) -> None:
    """R-DQ3, and where nothing is deferred it costs nothing: no look at the database is made for it."""
    attempts = []
    attempt = api._claims._attempt

    async def counted(conn: object, message: m.Claim) -> m.ClaimAnswer:
        attempts.append(message.request_key)
        return await attempt(conn, message)

    api._claims._attempt = counted
    other = await new_worker(client)
    waiting = asyncio.create_task(client.claim(claim(worker, "resumes", slots=0, resume_slots=1, wait_s=30)))
    await until_waiting(world, api, 1)
    run = world.run(world.add_dag())
    ordinary = asyncio.create_task(client.claim(claim(other, "starts", wait_s=30)))
    await until_waiting(world, api, 2)
    attempts.clear()
    world.dispatch(run, 1)
    assert [a.epoch for a in (await ordinary).assignments] == [1]
    assert attempts == ["starts"]
    begun = time.monotonic()
    with world.conn.transaction():
        world.resume(run, 2, task=1, map_index=0)
        world.conn.execute("notify resumes")
    assert [a.epoch for a in (await waiting).assignments] == [2]
    assert time.monotonic() - begun < 0.9, "by the notification, not by the sweep"


async def test_a_resume_that_comes_while_a_worker_joins_the_line_is_found(without_sweeps, client, worker, world, api) -> None:
    """R-DQ1: its own attempt is too old to see it, and the line was served before it stood there."""
    run = world.run(world.add_dag())
    served = asyncio.Event()
    attempt, serve_line = api._claims._attempt, api._claims._serve_line

    async def late(conn: object, message: m.Claim) -> m.ClaimAnswer:
        api._claims._attempt = attempt
        answer = await attempt(conn, message)
        world.resume(run, 1, notify=False)
        world.conn.execute("notify resumes")
        await served.wait()
        return answer

    async def seen(line: list[object]) -> None:
        await serve_line(line)
        served.set()

    api._claims._attempt, api._claims._serve_line = late, seen
    answer = await asyncio.wait_for(client.claim(claim(worker, slots=0, resume_slots=1, wait_s=30)), 5)
    assert [a.epoch for a in answer.assignments] == [1]


async def test_a_look_that_fails_forgets_no_resume(without_sweeps, client, worker: int, world: World, api) -> None:
    waiting = asyncio.create_task(client.claim(claim(worker, slots=0, resume_slots=1, wait_s=30)))
    await until_waiting(world, api, 1)
    serve_line = api._claims._serve_line

    async def broken(line: list[object]) -> None:
        api._claims._serve_line = serve_line
        api._claims.wake(DISPATCH)  # by a first start
        raise OSError("no connection")

    api._claims._serve_line = broken
    world.resume(world.run(world.add_dag()), 1, notify=False)
    world.conn.execute("notify resumes")
    assert [a.epoch for a in (await asyncio.wait_for(waiting, 5)).assignments] == [1]


async def test_the_sweep_finds_resumes_however_much_else_is_announced(client, worker: int, world: World, api) -> None:
    waiting = asyncio.create_task(client.claim(claim(worker, slots=0, resume_slots=1, wait_s=30)))
    await until_waiting(world, api, 1)
    world.resume(world.run(world.add_dag()), 1, notify=False)
    deadline = time.monotonic() + 5
    while not waiting.done():
        assert time.monotonic() < deadline
        api._claims.wake(DISPATCH)
        await asyncio.sleep(0.005)
    assert [a.epoch for a in (await waiting).assignments] == [1]


async def test_a_claim_for_resumes_says_nothing_of_first_starts(client, world: World, api) -> None:
    """Two empty claims prove a place empty, and a claim that looked for resumes alone was nowhere else."""
    workers = [await new_worker(client) for _ in range(5)]
    waits = [asyncio.create_task(client.claim(claim(worker, slots=0, resume_slots=1, wait_s=30))) for worker in workers[:4]]
    await until_waiting(world, api, 4)
    waits.append(asyncio.create_task(client.claim(claim(workers[4], wait_s=30))))
    await until_waiting(world, api, 5)
    run = world.run(world.add_dag())
    with world.conn.transaction():
        world.dispatch(run, 1)
        world.conn.execute("notify resumes")
    assert [a.epoch for a in (await asyncio.wait_for(waits[4], 0.9)).assignments] == [1]
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def test_a_resume_that_is_over_by_now_does_not_begin_anew(client: ExecutionClient, worker: int, world: World) -> None:
    fill(world, resumes=2, starts=0)
    world.conn.execute("delete from deferral where map_index = 100")
    assert [a.epoch for a in (await client.claim(claim(worker))).assignments] == [102]


async def test_what_is_known_of_a_run_is_what_another_worker_hears(client: ExecutionClient, worker: int, world: World) -> None:
    """Its first try, a later one, one of an older run that nobody has claimed of, and of one with more than is kept."""
    version = world.add_dag()
    older = world.run(version, params={"day": "1"})
    large = world.run(version, params={"text": "x" * 10_000})
    newest = world.run(version, params={"day": "3"}, data_interval_start=datetime(2026, 3, 3, tzinfo=UTC))

    async def hears_of(*runs: int) -> list[m.Assignment]:
        for run in runs:
            epochs.append(len(epochs) + 1)
            world.dispatch(run, epochs[-1])
        return sorted((await client.claim(claim(worker, f"k{epochs}"))).assignments, key=lambda a: a.epoch)

    epochs: list[int] = []
    (first,) = await hears_of(newest)
    again = await hears_of(newest, older, large, newest, older, large)
    told = [(a.run_id, a.params, a.run_after, a.logical_date, a.data_interval_start) for a in again]
    assert told[0] == told[3] == (first.run_id, {"day": "3"}, first.run_after, first.logical_date, "2026-03-03T00:00:00+00:00")
    assert told[1] == told[4]
    assert told[2] == told[5]
    assert [run_id for run_id, *_ in told[:3]] == ["r3", "r1", "r2"]
    assert [params for _, params, *_ in told[1:3]] == [{"day": "1"}, {"text": "x" * 10_000}]


def test_what_is_known_of_runs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "RUNS_KNOWN", 2)
    known = dispatch.KnownRuns()
    for run_key in (1, 2, 3):
        known.add(run_key, (9, "d", f"r{run_key}", "manual", {}, None, None, None, None))
    assert [known.get(run_key) is not None for run_key in (1, 2, 3)] == [False, True, True]
    known.add(4, (9, "d", "r4", "manual", {"text": "x" * 10_000}, None, None, None, None))
    assert known.get(4) is None
    assert known.newest == 4


async def test_a_claim_that_finds_nothing_while_its_server_ends_waits_no_more(
    api, client: ExecutionClient, worker: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA5: no turn gives it anything, since its worker has asked elsewhere by then."""
    attempt = api._claims._attempt

    async def attempt_and_close(conn: AsyncConn, asked: m.Claim) -> m.ClaimAnswer:
        answer = await attempt(conn, asked)
        assert world.one("select waiting_claim from service where service_id = %s", worker) is not None
        api._claims.close()
        return answer

    monkeypatch.setattr(api._claims, "_attempt", attempt_and_close)
    assert (await client.claim(claim(worker, wait_s=20.0))).assignments == []
    assert world.one("select waiting_claim from service where service_id = %s", worker) is None
