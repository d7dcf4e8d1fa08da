"""A listener hears what is notified, also after its connection broke."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from evenflow.errors import DatabaseUnavailable, XComError
from evenflow.store.db import notify
from evenflow.store.db.connect import connect
from evenflow.store.db.notify import DAG, DISPATCH, INBOX, AsyncListener
from evenflow.store.db.rows import execute
from evenflow.store.serving import dispatch
from tests.round_trips import AsyncCountingConnection


@pytest.fixture
async def heard(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Queue[str]]:
    monkeypatch.setattr(notify, "RECONNECT_DELAY_S", 0.01)
    queue: asyncio.Queue[str] = asyncio.Queue()
    lost: list[Exception] = []
    listener = AsyncListener(database_url, [DISPATCH, DAG], lambda channel, _: queue.put_nowait(channel), lost.append, name="test")
    await listener.start()
    yield queue
    await listener.stop()


async def test_it_hears_its_channels_only(heard: asyncio.Queue[str], db: psycopg.Connection) -> None:
    for channel in (INBOX, DISPATCH, DAG):
        db.execute(f"notify {channel}")
    assert await asyncio.wait_for(heard.get(), 5) == DISPATCH
    assert await asyncio.wait_for(heard.get(), 5) == DAG
    assert heard.empty()


async def test_after_a_broken_connection_it_looks_everywhere_and_listens_again(
    heard: asyncio.Queue[str], database_url: str
) -> None:
    with connect(database_url, name="test") as other:
        killed = other.execute(
            "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity "
            "where datname = current_database() and application_name like '%listener'"
        )
        assert killed.fetchone() == (1,)
        assert {await asyncio.wait_for(heard.get(), 5) for _ in range(2)} == {DISPATCH, DAG}
        other.execute(f"notify {DAG}")
        assert await asyncio.wait_for(heard.get(), 5) == DAG


async def test_who_is_woken_after_a_commit_is_woken_by_no_commit(db: psycopg.Connection, database_url: str) -> None:
    """R-HA14: a transaction that notifies shares no flush with others, so what is hot does it afterwards (ADR 0020)."""
    with connect(database_url, name="test") as listener:
        listener.execute(f"listen {INBOX}")
        report = '[{"run_key": 1, "epoch": 1, "kind": "started", "age_s": 0}]'
        execute(db, "dispatch/insert_reports", {"reports": report})
        execute(db, "triggers/insert_events", {"events": report})
        assert list(listener.notifies(timeout=0)) == []
        notify.wake(db, [INBOX])
        assert [heard.channel for heard in listener.notifies(timeout=5, stop_after=1)] == [INBOX]
        assert db.execute("show synchronous_commit").fetchone() == ("on",), "what comes next is durable"


async def test_reports_are_stored_and_schedulers_woken_in_one_round_trip(database_url: str, db: psycopg.Connection) -> None:
    """R-ST5: where PostgreSQL is far away a task's successor begins a round trip sooner. The wake-up is none of the commit's."""
    report = '[{"run_key": 1, "epoch": 1, "kind": "started", "age_s": 0}]'
    with connect(database_url, name="test") as listener:
        listener.execute(f"listen {INBOX}")
        async with await AsyncCountingConnection.connect(database_url, autocommit=True) as conn:
            await dispatch.insert_reports(conn, report)  # from now on its statements are prepared
            conn.waits = 0
            await dispatch.insert_reports(conn, report)
            assert conn.waits == 1
        assert [heard.channel for heard in listener.notifies(timeout=5, stop_after=2)] == [INBOX, INBOX]


async def test_a_report_that_cannot_be_stored_leaves_the_connection_as_it_was(database_url: str, db: psycopg.Connection) -> None:
    """R-CS5: what is wrong with it is told, and the next one is stored."""
    bad = '[{"run_key": 1, "epoch": 1, "kind": "nothing like this", "age_s": 0}]'
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        with pytest.raises(XComError):
            await dispatch.insert_reports(conn, bad)
        await dispatch.insert_reports(conn, bad.replace("nothing like this", "started"))
    assert db.execute("select count(*) from report").fetchone() == (1,)


async def test_it_says_when_it_cannot_begin() -> None:
    with pytest.raises(DatabaseUnavailable):
        await AsyncListener("postgresql:///x?host=/nowhere", [DAG], print, print, name="test").start()


async def test_a_listener_that_fails_says_so_and_listens_anew(
    database_url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA4: whatever failed. A service that hears nothing any more would look alive."""
    monkeypatch.setattr(notify, "RECONNECT_DELAY_S", 0.01)
    heard: asyncio.Queue[str] = asyncio.Queue()
    lost: list[Exception] = []
    flaws = [KeyError("a defect")]

    def on_notify(channel: str, word: str) -> None:
        if flaws:
            raise flaws.pop()
        heard.put_nowait(channel)

    listener = AsyncListener(database_url, [DAG], on_notify, lost.append, name="test")
    await listener.start()
    db.execute(f"notify {DAG}")
    assert await asyncio.wait_for(heard.get(), 5) == DAG, "it looks everywhere, as after a broken connection"
    assert [repr(error) for error in lost] == ["KeyError('a defect')"]
    db.execute(f"notify {DAG}")
    assert await asyncio.wait_for(heard.get(), 5) == DAG
    await listener.stop()
