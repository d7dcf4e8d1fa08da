"""Whose role counts in a scope sees, counts and changes nothing beyond it: what is there answers as what is not (R-SE3)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp
import psycopg
import pytest
from psycopg.types.json import Jsonb

from evenflow.client.rest import RestClient
from evenflow.core.assets import Leaf
from evenflow.core.executors import KUBERNETES
from evenflow.core.model import AssetSpec, DagSpec, TaskSpec
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.core.pods.ends import WaitingPod
from evenflow.errors import ApiRefused
from evenflow.store.serving import assets, executors
from tests.api.people.test_roles import scoped_by
from tests.api.world import World
from tests.tokens import operator_token
from tests.world import at_once

SCOPE = PersonScope(tags=("etl",), pools=("mine",), queues=("mine",))


def spec(of: str, tag: str) -> DagSpec:
    asset = AssetSpec(name=f"{of}_asset", uri=f"s3://{of}")
    tasks = (TaskSpec(task_id=f"{of}_task", operator="python", pool=of, queue=of),)
    return DagSpec(dag_id=of, tasks=tasks, tags=(tag,), assets=(asset,))


@dataclass
class Two:
    """The DAGs ``mine`` and ``theirs``, each with a pool, a queue, an asset, a run and a try of its own."""

    world: World
    url: str
    http: aiohttp.ClientSession

    def add(self, of: str, tag: str, *, bundle: str = "main") -> None:
        world = self.world
        world.pool(of, 3)
        version = world.add_dag(spec(of, tag), file=f"{of}.py", files={f"{of}.py": b""})
        at_once(assets.register(world.awaited, spec(of, tag).assets, made=[f"{of}_asset"]))
        at_once(assets.set_consumer(world.awaited, of, [Leaf(f"{of}_asset", is_alias=False)]))
        world.conn.execute("update dag set bundle = %s where dag_id = %s", [bundle, of])
        run = world.run(version, f"{of}_run")
        world.dispatch(run, next(world.epochs), queue=of)
        world.run(version, f"{of}_next", state="queued")

    def shown(self, scope: PersonScope | None, role: Role = Role.OPERATOR) -> dict[str, str]:
        return {"Authorization": f"Bearer {operator_token(self.world.conn, name='eve', role=role, scope=scope)}"}

    async def ask(self, headers: dict[str, str], method: str, path: str, **given: Any) -> tuple[int, str]:
        async with self.http.request(method, f"{self.url}{path}", headers=headers, **given) as answer:
            if answer.content_type == "text/event-stream":
                return answer.status, ""
            return answer.status, await answer.text()


@pytest.fixture
async def two(api_url: str, world: World) -> AsyncIterator[Two]:
    async with aiohttp.ClientSession() as http:
        two = Two(world, api_url, http)
        two.add("mine", "etl")
        two.add("theirs", "hr", bundle="hr")
        async with RestClient(api_url, operator_token(world.conn)) as admin:
            for of in ("mine", "theirs"):
                await admin.set_note("mine" if of == "mine" else "theirs", f"{of}_run", note="x")
                await admin.emit_asset_event(asset=f"{of}_asset", extra={})
                await admin.set_service_state("dag", of, state="draining")
        yield two


NAMES = {"run_id": "{of}_run", "task_id": "{of}_task", "dag_id": "{of}", "name": "{of}", "queue": "{of}", "kind": "dag"}


def path_of(route: str, of: str) -> str:
    return re.sub(r"{(\w+)}", lambda found: NAMES.get(found[1], "-1").format(of=of), route)


@pytest.mark.system  # it walks all routes
async def test_nothing_of_what_is_beyond_the_scope_is_in_any_answer(two: Two) -> None:
    """R-SE3: every route that somebody may read who has a scope; to others it tells of both."""
    scoped, free = two.shown(SCOPE), two.shown(None)
    told = []
    for route, how in scoped_by().items():
        method, path = route.split()
        if method != "GET" or how is None or path.endswith(("/live", "/{path}")):
            continue
        query = {"asset": "mine_asset"} if path.endswith("/partitions") else {}
        status, text = await two.ask(scoped, method, path_of(path, "mine"), params=query)
        assert status != 403, (route, text)
        if "theirs" in text:
            told.append(f"{route}: {text[:300]}")
        if "{" not in path and "mine" not in text and "theirs" in (await two.ask(free, method, path, params=query))[1]:
            told.append(f"{route} tells nothing of its own: {text[:300]}")
    assert told == []


@pytest.mark.system  # it walks all routes
def told(problem: str) -> dict[str, Any]:
    """All but the number of the request."""
    return {key: value for key, value in json.loads(problem).items() if key != "request_id"}


@pytest.mark.system
async def test_what_is_beyond_the_scope_answers_as_what_is_not_there(two: Two) -> None:
    """R-SE3: in the same words."""
    scoped = two.shown(SCOPE)
    wrong = []
    for route, how in scoped_by().items():
        method, path = route.split()
        if how not in ("dag", "pool", "queue"):
            continue
        (status, text), (other, words) = [await two.ask(scoped, method, path_of(path, of)) for of in ("theirs", "nobody")]
        if (status, other) != (404, 404) or told(text.replace("theirs", "nobody")) != told(words):
            wrong.append(f"{route}: {status} {text}, {other} {words}")
    assert wrong == []


async def test_lists_are_counted_within_the_scope(two: Two) -> None:
    """R-SE3: a page of one is full of one's own, and the status counts no others."""
    async with RestClient(two.url, two.shown(SCOPE)["Authorization"].split()[1]) as eve:
        page = await eve.list_runs(limit=2)
        assert ([run.run_id for run in page.items], page.more) == (["mine_next", "mine_run"], False)
        status = await eve.get_status()
        assert (status.runs_queued, [queue.queue for queue in status.queues]) == (1, ["mine"])
        assert [pool.name for pool in (await eve.list_pools()).items] == ["mine"]
        assert {change.object for change in (await eve.list_changes()).items} == {"mine", "mine/mine_run"}
        with pytest.raises(ApiRefused, match=r"no asset 'theirs_asset'"):
            await eve.emit_asset_event(asset="theirs_asset", extra={})
        with pytest.raises(ApiRefused, match=r"There is no pool 'theirs'\. To see all"):
            await eve.set_pool("theirs", slots=9)
        assert (await eve.set_pool("mine", slots=9)).slots == 9
        with pytest.raises(ApiRefused, match=r"There is no dag 'theirs'\."):
            await eve.set_service_state("dag", "theirs", state="active")
        with pytest.raises(ApiRefused, match=r"A system is everybody's"):
            await eve.set_service_state("system", "all", state="frozen")


