"""What was scheduled is remembered whatever else happens: the statements, with their API, on a database whose clock the test sets,
so that the clock of this host is wrong by months. tests/core has the rules alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.api.judge import Judge
from evenflow.api.parsing import store_parsed
from evenflow.api.rest.dags import set_paused
from evenflow.scheduler.duties.retention import OldRuns
from evenflow.scheduler.duties.schedules import create_scheduled
from evenflow.store.db.connect import AsyncPool, connect, open_pool
from evenflow.store.serving import dags, operations
from evenflow.wire.code import archive_hash, pack
from evenflow.wire.messages import FileSeen, ParsedFile
from tests.core.naive_schedule import Plan, Story, changes, plans, steps

CODE = {"x.py": b""}
CODE_HASH = archive_hash(CODE)
LONG_AFTER = datetime(2999, 1, 1, tzinfo=UTC)
CLOCK = """
create schema clock;
create table clock.moment (at timestamptz);
insert into clock.moment values (now());
create function clock.now() returns timestamptz language sql stable as 'select at from clock.moment';
alter table dag alter first_seen_at set default clock.now();
do $$ begin execute format('alter database %I set search_path = clock, public, pg_catalog', current_database()); end $$
"""  # a schema before pg_catalog: its now() is the one that statements mean


class OnDatabase:
    """One DAG, in a file of its own."""

    def __init__(self, conn: psycopg.Connection[Any], pool: AsyncPool, judge: Judge, runner: asyncio.Runner, number: int) -> None:
        self.conn, self.pool, self.judge, self.runner = conn, pool, judge, runner
        self.dag_id = f"d{number}"
        self.parses = 0

    def set_now(self, now: datetime) -> None:
        self.conn.execute("update clock.moment set at = %s", [now])

    def parse(self, plan: Plan) -> None:
        self.parses += 1
        file = ParsedFile(
            bundle=self.dag_id,
            file="x.py",
            fingerprint=str(self.parses),
            seconds=0.1,
            specs=[plan.spec(self.dag_id).to_json()],
            code_hash=CODE_HASH,
            code=pack(CODE),
        )
        self.see(FileSeen(file=file.file, fingerprint=file.fingerprint))
        answer = self.runner.run(store_parsed(self.pool, self.judge, file))
        assert not answer.errors

    def retire(self) -> None:
        self.see()

    def see(self, *files: FileSeen) -> None:
        async def see() -> None:
            async with self.pool.connection() as conn:
                await dags.see_files(conn, self.dag_id, files)

        self.runner.run(see())

    def pause(self, is_paused: bool) -> None:
        async def pause() -> None:
            async with self.pool.connection() as conn, conn.transaction():
                await set_paused(conn, self.dag_id, is_paused=is_paused)

        self.runner.run(pause())

    def look(self) -> list[datetime]:
        before = self.newest_run()
        create_scheduled(self.conn)
        rows = self.conn.execute(
            "select logical_date from dag_run where dag_id = %s and run_key > %s and run_type = 'scheduled' order by run_key",
            [self.dag_id, before],
        )
        return [date for (date,) in rows]

    def newest_run(self) -> int:
        return int(self.conn.execute("select coalesce(max(run_key), 0) from dag_run").fetchone()[0])

    def take(self, dates: list[datetime], run_type: str) -> None:
        self.conn.execute(
            "insert into dag_run (dag_id, run_id, version_key, run_type, logical_date)"
            " select dag_id, gen_random_uuid()::text, version_key, %s, date from dag, unnest(%s::timestamptz[]) as date"
            " where dag_id = %s on conflict do nothing",
            [run_type, dates, self.dag_id],
        )

    def work(self) -> None:
        self.conn.execute("update dag_run set state = 'success', ended_at = now() where dag_id = %s", [self.dag_id])

    def delete(self, dates: list[datetime]) -> None:
        """By retention, as far as it may be: that of all which has ended. Else as people do."""
        there = self.conn.execute(
            "select run_key, logical_date, state = 'success' from dag_run where dag_id = %s and logical_date is not null",
            [self.dag_id],
        ).fetchall()
        if {date for _, date, has_ended in there if has_ended} == set(dates):
            while OldRuns().delete(self.conn, LONG_AFTER):
                pass
            return

        async def delete() -> None:
            async with self.pool.connection() as conn:
                await operations.delete_runs(conn, [run_key for run_key, date, _ in there if date in dates])

        self.runner.run(delete())

    def due_at(self) -> datetime | None:
        return self.conn.execute("select next_run_at from dag where dag_id = %s", [self.dag_id]).fetchone()[0]


@pytest.fixture
def players(database_url: str) -> Iterator[Any]:
    """Makes a player for each story."""
    with connect(database_url, name="test") as conn:
        conn.execute(CLOCK)
    numbers = count()
    with connect(database_url, name="test") as conn, asyncio.Runner() as runner:
        pool, judge = runner.run(open_pool(database_url, name="test")), Judge()
        yield lambda: OnDatabase(conn, pool, judge, runner, next(numbers))
        runner.run(judge.close())
        runner.run(pool.close())


@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.system)])
def test_no_date_is_made_twice_or_lost_or_for_ever_in_the_way(players: Any, examples: int) -> None:
    """R-HA20: by the clock of the database alone."""

    @settings(max_examples=examples, deadline=None)
    @given(plans, st.lists(st.one_of(steps, steps, steps, changes), min_size=5, max_size=25))
    def each_once(plan: Plan, happens: list[tuple[Any, ...]]) -> None:
        player = players()
        story = Story(player, plan)
        for step in happens:
            story.play(step)
        story.settle()
        player.retire()

    each_once()
