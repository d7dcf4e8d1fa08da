"""Notification rules call for what happens, once for each event and rule, whoever looks and however transactions end (R-CS4)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.duties import notify_by_rules
from evenflow.store.db.connect import connect
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import notifications
from tests.scheduler.world import World

CALLS = (
    "select c.notifier ->> 'rule', c.event, t.task_id, c.try_number, c.state, c.reason from callback c"
    " left join task t on t.version_key = c.version_key and t.task_index = c.task_index"
    " where c.notifier is not null order by 1, c.run_key"
)


def set_rule(world: World, name: str, event: str, **fields: Any) -> None:
    """As the API does."""
    names: dict[str, Any] = {"dags": [], "scope": None, "notifier": "slack", "conn_id": "chat", "signed_by": None, "recipients": []}
    with world.conn.transaction():
        world.conn.execute(sql("notifications/begin_look"), {"reader": notifications.READER})
        world.conn.execute(
            sql("notifications/set_one"), {"name": name, "event": event, **names, "is_enabled": True, "by": "ada", **fields}
        )


def end_run(world: World, outcome: str, dag_id: str = "d", **fields: Any) -> int:
    world.add_dag(DagSpec(dag_id=dag_id, tasks=(TaskSpec(task_id="t", operator="python", **fields),)))
    run_key = world.trigger(dag_id)
    world.advance()
    world.report([t for t in world.claim() if t.task_id == "t"], outcome, reason="ValueError: no")
    world.advance()
    return run_key


def test_each_event_calls_once_for_each_rule_that_is_for_it(world: World) -> None:
    """R-CS4"""
    set_rule(world, "runs", "run_failed")
    set_rule(world, "tasks", "task_failed")
    set_rule(world, "good", "run_succeeded")
    end_run(world, "failed")
    notify_by_rules(world.conn)
    notify_by_rules(world.conn)
    assert world.conn.execute(CALLS).fetchall() == [
        ("runs", "run_failed", None, 0, "failed", None),
        ("tasks", "task_failed", "t", 1, "failed", "ValueError: no"),
    ]
    world.advance()
    assert [t.task_id for t in world.claim()] == ["callback", "callback"]
    world.audit()


def test_a_try_that_is_followed_by_another_is_no_failed_task(world: World) -> None:
    set_rule(world, "tasks", "task_failed")
    set_rule(world, "tries", "task_retried")
    end_run(world, "failed", retries=1)
    notify_by_rules(world.conn)
    assert [call[:2] for call in world.conn.execute(CALLS).fetchall()] == [("tries", "task_retried")]


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"dags": ["d"]}, 1),
        ({"dags": ["other"]}, 0),
        ({"scope": '{"tags": ["etl"]}'}, 1),
        ({"scope": '{"tags": ["hr"]}'}, 0),
        ({"dags": ["d"], "scope": '{"tags": ["hr"]}'}, 0),
        ({"is_enabled": False}, 0),
    ],
)
def test_a_rule_is_for_the_dags_that_it_names(world: World, fields: dict[str, Any], called: int) -> None:
    set_rule(world, "always", "run_succeeded", dags=["nothing"])
    set_rule(world, "runs", "run_failed", **fields)
    world.add_dag(DagSpec(dag_id="d", tags=("etl",), tasks=(TaskSpec(task_id="t", operator="python"),)))
    world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed")
    world.advance()
    assert notifications.call(world.conn) == called


def test_what_was_before_the_first_rule_is_not_told(world: World) -> None:
    end_run(world, "failed")
    set_rule(world, "runs", "run_failed")
    assert notifications.call(world.conn) == 0
    world.trigger("d")
    world.advance()
    world.report(world.claim(), "failed")
    world.advance()
    assert notifications.call(world.conn) == 1


def test_the_end_of_a_notification_is_not_told(world: World) -> None:
    """A rule that fails and is for everything that fails would call for ever."""
    set_rule(world, "runs", "run_failed")
    set_rule(world, "tasks", "task_failed")
    end_run(world, "failed")
    notify_by_rules(world.conn)
    for _ in range(2):
        world.advance()
        world.report(world.claim(), "failed_for_good")
    world.advance()
    assert notifications.call(world.conn) == 0


def test_a_transaction_that_ends_late_is_told_and_told_once(world: World, database_url: str) -> None:
    """R-CS4: it began before others that were looked at, and nobody waits for it."""
    set_rule(world, "runs", "run_failed")
    late, soon = end_run(world, "success"), end_run(world, "success", "e")
    assert notifications.call(world.conn) == 0
    with connect(database_url, name="late") as other:
        with other.transaction():
            failed(other, late)
            failed(world.conn, soon)
            assert notifications.call(world.conn) == 1
        assert notifications.call(world.conn) == 1
    assert notifications.call(world.conn) == 0


def failed(conn: psycopg.Connection[Any], run_key: int) -> None:
    conn.execute("insert into run_event (run_key, event, state, actor) values (%s, 'fail', 'failed', 'scheduler')", [run_key])


def test_two_schedulers_do_not_look_at_once(world: World, database_url: str) -> None:
    """R-HA7: the other one goes on without waiting."""
    set_rule(world, "runs", "run_failed")
    end_run(world, "failed")
    with connect(database_url, name="other") as other:
        with other.transaction():
            assert notifications.call(other) == 1
            assert notifications.call(world.conn) == 0
        assert notifications.call(world.conn) == 0
    assert len(world.conn.execute(CALLS).fetchall()) == 1


def test_a_database_of_another_history_begins_to_look_with_now(world: World) -> None:
    """R-CS7: a dump that was read into a new server numbers transactions anew."""
    set_rule(world, "runs", "run_failed")
    end_run(world, "failed")
    world.conn.execute("update history_look set snapshot = '900000000:900000000:'")
    assert notifications.call(world.conn) == 0
    failed(world.conn, world.trigger("d"))
    assert notifications.call(world.conn) == 1
