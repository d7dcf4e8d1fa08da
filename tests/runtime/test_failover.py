"""R-HA18: a real primary dies and its standby takes over, with all that was committed or without the last of it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.core.settings import FAILOVER_LOSES_COMMITS
from evenflow.errors import DatabaseUnavailable
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.store.db.connect import UNBOUNDED, connect, open_pool
from evenflow.store.db.failures import is_gone, is_outage
from evenflow.store.db.migrate import migrate
from evenflow.store.scheduling.incarnation import begin_incarnation, find_server, notice_server
from tests.standby import Standby, replicating

SETTINGS = {"fsync": "off", "log_min_duration_statement": "-1"}

pytestmark = pytest.mark.system


@pytest.fixture
def standby() -> Iterator[Standby]:
    """Of a server with a migrated database, which has been seen by a scheduler."""
    with contextlib.ExitStack() as stack:
        homes = []
        for name in ("primary", "standby"):
            home = Path(tempfile.mkdtemp(prefix=f"evenflow-{name}-"))
            home.chmod(0o755)
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            homes.append(home)
        primary = EmbeddedPostgres(homes[0], overrides={**SETTINGS, **replicating(homes[0])})
        stack.callback(primary.stop)
        with connect(primary.start(), name="test", timeouts=UNBOUNDED) as conn:
            migrate(conn)
            assert notice_server(conn, by="scheduler-1") is None
        yield Standby(primary, homes[1], SETTINGS, stop_at=stack)


def noticed_at_once(url: str, sessions: int) -> list[object]:
    """What each of several services finds that connect at the same time."""
    found: list[object] = []
    ready = threading.Barrier(sessions)

    def look() -> None:
        with connect(url, name="scheduler", generic_plans=True) as conn:
            ready.wait()
            found.append(notice_server(conn, by="scheduler"))

    threads = [threading.Thread(target=look) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def incarnations(conn: psycopg.Connection[Any]) -> list[str]:
    return [reason for (reason,) in conn.execute("select reason from incarnation order by incarnation")]


def block(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("select nextval('epoch_seq')").fetchone()
    assert row is not None
    return int(row[0])


def test_a_standby_that_lacks_the_last_commits_takes_over(standby: Standby) -> None:
    """Whoever connects comes to the new primary by itself; one new incarnation begins, and no number of the lost ones is given out
    twice.
    """
    url = standby.url("evenflow")
    with connect(url, name="scheduler") as conn:
        known = block(conn)
        standby.catch_up()
        standby.lose_touch()
        lost = [block(conn) for _ in range(200)]
        conn.execute("insert into setting (name, value, changed_by) values ('lost', '1', 'ada')")
        standby.take_over()
        with pytest.raises(psycopg.OperationalError) as broken:
            conn.execute("select 1")
        assert is_gone(broken.value)
    found = noticed_at_once(url, sessions=6)
    assert len([server for server in found if server is not None]) == 1
    with connect(url, name="scheduler") as conn:
        assert conn.execute("select from setting where name = 'lost'").fetchall() == [], "nothing was lost: this shows nothing"
        assert incarnations(conn) == ["a server took over: timeline 2 follows 1"]
        assert block(conn) > max(lost) > known
        assert notice_server(conn, by="scheduler-1") is None
        assert find_server(conn).timeline == 2


@pytest.mark.slow
def test_who_says_so_oneself_has_it_begin_once(standby: Standby) -> None:
    """`evenflow db fence` after a fail-over, before services come."""
    standby.catch_up()
    standby.take_over()
    with connect(standby.url("evenflow"), name="fence") as conn:
        begin_incarnation(conn, reason="fenced", by="ada")
        assert notice_server(conn, by="scheduler-1") is None
        assert incarnations(conn) == ["fenced"]


@pytest.mark.slow
@pytest.mark.parametrize(("says", "begins"), [("true", 1), ("false", 0)])
def test_a_synchronous_standby_takes_over(standby: Standby, says: str, begins: int) -> None:
    """It lacks nothing; told so, nothing is sent again."""
    standby.be_waited_for()
    with connect(standby.url("evenflow"), name="test") as conn:
        conn.execute("insert into setting (name, value, changed_by) values (%s, %s::jsonb, 'ada')", [FAILOVER_LOSES_COMMITS, says])
    standby.take_over()
    with connect(standby.url("evenflow"), name="scheduler") as conn:
        notice_server(conn, by="scheduler-1")
        assert conn.execute("select changed_by from setting where name = %s", [FAILOVER_LOSES_COMMITS]).fetchall() == [("ada",)]
        assert len(incarnations(conn)) == begins
        assert find_server(conn).seen_timeline == 2


async def test_a_server_that_takes_no_writes_is_an_outage(standby: Standby) -> None:
    """A standby, or a primary that was demoted: nobody works on it who does not ask to, and who was connected leaves."""
    alone = standby.server.url()
    with pytest.raises(DatabaseUnavailable, match="takes no writes: let EVENFLOW_DATABASE_URL name") as refused:
        connect(alone, name="scheduler")
    assert is_gone(refused.value)
    with connect(f"{alone}&target_session_attrs=any", name="report") as conn:
        assert find_server(conn).timeline is None
        assert notice_server(conn, by="report") is None
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction) as error:
            conn.execute("select nextval('epoch_seq')")
    assert is_outage(error.value)
    assert is_gone(error.value)
    pool = await open_pool(standby.url("evenflow"), name="api", max_size=1)
    try:
        with contextlib.suppress(psycopg.errors.ReadOnlySqlTransaction):
            async with pool.connection() as demoted:
                await demoted.execute("set default_transaction_read_only = on")
                await demoted.execute("select nextval('epoch_seq')")
                pytest.fail("it takes writes")
        async with pool.connection() as fresh:
            await fresh.execute("select nextval('epoch_seq')")
    finally:
        await pool.close()
