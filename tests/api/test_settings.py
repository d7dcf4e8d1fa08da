"""Settings that decide, in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from tests.api.world import World


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


async def test_a_setting_has_its_default_until_somebody_sets_it(rest: RestClient, world: World) -> None:
    """R-HA6: one place for all schedulers, with who changed it and when."""
    before, *others = (await rest.list_settings()).items
    assert (before.name, before.value, before.default, before.changed_by, before.changed_at) == (
        "fast_follow",
        True,
        True,
        None,
        None,
    )
    world.db.execute("listen inbox")
    after = await rest.set_setting("fast_follow", False)
    assert (after.value, after.changed_by) == (False, "ada")
    assert after.changed_at is not None
    assert len(list(world.db.notifies(timeout=5, stop_after=1))) == 1, "schedulers look at once"
    assert world.one("select value = 'false' from setting where name = 'fast_follow'")
    assert (await rest.list_settings()).items == [after, *others]


@pytest.mark.parametrize("value", [-1, True, 1.5, "90"])
async def test_a_number_of_days_is_whole(rest: RestClient, value: Any) -> None:
    with pytest.raises(ApiRefused, match="is a whole number, 0 or more"):
        await rest.set_setting("retention_days", value)
    assert (await rest.set_setting("retention_days", 90)).value == 90


@pytest.mark.parametrize("value", ["off", 0, None, [True]])
async def test_a_value_that_makes_no_sense(rest: RestClient, world: World, value: Any) -> None:
    with pytest.raises(
        ApiRefused, match=r"is true or false, not .* Type for example: evenflow settings set fast_follow true"
    ) as no:
        await rest.set_setting("fast_follow", value)
    assert no.value.status == 422
    assert world.one("select count(*) from setting") == 0


async def test_a_setting_that_does_not_exist(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match="There is no setting 'fast_folow'; there is: fast_follow"):
        await rest.set_setting("fast_folow", True)
