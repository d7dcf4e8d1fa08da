"""The executors that the suite is for. Each is started once, for all tests of its parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.executors import systems
from tests.executors.brokers import RabbitMq, Redis
from tests.executors.systems import Executor

ALL = ("native", "celery-redis", "kubernetes")


def _started(name: str, folder: Path) -> AbstractContextManager[Executor]:
    match name:
        case "native":
            return systems.native()
        case "kubernetes":
            return systems.kubernetes()
        case "celery-redis":
            return systems.celery(Redis(folder / "redis"))
        case _:
            return systems.celery(RabbitMq(folder / "rabbitmq"))


@pytest.fixture(scope="session", params=ALL)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    with _started(request.param, tmp_path_factory.mktemp("broker")) as started:
        yield started
