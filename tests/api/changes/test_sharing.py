"""What is said of who shares pools and executors, and how schedulers come to know it."""

from __future__ import annotations

import pytest

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.store.db.rows import execute
from evenflow.store.scheduling.inbox import TURN_LIMITS, Turn
from tests.api.world import World


def version(world: World) -> int:
    """What each turn of a scheduler compares."""
    turn = execute(world.conn, "inbox/begin_turn", {"since": "0", **TURN_LIMITS}).fetchone()
    assert turn is not None
    return Turn(*turn).places


async def test_nobody_shares_at_first(rest: RestClient, world: World) -> None:
    """R-ST11: all of it is an option."""
    found = {(s.kind, s.name): (s.aging, s.share_by) for s in (await rest.list_sharing()).items}
    assert found[("pool", "default_pool")] == found[("executor", "worker")] == ("off", "off")
    assert version(world) == 0


async def test_what_is_not_said_stays(rest: RestClient, world: World) -> None:
    """R-ST11: each change is news to schedulers."""
    rule = await rest.set_sharing("pool", "default_pool", aging="600", share_by="tag", weights={"a": 3})
    assert (rule.aging, rule.share_by, rule.weights) == ("10m", "tag", {"a": 3})
    assert version(world) == 1
    rule = await rest.set_sharing("pool", "default_pool", aging="off")
    assert (rule.aging, rule.share_by, rule.weights) == ("off", "tag", {"a": 3})
    rule = await rest.set_sharing("pool", "default_pool", share_by="dag")
    assert (rule.share_by, rule.weights) == ("dag", {})
    await rest.set_sharing("executor", "worker", share_by="owner")
    assert version(world) == 4
    assert world.one("select count(*) from audit_event where action = 'sharing.set'") == 4


async def test_weights_count_at_once(rest: RestClient, world: World) -> None:
    await rest.set_sharing("pool", "default_pool", share_by="dag")
    scope = world.one("select limit_id from sharing")
    execute(world.conn, "selection/find_share", {"scope_id": scope, "name": "d"})
    assert [(t.name, t.weight, t.held) for t in (await rest.list_tenants("pool", "default_pool")).items] == [("d", 1, 0)]
    await rest.set_sharing("pool", "default_pool", weights={"d": 5})
    assert [t.weight for t in (await rest.list_tenants("pool", "default_pool")).items] == [5]


async def test_a_pool_that_is_made_again_is_shared_by_nobody(rest: RestClient) -> None:
    await rest.set_pool("gpu", slots=2)
    await rest.set_sharing("pool", "gpu", share_by="dag", aging="1h")
    await rest.delete_pool("gpu")
    assert "gpu" not in {s.name for s in (await rest.list_sharing()).items}
    await rest.set_pool("gpu", slots=2)
    assert [(s.aging, s.share_by) for s in (await rest.list_sharing()).items if s.name == "gpu"] == [("off", "off")]


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"aging": "soon"}, "'soon' is no time after which"),
        ({"aging": "1s"}, "Type 10s to 30d"),
        ({"share_by": "team"}, "Nothing can be shared by 'team'. Type dag, tag, owner or off"),
        ({"share_by": "tag"}, "which tags are tenants"),
        ({"share_by": "dag", "weights": {"d": 0}}, "Weights are from 1 to 1,000"),
        ({"weights": {"d": 2}}, "Weights mean nothing where nothing is shared"),
    ],
)
async def test_what_cannot_be(rest: RestClient, said: dict[str, object], refusal: str) -> None:
    with pytest.raises(ApiRefused, match=refusal):
        await rest.set_sharing("pool", "default_pool", **said)


async def test_a_pool_that_there_is_not(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match=r"There is no pool 'x'. To see all, type: evenflow sharing list"):
        await rest.set_sharing("pool", "x", aging="10m")
