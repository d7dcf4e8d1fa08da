"""Settings that decide, in the database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from evenflow.wire.code import archive_hash, pack
from tests.api.world import World


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
    world.conn.execute("listen inbox")
    after = await rest.set_setting("fast_follow", value=False)
    assert (after.value, after.changed_by) == (False, "ada")
    assert after.changed_at is not None
    assert len(list(world.conn.notifies(timeout=5, stop_after=1))) == 1, "schedulers look at once"
    assert world.one("select value = 'false' from setting where name = 'fast_follow'")
    assert (await rest.list_settings()).items == [after, *others]


async def test_every_value_that_a_setting_had_is_kept(rest: RestClient, world: World) -> None:
    """R-HA6: versions, in the order in which they took effect, with who and when."""
    assert (await rest.list_setting_history("retention_days")).items == []
    first = await rest.set_setting("retention_days", value=30)
    await rest.set_setting("fast_follow", value=False)
    second = await rest.set_setting("retention_days", value=90)
    assert first.version is not None
    assert second.version is not None
    assert second.version > first.version + 1
    assert await rest.get_setting("retention_days") == second
    world.conn.execute("listen inbox")
    unset = await rest.unset_setting("retention_days")
    assert (unset.value, unset.version, unset.changed_by) == (0, None, None)
    assert len(list(world.conn.notifies(timeout=5, stop_after=1))) == 1, "schedulers look at once"
    assert await rest.unset_setting("retention_days") == unset
    history = (await rest.list_setting_history("retention_days")).items
    assert [(change.value, change.unset, change.changed_by) for change in history] == [
        (0, True, "ada"),
        (90, False, "ada"),
        (30, False, "ada"),
    ]
    assert [change.version for change in history[1:]] == [second.version, first.version]
    newest = await rest.list_setting_history("retention_days", limit=1)
    assert (await rest.list_setting_history("retention_days", limit=1, cursor=newest.next)).items == history[1:2]
    changes = (await rest.list_changes(object="retention_days")).items
    assert [(change.action, change.detail) for change in changes] == [
        ("setting.unset", None),
        ("setting.unset", None),
        ("setting.set", {"value": 90}),
        ("setting.set", {"value": 30}),
    ]


async def test_settings_that_change_at_once_have_versions_in_the_order_of_their_effect(rest: RestClient, world: World) -> None:
    """R-HA6: the value that holds is the newest of the history, whoever came first."""
    await asyncio.gather(*(rest.set_setting("retention_days", value=days) for days in range(1, 9)))
    history = (await rest.list_setting_history("retention_days")).items
    assert sorted(change.value for change in history) == list(range(1, 9))
    held = await rest.get_setting("retention_days")
    assert (held.value, held.version) == (history[0].value, history[0].version)


@pytest.mark.parametrize("value", ["Europe/Atlantis", "../etc/passwd", "", "UTC\0", 1, True, None])
async def test_a_time_zone_that_does_not_exist(rest: RestClient, world: World, value: Any) -> None:
    with pytest.raises(ApiRefused, match=r"is an IANA time zone, .* Type for example: evenflow settings set default_timezone UTC"):
        await rest.set_setting("default_timezone", value=value)
    assert world.one("select count(*) from setting_change") == 0


async def test_another_default_time_zone_has_all_files_loaded_anew(
    rest: RestClient, processor: ExecutionClient, world: World
) -> None:
    """R-HA6: and what was loaded before is dropped, wherever it comes from."""
    service = await processor.register(m.Register(kind="processor", name="p", host="h", pid=1, version="0"))
    await processor.files_seen(m.FilesSeen(bundle="b", files=[m.FileSeen(file="a.py", fingerprint="1")]))

    async def lease() -> m.FilesLeased:
        return await processor.lease_files(m.FilesLease(service_id=service.service_id, bundles=["b"], limit=9, lease_s=60))

    async def deliver(timezone: str) -> list[str]:
        spec = DagSpec(dag_id="d", tasks=(), default_timezone=timezone).to_json()
        code = {"a.py": b""}
        parsed = m.ParsedFile(bundle="b", file="a.py", fingerprint="1", seconds=0.1, specs=[spec], code_hash=archive_hash(code))
        parsed.code = pack(code)
        return (await processor.file_parsed(parsed)).errors

    leased = await lease()
    assert ([file.file for file in leased.files], leased.default_timezone) == (["a.py"], "UTC")
    await rest.set_setting("default_timezone", value="Asia/Kathmandu")
    assert await deliver("UTC") == [
        "a.py was loaded with the default time zone UTC, which is Asia/Kathmandu now. It will be loaded anew."
    ]
    assert world.one("select count(*) from dag where dag_id = 'd'") == 0
    leased = await lease()
    assert ([file.file for file in leased.files], leased.default_timezone) == (["a.py"], "Asia/Kathmandu")
    assert await deliver("Asia/Kathmandu") == []
    assert world.one("select spec ->> 'default_timezone' from dag_version where dag_id = 'd'") == "Asia/Kathmandu"
    await rest.set_setting("default_timezone", value="Asia/Kathmandu")
    assert (await lease()).files == [], "it is what it was"


@pytest.mark.parametrize("value", [-1, True, 1.5, "90", 1_000_001])
async def test_a_number_of_days_is_whole(rest: RestClient, value: Any) -> None:
    with pytest.raises(ApiRefused, match="is a whole number, 0 or more"):
        await rest.set_setting("retention_days", value=value)
    assert (await rest.set_setting("retention_days", value=90)).value == 90


@pytest.mark.parametrize(("value", "meant"), [("off", "false"), (0, "false"), (None, "true"), ([True], "true")])
async def test_a_value_that_makes_no_sense(rest: RestClient, world: World, value: Any, meant: str) -> None:
    with pytest.raises(
        ApiRefused, match=rf"is true or false, not .* Type for example: evenflow settings set fast_follow {meant}$"
    ) as no:
        await rest.set_setting("fast_follow", value=value)
    assert no.value.status == 422
    assert world.one("select count(*) from setting") == 0


async def test_a_setting_that_does_not_exist(rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match="There is no setting 'fast_folow'; there is: fast_follow"):
        await rest.set_setting("fast_folow", value=True)
