"""Autoscalers on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from evenflow.autoscaler import shrinking
from evenflow.store.serving import scaling
from tests.autoscaler.pods import PodFleets
from tests.autoscaler.world import Fleets
from tests.kubernetes.cluster import kubernetes

LONG_S = 3_600.0


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases and fences end when a test moves their rows, not because a busy machine is slow."""
    monkeypatch.setattr(scaling, "LEASE_S", LONG_S)
    monkeypatch.setattr(shrinking, "FENCE_S", LONG_S)


@pytest.fixture
def fleets(db: psycopg.Connection[Any], database_url: str) -> Fleets:
    return Fleets(db, database_url)


@pytest.fixture
def pod_fleets(db: psycopg.Connection[Any], database_url: str) -> Iterator[PodFleets]:
    with kubernetes() as cluster:
        yield PodFleets(db, database_url, cluster=cluster)
