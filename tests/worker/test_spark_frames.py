"""DataFrames that pass from task to task by files, in real processes: what a killed try leaves nobody sees, and it goes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evenflow.api.garbage import delete_some
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.store.db.connect import open_pool
from evenflow.wire.objects import ObjectStorage
from tests.waiting import until
from tests.worker.world import World, number_in

MINUTES = 280.0  # a JVM on a busy machine

pytestmark = [pytest.mark.usefixtures("worker"), pytest.mark.spark]

SOURCE = """
import os, pathlib
from evenflow import DAG, SparkFrame, task
pid = pathlib.Path({pid!r})
with DAG("d"):
    @task.spark
    def make(*, spark, ti=None):
        frame = spark.range(0, 2, 1, 2)
        if not pid.exists():  # the first try: one file is written, the next never
            pid.write_text(f"{{os.getpid()}}.")
            return frame.selectExpr("id", "case when id > 0 then java_method('java.lang.Thread', 'sleep', 3600000L) end as x")
        return frame.selectExpr("id", "id * 2 as x")
    @task.spark
    def use(made, *, spark):
        return [made.agg({{"x": "sum"}}).first()[0], made.columns]
    @task
    def tell(made):
        return [made.rows, made.columns, isinstance(made, SparkFrame)]
    use(made := make())
    tell(made)
"""
SPEC = DagSpec(
    dag_id="d",
    tasks=(
        TaskSpec(task_id="make", operator="spark"),
        TaskSpec(task_id="use", operator="spark", upstream=(0,)),
        TaskSpec(task_id="tell", operator="python", upstream=(0,)),
    ),
)


async def ending(world: World, epoch: int) -> str:
    outcome: str = (await until(lambda: world.exits(epoch), f"exit of {epoch}", within_s=MINUTES))[0]["outcome"]
    return outcome


async def test_a_try_that_is_killed_while_it_writes_leaves_nothing_that_a_reader_sees(
    world: World, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP6, R-HA20: and what it has left goes, while the files of the try after it stay as long as their run."""
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", "spark-local://?cores=1")
    results, pid = tmp_path / "xcom", tmp_path / "pid"
    run = world.run(world.add_dag(SPEC, {"dag.py": SOURCE.format(pid=str(pid)).encode()}))
    killed = world.dispatch(run)
    await until(lambda: [*results.glob("*/_temporary/**/part-*.parquet")], within_s=MINUTES)
    os.kill(number_in(pid), signal.SIGKILL)
    assert await ending(world, killed) == "failed"
    assert world.one("select count(*) from xcom") == 0
    world.end(killed)

    made = world.dispatch(run, tries=2)
    assert await ending(world, made) == "success"
    world.end(made)
    told = world.dispatch(run, task=2)
    await world.exit_of(told)
    assert world.xcom(told) == [2, {"id": "long", "x": "long"}, True]
    used = world.dispatch(run, task=1)
    assert await ending(world, used) == "success"
    assert world.xcom(used) == [2, ["id", "x"]]

    storage = ObjectStorage(str(results))
    assert len(storage.list_all()) == 2
    pool = await open_pool(database_url, name="test", min_size=1, max_size=1)
    world.conn.execute("update xcom_garbage set at = now()")
    await delete_some(pool, storage)
    assert storage.list_all() == [world.one("select folder from xcom where folder is not null")]
    world.conn.execute("delete from xcom")
    await delete_some(pool, storage)
    await pool.close()
    assert storage.list_all() == []
