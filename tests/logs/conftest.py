"""Places for logs: folders, and object storage as files and in a server that speaks S3."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.objects import ObjectLogs
from evenflow.api.logs.store import LogStore
from tests.clouds import cloud, shared_cloud

MakeLogs = Callable[..., LogStore]
__all__ = ["cloud", "shared_cloud"]  # fixtures


@pytest.fixture(params=["folder", "objects in files", "S3"])
def make_logs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeLogs]:
    """Makes what API servers have, all of the same place. Who is told of lost bytes and of refused chunks is given."""
    match request.param:
        case "folder":
            kind, place = LogDirectory, tmp_path / "logs"
        case "S3":
            request.getfixturevalue("cloud")
            kind, place = ObjectLogs, f"s3://logs/{uuid.uuid4().hex}"
        case _:
            kind, place = ObjectLogs, (tmp_path / "logs").as_uri()
    made: list[LogStore] = []

    def make(*told: Callable[[int], None]) -> LogStore:
        made.append(kind(place, *told))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def logs(make_logs: MakeLogs) -> LogStore:
    return make_logs()