async def test_an_asset_is_changed_by_who_has_a_dag_that_makes_it(two: Two) -> None:
    """R-SE3: who only waits for it would begin runs of others, and say that their work is done. What no DAG makes is changed by
    whom alone it begins runs of.
    """
    world, theirs = two.world, "theirs_asset"

    def waits(dag_id: str, *names: str) -> None:
        at_once(assets.set_consumer(world.awaited, dag_id, [Leaf(name, is_alias=False) for name in names]))

    def makes(dag_id: str, *names: str) -> None:
        at_once(assets.set_producer(world.awaited, dag_id, names))

    async with RestClient(two.url, two.shown(SCOPE)["Authorization"].split()[1]) as eve:
        waits("mine", theirs)
        makes("theirs", theirs)
        with pytest.raises(ApiRefused, match=r"No DAG in your scope makes 'theirs_asset'") as refused:
            await eve.emit_asset_event(asset=theirs)
        assert refused.value.status == 403
        assert next(found.producers for found in (await eve.list_assets()).items if found.name == theirs) == []
        makes("theirs")
        with pytest.raises(ApiRefused, match=r"No DAG in your scope makes 'theirs_asset'"):
            await eve.emit_asset_event(asset=theirs)  # it would begin a run of theirs
        waits("theirs")
        assert (await eve.emit_asset_event(asset=theirs)).dag_ids == ["mine"]
        waits("theirs", theirs)
        makes("mine", theirs)
        assert (await eve.emit_asset_event(asset=theirs)).dag_ids == ["mine"], "whose else it is is not told"
        assert next(found.producers for found in (await eve.list_assets()).items if found.name == theirs) == ["mine"]


async def test_what_is_set_aside_is_told_of_ones_own_dags(two: Two) -> None:
    """R-HA13, R-SE3: schedules, assets and backfills have no run that would say whose they are."""
    world = two.world
    for of in ("mine", "theirs"):
        fill = world.one(
            "insert into backfill (dag_id, is_reversed, reprocess, max_active_runs, params, priority, created_by)"
            f" values ('{of}', false, 'none', 1, '{{}}', 0, 'ada') returning backfill_id"
        )
        world.conn.execute(
            "insert into quarantine (kind, object, reason) values ('schedule', %(of)s, %(of)s), ('assets', %(of)s, %(of)s),"
            " ('backfill', %(fill)s, %(of)s)",
            {"of": of, "fill": str(fill)},
        )
        world.conn.execute(
            "insert into quarantine (kind, object, run_key, reason)"
            " select 'run', dag_id || '/' || run_id, run_key, dag_id from dag_run where run_id = %s",
            [f"{of}_run"],
        )
    kinds = ["assets", "backfill", "run", "schedule"]
    async with RestClient(two.url, two.shown(SCOPE)["Authorization"].split()[1]) as eve:
        found = (await eve.list_quarantine()).items
        assert sorted((each.kind, each.reason) for each in found) == [(kind, "mine") for kind in kinds]
        assert (await eve.get_status()).quarantined == dict.fromkeys(kinds, 1)


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (PersonScope(tags=("hr",)), ["theirs"]),
        (PersonScope(bundles=("hr",)), ["theirs"]),
        (PersonScope(tags=("etl",), bundles=("hr",)), ["mine", "theirs"]),
        (PersonScope(tags=("none",)), []),
        (PersonScope(pools=("mine",)), ["mine", "theirs"]),
        (None, ["mine", "theirs"]),
    ],
)
async def test_dags_are_those_of_a_tag_or_of_a_bundle(two: Two, scope: PersonScope | None, seen: list[str]) -> None:
    async with RestClient(two.url, two.shown(scope)["Authorization"].split()[1]) as eve:
        assert [dag.dag_id for dag in (await eve.list_dags()).items] == seen
        assert [dag.dag_id for dag in (await eve.list_dags(search="theirs")).items] == [one for one in seen if one == "theirs"]


