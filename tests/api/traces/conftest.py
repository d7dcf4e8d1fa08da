"""Turns of a scheduler, and a collector that is told of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenflow.store.db.connect import connect
from tests.api.traces.world import World
from tests.otlp import OtlpReceiver, receiving


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with connect(database_url, name="test", generic_plans=True) as conn:
        yield World(conn)


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with receiving() as receiver:
        yield receiver
