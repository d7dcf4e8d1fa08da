"""What task instances store once: for all their tries, sealed where it is secret, and closed to tries that are over."""

from __future__ import annotations

import pytest

from evenflow.api import limits
from evenflow.client.execution import ExecutionClient
from evenflow.core.limits import MAX_ONCE_BYTES
from evenflow.errors import ApiRefused, StaleEpoch
from evenflow.wire import questions as q
from tests.api.world import World


async def ask(client: ExecutionClient, token: str, name: str = "job") -> q.Once:
    answer = await client.ask(token, "once", q.AskOnce(name=name))
    assert isinstance(answer, q.Once)
    return answer


async def put(client: ExecutionClient, token: str, value: object, name: str = "job", *, secret: bool = False) -> q.Once:
    answer = await client.ask(token, "set_once", q.SetOnce(name=name, kept=q.KeptValue(value=value, secret=secret)))
    assert isinstance(answer, q.Once)
    return answer


@pytest.fixture
def token(world: World) -> str:
    world.dispatch(world.run(world.add_dag()), 7)
    return world.try_token(7)


def next_try(world: World, epoch: int = 8) -> str:
    run = world.one("select run_key from task_instance")
    world.conn.execute("delete from dispatch")
    world.dispatch(run, epoch, tries=2)
    return world.try_token(epoch)


async def test_it_lives_across_tries_and_what_was_there_first_stays(client: ExecutionClient, world: World, token: str) -> None:
    first = await ask(client, token)
    assert first.kept is None
    assert len(first.key) == 32
    assert (await put(client, token, {"id": 7})).kept.value == {"id": 7}
    assert (await put(client, token, {"id": 8})).kept.value == {"id": 7}
    again = await ask(client, next_try(world))
    assert (again.kept, again.key) == (q.KeptValue(value={"id": 7}), first.key)


async def test_the_key_is_kept_before_anything_is_stored(client: ExecutionClient, world: World, token: str) -> None:
    """A try that dies while it submits has used it already."""
    key = (await ask(client, token)).key
    again = await ask(client, next_try(world))
    assert (again.kept, again.key) == (None, key)


async def test_a_value_that_is_to_be_replaced_is(client: ExecutionClient, token: str) -> None:
    key = (await ask(client, token)).key
    for value in (1, 2):
        kept = q.KeptValue(value=value)
        assert await client.ask(token, "set_once", q.SetOnce(name="job", kept=kept, replaces=True)) == q.Once(key=key, kept=kept)
    assert (await put(client, token, 3)).kept == q.KeptValue(value=2)


async def test_all_is_forgotten_at_once(client: ExecutionClient, token: str) -> None:
    for name in ("job", "other"):
        await ask(client, token, name)
        await put(client, token, 1, name)
    await client.ask(token, "forget_once", q.ForgetOnce())
    assert [(await ask(client, token, name)).kept for name in ("job", "other")] == [None, None]


async def test_what_may_still_run_outside_is_not_forgotten_with_all(client: ExecutionClient, token: str) -> None:
    """The next try finds it there, or ends it. By its name it is forgotten, as by who knows that it is over."""
    for name, outside in (("job", True), ("other", False)):
        await ask(client, token, name)
        await client.ask(token, "set_once", q.SetOnce(name=name, kept=q.KeptValue(value=1), outside=outside))
    await client.ask(token, "forget_once", q.ForgetOnce())
    assert [(await ask(client, token, name)).kept for name in ("job", "other")] == [q.KeptValue(value=1), None]
    await client.ask(token, "forget_once", q.ForgetOnce(name="job"))
    assert (await ask(client, token)).kept is None


async def test_null_is_a_value(client: ExecutionClient, token: str) -> None:
    await ask(client, token)
    await put(client, token, None)
    answer = await ask(client, token)
    assert answer.kept == q.KeptValue()


async def test_what_is_forgotten_begins_anew(client: ExecutionClient, world: World, token: str) -> None:
    key = (await ask(client, token)).key
    await put(client, token, 1)
    await client.ask(token, "forget_once", q.ForgetOnce(name="job"))
    with pytest.raises(ApiRefused, match="it was forgotten"):
        await put(client, token, 2)
    answer = await ask(client, token)
    assert answer.kept is None
    assert answer.key != key


async def test_a_secret_is_sealed(client: ExecutionClient, world: World, token: str) -> None:
    await ask(client, token)
    await put(client, token, "open-sesame", secret=True)
    assert world.one("select value from once_value") is None
    assert b"open-sesame" not in bytes(world.one("select sealed from once_value"))
    answer = await ask(client, token)
    assert answer.kept == q.KeptValue(value="open-sesame", secret=True)


async def test_a_try_that_is_over_stores_and_learns_nothing(client: ExecutionClient, world: World, token: str) -> None:
    """R-CS3: a worker that is thought lost cannot write over what its successor has made."""
    await ask(client, token)
    next_try(world)
    for call in (ask(client, token), put(client, token, 1), client.ask(token, "forget_once", q.ForgetOnce(name="job"))):
        with pytest.raises(StaleEpoch):
            await call
    assert world.one("select value from once_value") is None


async def test_limits(client: ExecutionClient, world: World, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONCE_VALUES", 2)
    await ask(client, token, "a")
    await ask(client, token, "b")
    with pytest.raises(ApiRefused, match="limit"):
        await ask(client, token, "c")
    await ask(client, token, "b")
    with pytest.raises(ApiRefused, match="limit"):
        await put(client, token, "x" * MAX_ONCE_BYTES, "a")
    with pytest.raises(ApiRefused, match="printable"):
        await ask(client, token, "")
