"""Autoscalers on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.autoscaler.pods import PodFleets
from tests.autoscaler.world import Fleets
from tests.kubernetes.cluster import kubernetes


@pytest.fixture
def fleets(db: psycopg.Connection[Any], database_url: str) -> Fleets:
    return Fleets(db, database_url)


@pytest.fixture
def pod_fleets(db: psycopg.Connection[Any], database_url: str) -> Iterator[PodFleets]:
    with kubernetes() as cluster:
        yield PodFleets(db, database_url, cluster=cluster)
