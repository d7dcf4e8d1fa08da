"""What is sent in a pipeline, and answered."""

from __future__ import annotations

import pytest

from evenflow.store.db.connect import TURNS, connect
from evenflow.store.db.rows import commit, in_one_go


@pytest.mark.timeout(60)
def test_more_than_a_socket_takes_is_sent_and_answered(database_url: str) -> None:
    """R-ST4: as when a run of 100,000 tasks is created or cancelled: both sides waited for each other until the server gave up."""
    names = ["n" * 40] * 50_000
    with connect(database_url, name="test", timeouts=TURNS) as conn:
        with in_one_go(conn):
            counts = [conn.execute("select count(*) from unnest(%s::text[])", (names,), prepare=True) for _ in range(3)]
            commit(conn)
        assert [cursor.fetchone() for cursor in counts] == [(50_000,)] * 3
