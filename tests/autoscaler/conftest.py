"""Autoscalers on a real database."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.autoscaler.world import Fleets


@pytest.fixture
def fleets(db: psycopg.Connection[Any], database_url: str) -> Fleets:
    return Fleets(db, database_url)
