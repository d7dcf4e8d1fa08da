"""The executors that the suite is for. Each is started once, for all tests of its parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.executors import systems
from tests.executors.brokers import RabbitMq, Redis
from tests.executors.systems import Executor
from tests.otlp import OtlpReceiver, receiving

ALL = ("native", "celery-redis", "kubernetes")


def _started(name: str, folder: Path, **settings: str) -> AbstractContextManager[Executor]:
    match name:
        case "native":
            return systems.native(**settings)
        case "kubernetes":
            return systems.kubernetes(**settings)
        case "celery-redis":
            return systems.celery(Redis(folder / "redis"), **settings)
        case _:
            return systems.celery(RabbitMq(folder / "rabbitmq"), **settings)


@pytest.fixture(scope="session")
def collector() -> Iterator[OtlpReceiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="session", params=ALL)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, collector: OtlpReceiver) -> Iterator[Executor]:
    with _started(request.param, tmp_path_factory.mktemp("broker"), EVENFLOW_TRACES_URL=collector.url) as started:
        yield started
