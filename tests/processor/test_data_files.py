"""Templates and data beside a DAG file: they travel with its code to workers on other hosts, and a change makes a version."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg

from evenflow.api.service import ApiService
from evenflow.core import limits
from evenflow.core.limits import MAX_INLINE_XCOM
from evenflow.membership.service import Member
from evenflow.wire.code import read_archive
from evenflow.wire.large_values import LargeValues
from evenflow.wire.objects import ObjectStorage
from evenflow.worker.service import WorkerService
from tests.processor.bundle import Bundle
from tests.processor.conftest import StartProcessor
from tests.tokens import fleet_token
from tests.waiting import until
from tests.worker.world import World

DAG = """
from pathlib import Path
from evenflow import DAG, BaseOperator, task

class Query(BaseOperator):
    template_fields = ("sql",)
    template_ext = (".sql",)
    def __init__(self, *, sql, **options):
        super().__init__(**options)
        self.sql = sql
    def execute(self, context):
        return self.sql

with DAG("d", template_searchpath="sql", data_files=["tables.csv", "more"]):
    Query(task_id="one", sql="count.sql")
    Query.partial(task_id="many").expand(sql=["a.sql", "b.sql", "{{ ds }}.sql"])
    @task
    def read():
        return (Path(__file__).parent / "tables.csv").read_text() + (Path(__file__).parent / "more/deep/x.txt").read_text()
    read()
"""


def write_all(bundle: Bundle) -> None:
    bundle.write("team/sql/count.sql", "select 1 {% include 'shared/where.j2' %}")
    bundle.write("team/sql/shared/where.j2", "where day = '{{ ds }}'")
    bundle.write("team/sql/unused.sql", "")
    for name in ("a.sql", "b.sql", "tables.csv", "more/deep/x.txt", "more/.hidden", "more/script.py"):
        bundle.write(f"team/{name}", f"{name};")
    bundle.write("team/dag.py", DAG)


def archive(bundle: Bundle) -> dict[str, bytes]:
    """Of the newest version."""
    found = bundle.one(
        "select c.archive from dag join dag_version using (version_key) join code c using (code_hash) where dag.dag_id = 'd'"
    )
    return read_archive(bytes(found))


async def test_what_travels_and_what_makes_a_version(bundle: Bundle, start_processor: StartProcessor) -> None:
    write_all(bundle)
    await start_processor()
    assert (await bundle.parsed("team/dag.py")).error is None
    assert sorted(archive(bundle)) == [
        "team/a.sql",
        "team/b.sql",
        "team/dag.py",
        "team/more/deep/x.txt",
        "team/sql/count.sql",
        "team/sql/shared/where.j2",
        "team/tables.csv",
    ]
    bundle.write("team/sql/shared/where.j2", "where true")
    await until(lambda: bundle.versions("d") == 2, "a version with the changed include")
    bundle.write("team/more/new.txt", "new")
    await until(lambda: "team/more/new.txt" in archive(bundle), "a version with a new file of the folder")
    bundle.write("team/sql/unused.sql", "select 2")
    bundle.write("team/sql/a.sql", "found first")
    await until(lambda: "team/sql/a.sql" in archive(bundle), "a version with the template that hides another")
    assert "team/a.sql" not in archive(bundle)
    assert bundle.versions("d") == 4


async def test_a_worker_on_another_host_finds_them(
    bundle: Bundle, start_processor: StartProcessor, api: ApiService, db: psycopg.Connection[Any], tmp_path: Path
) -> None:
    write_all(bundle)
    await start_processor()
    assert (await bundle.parsed("team/dag.py")).error is None
    shutil.rmtree(bundle.folder)
    world = World(db, tmp_path / "logs")
    token = fleet_token(db, "worker")
    values = LargeValues(ObjectStorage(str(tmp_path / "xcom")), MAX_INLINE_XCOM)
    url = f"http://127.0.0.1:{api.port}"
    member = Member(name="w", api_url=url, token=token, home=tmp_path / "elsewhere")
    worker = WorkerService(member, slots=2, resume_slots=1, queues=["default"], values=values)
    await worker.start()
    try:
        run = world.run(world.one("select version_key from dag_version where dag_id = 'd'"))
        tasks = dict(
            db.execute("select task_id, task_index from task where version_key = (select version_key from dag_run)").fetchall()
        )
        epochs = {name: world.dispatch(run, task=tasks[name]) for name in ("one", "read")}
        for name, epoch in epochs.items():
            assert (await world.exit_of(epoch))["outcome"] == "success", (name, world.log(epoch))
        assert world.xcom(epochs["one"]) == "select 1 where day = '2026-03-01'"
        assert world.xcom(epochs["read"]) == "tables.csv;more/deep/x.txt;"
    finally:
        await worker.stop()


async def test_data_that_is_missing_or_elsewhere(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", "from evenflow import DAG\nDAG('a', data_files=['later.csv'])\n")
    bundle.write("b.py", "from evenflow import DAG\nDAG('b', data_files=['../secrets.key'])\n")
    await start_processor()
    error = (await bundle.parsed("a.py")).error or ""
    assert "DAG 'a': 'later.csv' of data_files is not there. It is looked for as later.csv." in error
    assert f"'../secrets.key' of data_files is not below {bundle.folder}" in ((await bundle.parsed("b.py")).error or "")
    bundle.write("later.csv", "1,2")
    await until(lambda: bundle.versions("a") == 1, "the DAG, once its data is there")


async def test_limits_of_data(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("a.py", "from evenflow import DAG\nDAG('a', data_files=['.'])\n")
    bundle.write("large.bin", "x" * (limits.MAX_DATA_BYTES + 1))
    await start_processor()
    error = (await bundle.parsed("a.py")).error or ""
    assert "16,777,217 bytes (limit 16,777,216), large.bin alone 16,777,217. Put large data where tasks can fetch it." in error
    (bundle.folder / "large.bin").unlink()
    await until(lambda: bundle.versions("a") == 1, "the DAG, once its data is small")


async def test_a_link_out_of_the_bundle_takes_nothing_along(bundle: Bundle, start_processor: StartProcessor) -> None:
    """A bundle from git may hold links; the processor, which reads for the archive, can read more than a DAG file's process."""
    (bundle.folder / "key.csv").symlink_to("/proc/self/environ")
    bundle.write("a.py", "from evenflow import DAG\nDAG('a', data_files=['key.csv'])\n")
    await start_processor()
    error = (await bundle.parsed("a.py")).error or ""
    assert "'key.csv' is a link to what is not below" in error
    assert bundle.versions("a") == 0
