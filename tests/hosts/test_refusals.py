"""Services that do not fit their database end by themselves, and say what differs and what to type."""

from __future__ import annotations

import pytest

from evenflow.api.vault import new_key
from evenflow.store.db.migrate import SCHEMA_VERSION
from tests.hosts.fleet import Fleet

CONTRACT = "insert into schema_version (version, name, works_from) values (%s, 'less', %s)"


@pytest.mark.slow
def test_services_end_when_the_schema_contracts_under_them(fleet: Fleet) -> None:
    """R-HA6: also those that were running, should somebody not have waited for them."""
    scheduler, api = fleet.start("scheduler", "s1"), fleet.start("api", "a1")
    fleet.db.execute(CONTRACT, [SCHEMA_VERSION + 1, SCHEMA_VERSION + 1])
    for service in (scheduler, api):
        assert service.process.wait(30) == 1
        assert f"must know version {SCHEMA_VERSION + 1}; this Evenflow knows {SCHEMA_VERSION}. Upgrade Evenflow on" in service.log


@pytest.mark.slow
def test_an_api_with_other_keys_ends(fleet: Fleet) -> None:
    """And does not hang, although much of it has begun."""
    fleet.start("api", "a1")
    fleet.keys = new_key()
    assert "are not those in use, which were made on host" in fleet.launch("api", "a2").await_refusal()


@pytest.mark.slow
def test_a_scheduler_refuses_a_default_time_zone_that_its_host_does_not_want(fleet: Fleet) -> None:
    """R-HA6"""
    said = fleet.launch("scheduler", "s1", default_timezone="Asia/Kathmandu").await_refusal()
    assert "The default time zone of the database is UTC, and the configuration of this host wants Asia/Kathmandu. Unset" in said
    assert "evenflow settings set default_timezone Asia/Kathmandu" in said
    fleet.start("api", "a1")
    assert fleet.evenflow("settings", "set", "default_timezone", "Asia/Kathmandu").returncode == 0
    scheduler = fleet.start("scheduler", "s2", default_timezone="Asia/Kathmandu")
    assert fleet.evenflow("settings", "unset", "default_timezone").stdout == "default_timezone is UTC, its default\n"
    assert scheduler.process.wait(30) == 1
    assert "The default time zone of the database is UTC, and the configuration of this host wants Asia/Kathmandu" in scheduler.log