async def test_a_tag_that_is_taken_off_takes_the_dag_out_of_the_scope(two: Two) -> None:
    """The newest version says it."""
    two.world.add_dag(spec("mine", "other"), file="mine.py", files={"mine.py": b""})
    assert (await two.ask(two.shown(SCOPE), "GET", "/api/v1/dags/mine"))[0] == 404


@pytest.mark.parametrize(
    "scope", [SCOPE, PersonScope(tags=("etl", "Übung"), bundles=("elsewhere",), pools=("mine",))], ids=["plain", "other"]
)
async def test_a_stream_tells_nothing_of_what_is_beyond_the_scope(
    two: Two, db: psycopg.Connection[Any], scope: PersonScope
) -> None:
    """R-SE3: both runs move, in this order. However PostgreSQL would write the scope, what is within it is told."""
    async with two.http.get(f"{two.url}/api/v1/live", headers=two.shown(scope)) as stream:
        assert stream.status == 200
        await stream.content.readuntil(b"\n\n")
        async with RestClient(two.url, operator_token(two.world.conn)) as admin:
            heard = b""
            async with asyncio.timeout(60):
                while b"mine_run" not in heard:
                    for of in ("theirs", "mine"):
                        db.execute(
                            "insert into run_event (run_key, event, state, actor)"
                            " select run_key, 'cancel', state, 'a test' from dag_run where run_id = %s",
                            [f"{of}_run"],
                        )
                    heard += await stream.content.readuntil(b"\n\n")
            assert (await admin.list_runs()).items != []
    assert b"theirs" not in heard


@pytest.mark.parametrize("path", ["/metrics", "/metrics/targets", "/health"])
async def test_metrics_and_health_are_for_those_whose_role_counts_everywhere(two: Two, path: str) -> None:
    """R-SE3: they tell of all pools, executors and services. Who is on this host needs no token, so this comes from another one."""
    afar = {"X-Forwarded-For": "192.0.2.1"}
    status, text = await two.ask({**two.shown(SCOPE), **afar}, "GET", path)
    assert (status, "theirs" in text) == (403, False)
    assert (await two.ask({**two.shown(None), **afar}, "GET", path))[0] != 403


async def test_pods_of_what_is_beyond_the_scope_are_not_told(api_url: str, world: World) -> None:
    """R-SE3: an executor is shared, and a pod that does not begin its try has the names of its DAG and task, and what its node says
    of its image.
    """
    told: dict[str, Any] = {"kind": KUBERNETES, "queues": ["pods"], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, name="k8s", **told))
    waiting = {}
    for of, tag in (("mine", "etl"), ("theirs", "hr"), ("others", "hr")):
        run = world.run(world.add_dag(spec(of, tag), file=f"{of}.py", files={f"{of}.py": b""}))
        epoch = world.dispatch(run, queue="pods")
        pod = WaitingPod(f"evenflow-{of}-1", f"Image '{of}' cannot be pulled.", f"kubectl describe pod evenflow-{of}-1", lasts=True)
        waiting[f"{epoch}"] = asdict(pod)
    detail = {"executors": ["k8s"], "refused": {}, "waiting": {"k8s": waiting}}
    launcher = world.service("launcher")
    world.conn.execute("update service set detail = %s where service_id = %s", [Jsonb(detail), launcher])
    seen = []
    for scope in (None, PersonScope(tags=("etl",)), PersonScope(tags=("sales",))):
        async with RestClient(api_url, operator_token(world.conn, role=Role.VIEWER, scope=scope)) as rest:
            trouble = (await rest.get_executor("k8s")).trouble
            seen.append(trouble)
            assert (await rest.get_status()).executors[0].trouble == trouble
    everything, own, nothing = seen
    assert everything is not None
    assert everything.startswith("3 pods of k8s")
    assert own is not None
    assert ("1 pod of k8s" in own, "evenflow-mine-1" in own, "theirs" in own) == (True, True, False)
    assert nothing is None
