"""A cluster for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster, kubernetes


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with kubernetes() as found:
        yield found
