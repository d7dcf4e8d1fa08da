"""Fleets of real services, which end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.store.db.connect import connect
from tests.hosts.fleet import Fleet


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "dags").mkdir()
    with connect(database_url, name="test") as db:
        fleet = Fleet(database_url, db, tmp_path)
        try:
            yield fleet
        finally:
            fleet.end()
