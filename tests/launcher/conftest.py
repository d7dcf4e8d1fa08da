"""Launchers on a real database."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.launcher.world import Pushed


@pytest.fixture
def pushed(db: psycopg.Connection[Any]) -> Pushed:
    return Pushed(db)
