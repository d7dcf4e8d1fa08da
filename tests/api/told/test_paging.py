"""Lists by pages: every list goes on where its page ended, and a cursor is good for the list that it is of."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest

from evenflow.client.rest import RestClient, Route, every
from evenflow.contracts.rest.queries import PageQuery
from evenflow.errors import ApiRefused
from tests.api.world import SPEC, World

N = 5
INSTANCE = ("sales", "r4", "clean")
FILL = (
    "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
    " select dag_id, n, spec, n::text, code_hash, file from dag_version, generate_series(2, 5) n where dag_id = 'sales'",
    "insert into dag (dag_id, version_key, bundle, file)"
    " select 'd' || n, version_key, 'main', 'f.py' from dag, generate_series(1, 4) n where dag_id = 'sales'",
    "insert into task_event (run_key, task_index, map_index, at, epoch, try_number, event, state)"
    " select run_key, 1, n, timestamptz '2026-01-01 UTC' + n / 2 * interval '1 us', 1, 1, 'queue', 'queued'"
    " from dag_run, generate_series(0, 4) n where run_id = 'r4'",
    "insert into run_event (run_key, at, event, state, actor)"
    " select run_key, timestamptz '2026-01-01 UTC' + n / 2 * interval '1 us', 'event' || n, 'running', 'ada'"
    " from dag_run, generate_series(0, 4) n where run_id = 'r4'",
    "insert into xcom (run_key, task_index, map_index, key, value, epoch)"
    " select run_key, 1, (array[0, 0, 3, 3, 4])[n + 1], 'k' || n, '1', 0 from dag_run, generate_series(0, 4) n where run_id = 'r4'",
    "insert into dag_file (bundle, file, fingerprint, error, warnings)"
    " select 'b' || n / 2, 'f' || n, 'x', 'wrong', 'odd' from generate_series(0, 9) n",
    "insert into backfill (dag_id, is_reversed, reprocess, max_active_runs, params, priority, created_by)"
    " select 'sales', false, 'none', 1, '{}', 0, 'ada' from generate_series(1, 5)",
    "insert into backfill_run (backfill_id, position, partition)"
    " select min(backfill_id), n, 'p' || n from backfill, generate_series(1, 5) n group by n",
    "insert into asset (name, uri, partitions) select 'a' || n, 'x://' || n,"
    """ '{"param": "country", "keys": ["de", "at", "ch", "fr", "it"]}' from generate_series(1, 5) n""",
    "insert into asset_event (asset, actor) select 'a1', 'ada' from generate_series(1, 5)",
    "insert into audit_event (actor, action, object) select 'ada', 'pool.set', 'p' from generate_series(1, 5)",
    "insert into quarantine (kind, object, since, reason)"
    " select 'schedule', 'd' || n, timestamptz '2026-01-01 UTC' + n / 2 * interval '1 us', 'r' from generate_series(1, 5) n",
    "insert into user_account (name, role, password, created_by) select 'u' || n, 'viewer', '', 'ada' from generate_series(1, 5) n",
    "insert into token (kind, name, user_name, created_by, expires_at, digest, key_id)"
    " select 'session', 'u' || n, 'u' || n, 'ada', now() + interval '1 day', n::text::bytea, (select max(key_id) from token_key)"
    " from generate_series(1, 5) n",
    "insert into setting_change (name, value, changed_by) select 'retention_days', to_jsonb(n), 'ada' from generate_series(1, 5) n",
    "insert into fleet (name, target, queues, changed_by) values ('f', 'native', '{q}', 'ada')",
    "insert into scaling_look (fleet, at, running, aside, waiting, expected, oldest_wait, replicas, out_of_service, others, ready,"
    " asked, reason) select 'f', now() - n * interval '1 s', 0, 0, 0, 0, 0, 0, 0, 0, 0, n, '' from generate_series(1, 5) n",
    "insert into scaling_step (fleet, plan, step) select 'f', n / 2, 'drain' from generate_series(1, 5) n",
)
OF_ONE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {  # names and filters, of lists that need some
    "list_versions": (("sales",), {}),
    "list_run_events": (("sales", "r4"), {}),
    "list_tasks": (("sales", "r4"), {}),
    "list_task_events": (INSTANCE, {}),
    "list_xcoms": (("sales", "r4"), {}),
    "list_backfill_runs": ((1,), {}),
    "list_asset_partitions": ((), {"asset": "a1"}),
    "list_setting_history": (("retention_days",), {}),
    "list_fleet_looks": (("f",), {}),
    "list_fleet_steps": (("f",), {}),
}
PAGED = [
    name
    for name, route in vars(RestClient).items()
    if isinstance(route, Route) and isinstance(made := route.request(), type) and issubclass(made, PageQuery)
]


@pytest.fixture
async def full(world: World, rest: RestClient) -> World:
    """Five of everything that there is a list of, some of them at one moment."""
    version = world.add_dag()
    for number in range(N):
        run = world.run(version, f"r{number}", state="running")
    world.conn.execute(
        "insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 19, 'scheduled')", [run]
    )
    for index in (0, 3, 4):
        world.instance(run, 1, index, state="success")
    for index in range(9, 19):
        epoch = world.dispatch(run, None, 1, index)
        world.wait(run, epoch, 1, index)
        world.end(epoch)
    world.conn.execute("update deferral set due_at = 'infinity' where map_index % 2 = 0")
    for number in range(N):
        processor = world.service("processor", "p")
        world.conn.execute(
            """update service set detail = '{"bundles": [{"name": "b0"}]}', beat_at = 'infinity' where service_id = %s""",
            [processor],
        )  # and lives for as long as one looks
        await rest.set_variable(f"v{number}", value="1")
        await rest.set_connection(f"v{number}", uri="http://host")
    for statement in FILL:
        world.conn.execute(statement.encode())
    return world


@pytest.mark.system
async def test_each_list_goes_on_where_its_page_ended(rest: RestClient, full: World) -> None:
    """R-SE3: page by page it is what one page of all is, in that order, with nothing twice."""
    wrong = {}
    for name in PAGED:
        names, filters = OF_ONE.get(name, ((), {}))
        read = getattr(rest, name)
        whole = [shown(item) for item in (await read(*names, **filters, limit=200)).items]
        paged = [shown(item) async for item in every(read, *names, **filters, limit=3)]
        if len(whole) < N or paged != whole:
            wrong[name] = differences(whole, paged)
    assert wrong == {}
    assert len(PAGED) > 20


def differences(whole: list[dict[str, Any]], paged: list[dict[str, Any]]) -> list[str]:
    """How many each has; then which fields differ where, or which item has none beside it."""
    told = [f"{len(whole)} in all, {len(paged)} by pages"]
    for number, (one, other) in enumerate(zip_longest(whole, paged)):
        if one is None or other is None:
            told.append(f"{number}: {one} and {other}")
        else:
            told += [f"{number}.{name}: {one[name]} and {other[name]}" for name in one if one[name] != other[name]]
    return told


def shown(item: Any) -> dict[str, Any]:
    """Without what passes while one looks: an API server notes seconds later that a token is used."""
    return {name: value for name, value in item.model_dump().items() if name not in ("elapsed_s", "seen_at", "used_at")}


@pytest.mark.parametrize("state", ["scheduled", "success", "queued", "none"])
async def test_tasks_in_a_state_go_on_between_those_without_a_row(rest: RestClient, full: World, state: str) -> None:
    """R-SE3: untouched instances of a mapped task have no row, and pages of one begin anywhere among them."""
    whole = (await rest.list_tasks("sales", "r4", state=state)).items
    assert len(whole) == {"scheduled": 6, "success": 3, "queued": 10, "none": 2}[state]
    assert [item async for item in every(rest.list_tasks, "sales", "r4", state=state, limit=1)] == whole


async def test_runs_that_come_and_go_move_no_page(rest: RestClient, full: World) -> None:
    """R-SE3: neither a new run nor the end of the one that the page ended with hides or repeats another."""
    first = await rest.list_runs(dag_id="sales", limit=2)
    assert [run.run_id for run in first.items] == ["r4", "r3"]
    for change in (
        lambda: full.run(full.one("select min(version_key) from dag_version where dag_id = 'sales'"), "r5"),
        lambda: full.conn.execute("delete from dag_run where run_id = 'r3'"),
    ):
        change()
        second = await rest.list_runs(dag_id="sales", limit=2, cursor=first.next)
        assert [run.run_id for run in second.items] == ["r2", "r1"]


async def test_a_mapped_task_that_expands_moves_no_page(rest: RestClient, world: World) -> None:
    """R-SE3: the place is a task instance, wherever it stands by now."""
    run = world.run(world.add_dag(), "r", state="running")
    first = await rest.list_tasks("sales", "r", limit=1)
    world.conn.execute("insert into mapped_task (run_key, task_index, length, virtual_state) values (%s, 1, 2, 'scheduled')", [run])
    rest_of_it = await rest.list_tasks("sales", "r", cursor=first.next)
    assert [(t.task_id, t.map_index) for t in rest_of_it.items] == [("clean", 0), ("clean", 1), ("load", -1)]


async def test_a_cursor_is_of_its_list_and_filters(rest: RestClient, full: World) -> None:
    """R-SE3: elsewhere its place means nothing, so it is refused, with what to do."""
    cursor = (await rest.list_runs(dag_id="sales", limit=2)).next
    assert (await rest.list_runs(dag_id="sales", limit=3, cursor=cursor)).items, "another limit is no other list"
    for other in (rest.list_runs, partial(rest.list_runs, dag_id="sales", state="failed"), rest.list_changes):
        with pytest.raises(ApiRefused, match=r"of another list, or of this list with other filters\. Ask with") as refused:
            await other(cursor=cursor)
        assert (refused.value.status, refused.value.code) == (422, "bad_cursor")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (0, 2, "The cursor is of version 2, and this API reads version 1. Leave the cursor out"),
        (2, ["x"], "cannot be read"),
        (2, [2**63], "cannot be read"),
        (2, [1, 2], "cannot be read"),
        (2, [None], "cannot be read"),
        (2, 7, "cannot be read"),
    ],
)
async def test_a_cursor_that_was_changed_is_refused(rest: RestClient, full: World, field: int, value: object, words: str) -> None:
    """R-SE3: what the database could not compare never reaches it."""
    cursor = (await rest.list_runs(limit=2)).next
    assert cursor is not None
    said = json.loads(urlsafe_b64decode(cursor + "=="))
    said[field] = value
    with pytest.raises(ApiRefused, match=words):
        await rest.list_runs(cursor=urlsafe_b64encode(json.dumps(said).encode()).decode())
    for noise in ("x", "ä", "%%%", "bnVsbA"):
        with pytest.raises(ApiRefused, match=r"The cursor cannot be read\. Send the `next` of a page as it is\."):
            await rest.list_runs(cursor=noise)


async def test_a_time_or_a_text_of_a_cursor_is_one(rest: RestClient, full: World) -> None:
    """R-SE3: PostgreSQL knows no text with a zero byte, and no such day."""
    for read, places in ((rest.list_dags, ["\0", 1]), (rest.list_triggers, ["soon", "9999-99-99T00:00:00Z", "2026-01-01", 5])):
        cursor = (await read(limit=2)).next
        assert cursor is not None
        version, listed, place = json.loads(urlsafe_b64decode(cursor + "=="))
        for wrong in places:
            changed = json.dumps([version, listed, [wrong, *place[1:]]]).encode()
            with pytest.raises(ApiRefused, match="cannot be read"):
                await read(cursor=urlsafe_b64encode(changed).decode())


async def test_a_partition_that_has_gone_begins_no_page(rest: RestClient, full: World) -> None:
    cursor = (await rest.list_asset_partitions(asset="a1", limit=1)).next
    full.conn.execute("""update asset set partitions = '{"param": "country", "keys": ["at"]}' where name = 'a1'""")
    with pytest.raises(ApiRefused, match=r"'de', behind which the page begins, has gone\. Begin with"):
        await rest.list_asset_partitions(asset="a1", cursor=cursor)


assert SPEC.tasks[1].task_id == INSTANCE[2]
