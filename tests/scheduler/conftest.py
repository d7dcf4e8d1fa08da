"""Schedulers, in the process of the test and of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenflow.store.db.connect import connect
from tests.scheduler.processes import Schedulers
from tests.scheduler.world import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with connect(database_url, name="test", generic_plans=True) as conn:
        yield World(conn)


@pytest.fixture
def schedulers(database_url: str) -> Iterator[Schedulers]:
    """Processes; none at first."""
    with connect(database_url, name="test schedulers") as conn:
        them = Schedulers(conn, database_url)
        yield them
        them.kill_all()
