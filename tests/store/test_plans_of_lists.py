"""A page of a list costs what it shows, however long the list is and however far behind its first page (R-SE3, R-ST5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.sql import sql
from tests.house.project import ROOT

SQL = ROOT / "src" / "evenflow" / "store" / "sql"
N = 3_000  # rows of each list
LIMIT = 10
READ_MOST = (
    20 * LIMIT
)  # rows of all tables together: of each that is shown its DAG, run, task and version, of an asset its newest events

FILL = (
    "insert into code values ('c', '')",
    "insert into dag_version (version_key, dag_id, version_number, spec, spec_hash, code_hash, file) overriding system value"
    """ select 1000 + n, 'd' || case when n < {n} then n::text else '' end, n, '{"tasks": []}', n::text, 'c', 'x.py'"""
    " from generate_series(1, {n}) n",
    "insert into dag (dag_id, version_key, bundle, file)"
    " select dag_id, version_key, 'b', 'x.py' from dag_version where version_key > 1000",
    "update dag set tags = '{few}' where dag_id in ('d', 'd5')",
    "insert into task select 1000 + {n}, n, 't' || n, 'python' from generate_series(0, {n}) n",
    "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, created_at)"
    " select n, 'd', n::text, {n} + 1000, 'success', 'manual', now() - n * interval '1 min' from generate_series(1, {n}) n",
    "insert into task_instance (run_key, task_index, map_index, state, epoch)"
    " select 1, n / 2, n % 2 - 1, 'success', n from generate_series(1, {n}) n",
    "insert into mapped_task (run_key, task_index, length, virtual_state) values (2, 5, {n}, 'scheduled')",
    "insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state)"
    " select n / 4, 1, -1, n, 1, 'end', 'success' from generate_series(1, {n}) n",
    "insert into run_event (run_key, event, state, actor) select n / 4, 'end' || n, 'success', 'a' from generate_series(1, {n}) n",
    "insert into xcom (run_key, task_index, key, value, epoch)"
    " select 1, n / 2, 'k' || n, '1', n from generate_series(1, {n}) n where n % 2 = 0",
    "insert into dag_file (bundle, file, fingerprint, error, warnings)"
    " select 'b', 'f' || n, 'x', 'wrong', 'odd' from generate_series(1, {n}) n",
    "insert into backfill (dag_id, is_reversed, reprocess, max_active_runs, params, priority, created_by)"
    " select 'd', false, 'none', 1, '{}', 0, 'ada' from generate_series(1, {n})",
    "insert into backfill_run (backfill_id, position, partition) select 1 + n % 2 * n, n, 'p' || n from generate_series(1, {n}) n",
    "insert into asset (name, uri) select 'a' || n, 'x://' || n from generate_series(1, {n}) n",
    "insert into asset_event (asset, actor) select 'a' || n % 2, 'ada' from generate_series(1, {n}) n",
    "insert into audit_event (actor, action, object) select 'ada', 'pool.set', 'p' || n % 2 from generate_series(1, {n}) n",
    "insert into quarantine (kind, object, since, reason)"
    " select 'schedule', 'd' || n, now() - n * interval '1 s', 'r' from generate_series(1, {n}) n",
    "insert into user_account (name, role, password, created_by)"
    " select 'u' || n, 'viewer', '', 'ada' from generate_series(1, {n}) n",
    "insert into token_key values (1, '') on conflict do nothing",
    "insert into token (kind, name, user_name, created_by, expires_at, digest, key_id)"
    " select 'session', 'u' || n, 'u' || n, 'ada', now() + interval '1 day', n::text::bytea, key_id"
    " from token_key, generate_series(1, {n}) n",
    "insert into setting_change (name, value, changed_by)"
    " select 'retention_days', to_jsonb(n), 'ada' from generate_series(1, {n}) n",
    "insert into sealed_value (kind, name, sealed, changed_by)"
    " select 'variable', 'v' || n, '', 'ada' from generate_series(1, {n}) n",
    "insert into fleet (name, target, queues, changed_by) values ('f', 'native', '{q}', 'ada')",
    "insert into scaling_look (fleet, at, running, aside, waiting, expected, oldest_wait, replicas, out_of_service, others, ready,"
    " asked, reason) select 'f', now() - n * interval '1 s', 0, 0, 0, 0, 0, 0, 0, 0, 0, n, '' from generate_series(1, {n}) n",
    "insert into scaling_step (fleet, plan, step) select 'f', n / 2, 'drain' from generate_series(1, {n}) n",
    "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake, retake_slots,"
    " deferred_at, began_at, ran_s, ready_at, due_at)"
    " select n, 1, -1, n, 'q', 't.T', '', '{}', 0, '{}', 0, now() - n * interval '1 s', now(), 1, now(),"
    " case when n % 2 = 0 then timestamptz 'infinity' else now() end from generate_series(1, {n}) n",
)
MIDDLE = N // 2
ANY = {"dag_id": None, "run_id": None, "task_id": None, "map_index": None, "scope": None}
A_TIME = f"(select to_jsonb(now() - {MIDDLE} * interval '1 s'))"
# By statement: what it is asked for, and the place of a row in its middle; of some several times.
LISTS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "approvals/list_waiting": [(ANY, f"jsonb_build_array({A_TIME}, 1)")],
    "triggers/list_waiting": [(ANY, f"jsonb_build_array({A_TIME}, 1)")],
    "assets/list_all_events": [({"scope": None}, f"'[{MIDDLE}]'")],
    "assets/list_events": [({"asset": "a1", "scope": None}, f"'[{MIDDLE}]'")],
    "assets/list_assets": [
        ({"asset": None, "scope": None}, f"""'["a{MIDDLE}"]'"""),
        ({"asset": "a7", "scope": None}, "null"),
    ],
    "backfills/list_all": [({"dag_id": None, "backfill_id": None, "scope": None}, f"'[{MIDDLE}]'")],
    "backfills/list_runs": [({"backfill_id": 1}, f"'[{MIDDLE}]'")],
    "events/list_all": [
        ({"actor": None, "action": None, "object": None, "scope": None}, f"'[{MIDDLE}]'"),
        ({"actor": None, "action": None, "object": "p1", "scope": None}, f"'[{MIDDLE}]'"),
    ],
    "scaling/list_looks": [({"fleet": "f", "since": 0}, f"jsonb_build_array({A_TIME})")],
    "scaling/list_steps": [({"fleet": "f"}, f"'[{MIDDLE // 2}, {MIDDLE}]'")],
    "sealed/list_all": [({"kind": "variable"}, f"""'["v{MIDDLE}"]'""")],
    "settings/list_changes": [({"name": "retention_days"}, f"'[{MIDDLE}]'")],
    "tokens/list_all": [({"kind": None, "state": None}, f"'[{MIDDLE}]'")],
    "tokens/list_sessions": [({"user": None, "login_id": None, "session_id": None}, f"'[{MIDDLE}]'")],
    "users/list_all": [({"name": None}, f"""'["u{MIDDLE}"]'""")],
    "views/list_dags": [({"dag_id": None, "retired": False, "search": None, "scope": None, "recent": 1}, f"""'["d{MIDDLE}"]'""")],
    "views/list_parse_errors": [({"scope": None, "lease_s": 15.0}, f"""'["b", "f{MIDDLE}"]'""")],
    "views/list_parse_warnings": [({"scope": None}, f"""'["b", "f{MIDDLE}"]'""")],
    "views/list_run_events": [({"run_key": 77}, "null")],
    "views/list_tasks": [
        ({"run_key": 1, "task_id": None}, f"'[{MIDDLE // 2}, -1]'"),
        ({"run_key": 2, "task_id": None}, f"'[5, {MIDDLE}]'"),
    ],
    "views/list_runs": [
        ({**ANY, "state": None}, f"'[{MIDDLE}]'"),
        ({**ANY, "dag_id": "d", "state": "success"}, f"'[{MIDDLE}]'"),
    ],
    "views/list_runs_in_scope": [
        ({**ANY, "state": None, "scope": '{"tags": ["few"]}'}, f"'[{MIDDLE}]'"),
        ({**ANY, "dag_id": "d", "state": "success", "scope": '{"tags": ["few"]}'}, f"'[{MIDDLE}]'"),
    ],
    "views/list_versions": [({"dag_id": "d5"}, "null")],
    "xcom/list_values": [({"dag_id": "d", "run_id": "1", "task_id": None}, f"""'[{MIDDLE // 2}, -1, "k"]'""")],
}
# Whose DAGs are looked through, once: no index has their tags. Of 10,000 DAGs that takes 1.5 ms. A GIN index would make
# it 0.3 ms, and add 40% to what each scheduled run writes of its DAG: 460 bytes of WAL become 640.
SCOPED = {"views/list_runs_in_scope"}
# What these show is few, or is computed of all that there is.
WHOLE = {
    "quarantine/list_all",  # what handling failed: as few as there are faults
    "views/list_bundles",  # counts the files of each bundle
    "views/list_task_events",  # of a task of a run: the index of events has stretches of their pages
    "views/list_tasks_in_state",  # no index has the states of tasks: it reads on to the last row that it shows
}


def test_a_page_of_a_list_reads_what_it_shows(database_url: str) -> None:
    """R-SE3, R-ST5: the first page, and one in the middle of thousands."""
    with connect(database_url, name="test", timeouts=UNBOUNDED) as conn:
        for statement in FILL:
            conn.execute(statement.replace("{n}", str(N)).encode())
        conn.execute("vacuum analyze")
        read = {
            f"{name}, {asked}, behind {place}": count
            for name, asks in LISTS.items()
            for asked, middle in asks
            for place in ("null", middle)
            if (count := rows_read(conn, name, asked, place)) > READ_MOST + N * (name in SCOPED)
        }
    assert read == {}


def test_each_list_that_has_a_cursor_is_looked_at() -> None:
    paged = {f"{file.parent.name}/{file.stem}" for file in SQL.glob("*/list_*.sql") if "%(after)s" in file.read_text("utf-8")}
    assert paged | {"views/list_runs", "views/list_runs_in_scope"} == LISTS.keys() | WHOLE


def test_lists_are_planned_with_their_values() -> None:
    """R-SE3: prepared, a statement is soon planned for any place, and a page reads all that is before it."""
    source = "".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))
    assert [name for name in sorted(LISTS.keys() | WHOLE) if f'sql("{name}")' in source] == []


def rows_read(conn: psycopg.Connection[Any], name: str, asked: dict[str, Any], place: str) -> int:
    """Rows that the statement's scans saw, those of all tables together."""
    ((after,),) = conn.execute(f"select ({place})::jsonb::text".encode()).fetchall()
    names = {**asked, "after": after, "limit": LIMIT}
    statement = b"explain (analyze, format json) " + sql(name)
    with psycopg.ClientCursor(conn) as cursor:
        cursor.execute(statement, names)
        ((plan,),) = cursor.fetchall()
    return sum(_rows(plan[0]["Plan"]))


def _rows(node: dict[str, Any]) -> Iterator[int]:
    if "Relation Name" in node and node["Node Type"].endswith("Scan"):
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        yield round((node["Actual Rows"] + dropped) * node["Actual Loops"])
    for child in node.get("Plans", []):
        yield from _rows(child)
