"""Values that are too large for the database: in object storage, by a name in the row, and gone when the row is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.garbage import delete_some
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.sdk.xcomarg import RETURN_VALUE
from evenflow.store.db.connect import open_pool
from evenflow.wire import large_values
from evenflow.wire.messages import XComPush
from evenflow.wire.objects import ObjectStorage
from evenflow.worker.service import WorkerService
from evenflow.worker.values import TryValues
from tests.waiting import until
from tests.worker.world import World

pytestmark = pytest.mark.usefixtures("worker")

SOURCE = b"""
from evenflow import DAG, task
with DAG("d"):
    @task
    def make(ti=None):
        ti.xcom_push("rows", ["y" * 100_000] * 4)
        return ["x" * 100_000] * 3
    @task
    def use(made, ti=None):
        rows = ti.xcom_pull("make", key="rows")
        return [len(made), len(made[2]), made[0][:3], len(rows), rows[3][:2]]
    use(make())
"""
SPEC = DagSpec(
    dag_id="d", tasks=(TaskSpec(task_id="make", operator="python"), TaskSpec(task_id="use", operator="python", upstream=(0,)))
)


async def test_a_large_value_goes_and_comes_by_object_storage(world: World, tmp_path: Path, database_url: str) -> None:
    """R-XC: the row has the name and the length, which is all that the scheduler needs."""
    run = world.run(world.add_dag(SPEC, {"dag.py": SOURCE}))
    made = world.dispatch(run)
    assert (await world.exit_of(made))["outcome"] == "success"
    rows = world.conn.execute("select key, value, length, object, size, secret from xcom order by key").fetchall()
    assert [(key, value, length, secret) for key, value, length, _, _, secret in rows] == [
        ("return_value", None, 3, False),
        ("rows", None, 4, False),
    ]
    assert all(name.startswith(f"{made}-") and (tmp_path / "xcom" / name).stat().st_size == size for _, _, _, name, size, _ in rows)
    used = world.dispatch(run, task=1)
    assert (await world.exit_of(used))["outcome"] == "success"
    assert world.xcom(used) == [3, 100_000, "xxx", 4, "yy"]

    world.end(made)
    again = world.dispatch(run, tries=2)
    await world.exit_of(again)
    world.conn.execute("delete from xcom where run_key = %s and key = 'rows'", [run])
    pool = await open_pool(database_url, name="test", min_size=1, max_size=1)
    await delete_some(pool, ObjectStorage(str(tmp_path / "xcom")))
    await pool.close()
    left = [file.name for file in (tmp_path / "xcom").iterdir()]
    assert left == [world.one("select object from xcom where task_index = 0 and key = 'return_value'")]
    assert world.one("select count(*) from xcom_garbage") == 0


async def test_a_defect_on_the_way_to_its_end_ends_a_try(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run for ever: its process has ended, and nobody hears of it."""

    prepared = TryValues.prepared

    async def break_down(values: TryValues, key: str, *value: Any) -> XComPush:
        if key == RETURN_VALUE:
            raise ZeroDivisionError("no such day")
        return await prepared(values, key, *value)

    monkeypatch.setattr(TryValues, "prepared", break_down)
    end = await world.exit_of(world.dispatch(world.run(world.add_dag(SPEC, {"dag.py": SOURCE}))))
    assert (end["outcome"], end["reason"]) == (
        "failed",
        "its end could not be told, by a defect of Evenflow: ZeroDivisionError('no such day')",
    )


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Object storage stands still until it is set, or the test is over."""
    moves, write = threading.Event(), ObjectStorage.write

    def wait(storage: ObjectStorage, name: str, data: bytes) -> None:
        moves.wait()
        write(storage, name, data)

    monkeypatch.setattr(ObjectStorage, "write", wait)
    yield moves
    moves.set()


BIG = "return 'x' * 300_000"


async def test_a_timeout_counts_while_object_storage_stands_still(world: World, still: threading.Event, tmp_path: Path) -> None:
    """R-CS6: the slot is free again, and what is stored in the end is deleted: nothing refers to it."""
    epoch = world.task(BIG, execution_timeout=0.5)
    ended = await world.exit_of(epoch)
    assert (ended["outcome"], ended["reason"]) == ("failed", "execution_timeout of 0.5 s exceeded")
    folder = tmp_path / "xcom"
    still.set()
    await until(lambda: folder.is_dir() and not any(folder.iterdir()), "the object is gone")


async def test_object_storage_that_does_not_answer_fails_the_try(
    world: World, still: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_values, "STORAGE_S", 0.2)
    ended = await world.exit_of(world.task(BIG))
    assert ended["outcome"] == "failed"
    assert "could not be stored in" in ended["reason"]
    assert "did not answer within" in ended["reason"]


async def test_a_service_ends_while_object_storage_stands_still(
    world: World, worker: WorkerService, still: threading.Event
) -> None:
    world.task(BIG)
    await until(lambda: any(thread.name == "object storage" for thread in threading.enumerate()), "it is being stored")
    await asyncio.wait_for(worker.stop(), 20)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "object storage")


async def test_what_is_larger_than_anything_may_be_is_refused(world: World) -> None:
    epoch = world.task("return 'x' * 40_000_000")
    assert "above the limit of 33,554,432" in (await world.exit_of(epoch))["reason"]


async def test_a_value_with_a_secret_is_marked(world: World) -> None:
    epoch = world.task(
        "mask_secret('hush-hush')\nti.xcom_push('open', 'fine')\nreturn {'a': ['hush-hush']}",
        head="from evenflow import mask_secret\n",
    )
    await world.exit_of(epoch)
    assert world.conn.execute("select key, secret from xcom where epoch = %s order by key", [epoch]).fetchall() == [
        ("open", False),
        ("return_value", True),
    ]
    assert world.xcom(epoch) == {"a": ["hush-hush"]}
