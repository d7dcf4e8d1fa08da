"""A service that starts before its database waits for it, and says so in one line."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.core.service import ServiceKind
from evenflow.errors import DatabaseUnavailable, EvenflowError, SettingsError
from evenflow.runtime import database, service
from evenflow.runtime.service_settings import ServiceSettings
from evenflow.runtime.settings import Settings


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[EvenflowError]:
    """What opening the database fails with, time after time, until nothing is left."""
    failures: list[EvenflowError] = []

    @contextlib.contextmanager
    def open_database(url: str, home: Path) -> Iterator[str]:
        if failures:
            raise failures.pop(0)
        yield url

    monkeypatch.setattr(database, "open_database", open_database)
    monkeypatch.setattr(service, "DATABASE_PAUSE_S", 0.0)
    monkeypatch.setattr(service, "_run", lambda kind, settings: 0 if settings.database_url == "postgresql://there" else 1)
    return failures


def settings(url: str) -> ServiceSettings:
    return Settings().for_service(name="s", database_url=url, token="", api_url="", api_port=0)


def test_it_waits_for_a_database_that_is_away(opens: list[EvenflowError], caplog: pytest.LogCaptureFixture) -> None:
    opens += [DatabaseUnavailable("refused"), DatabaseUnavailable("starting up")]
    with caplog.at_level(logging.INFO):
        assert service._run_on_database(ServiceKind.SCHEDULER, settings("postgresql://there")) == 0
    assert [record.getMessage() for record in caplog.records] == ["waits for the database: refused"]


def test_it_does_not_wait_for_what_no_time_mends(opens: list[EvenflowError]) -> None:
    opens += [SettingsError("no URL")]
    with pytest.raises(SettingsError):
        service._run_on_database(ServiceKind.SCHEDULER, settings("postgresql://there"))
    opens += [DatabaseUnavailable("the embedded one cannot start")]
    with pytest.raises(DatabaseUnavailable):
        service._run_on_database(ServiceKind.SCHEDULER, settings(""))
