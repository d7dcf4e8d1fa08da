"""Fixtures: a DAG to define tasks in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenflow import DAG


@pytest.fixture
def dag() -> Iterator[DAG]:
    """Open, for tasks to be defined in."""
    with DAG("d") as dag:
        yield dag
