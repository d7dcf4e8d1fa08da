"""Versions of DAGs, what differs between them, and where files come from, over HTTP and with a real database."""

from __future__ import annotations

import dataclasses

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from evenflow.wire.code import archive_hash, pack
from tests.api.world import World

FIRST = DagSpec(
    dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,)))
)
SECOND = dataclasses.replace(
    FIRST,
    description="new",
    tasks=(
        TaskSpec(task_id="front", operator="python"),
        TaskSpec(task_id="a", operator="python", retries=2),
        TaskSpec(task_id="c", operator="bash", upstream=(1,)),
    ),
)


async def deliver(processor: ExecutionClient, fingerprint: str, spec: DagSpec, code: str, **other: str) -> None:
    files = {"d.py": code.encode()}
    await processor.files_seen(m.FilesSeen(bundle="main", files=[m.FileSeen(file="d.py", fingerprint=fingerprint)]))
    message = m.ParsedFile(
        bundle="main",
        file="d.py",
        fingerprint=fingerprint,
        seconds=0.1,
        specs=[spec.to_json()],
        code_hash=archive_hash(files),
        **other,
    )
    message.code = pack(files)
    assert await processor.file_parsed(message) == m.ParsedAnswer()


async def test_versions_and_their_difference(processor: ExecutionClient, rest: RestClient, world: World) -> None:
    await deliver(processor, "1", FIRST, "x = 1\n", revision="a" * 40)
    await deliver(processor, "2", SECOND, "x = 2\n", revision="b" * 40)
    versions = (await rest.list_versions("d")).items
    assert [(v.version_number, v.tasks, v.is_newest, v.bundle, v.revision) for v in versions] == [
        (2, 3, True, "main", "b" * 40),
        (1, 2, False, "main", "a" * 40),
    ]
    diff = await rest.diff_versions("d")
    assert (diff.before, diff.after, diff.added, diff.removed) == (1, 2, ["front", "c"], ["b"])
    changes = [(change.task_id, change.setting, change.before, change.after) for change in diff.changes]
    assert changes == [(None, "description", None, "new"), ("a", "retries", None, 2)], (
        "a task in front of others changes none of them"
    )
    (file,) = diff.files
    assert (file.file, file.kind) == ("d.py", "changed")
    assert file.text == "--- a/d.py\n+++ b/d.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"
    same = await rest.diff_versions("d", before=2, after=2)
    assert (same.added, same.removed, same.changes, same.files) == ([], [], [], [])


async def test_versions_that_are_not_there(processor: ExecutionClient, rest: RestClient) -> None:
    with pytest.raises(ApiRefused, match="There is no DAG 'd'"):
        await rest.list_versions("d")
    await deliver(processor, "1", FIRST, "x = 1\n")
    with pytest.raises(ApiRefused, match=r"has no version before the newest by 1\. To see all, type: evenflow dags versions d"):
        await rest.diff_versions("d")
    with pytest.raises(ApiRefused, match="has no version 7"):
        await rest.diff_versions("d", before=7)


async def test_code_that_is_not_what_its_name_says(processor: ExecutionClient, world: World) -> None:
    await processor.files_seen(m.FilesSeen(bundle="main", files=[m.FileSeen(file="d.py", fingerprint="1")]))
    message = m.ParsedFile(
        bundle="main",
        file="d.py",
        fingerprint="1",
        seconds=0.1,
        specs=[FIRST.to_json()],
        code_hash="0" * 64,
        code=pack({"d.py": b""}),
    )
    with pytest.raises(ApiRefused, match="was damaged or changed"):
        await processor.file_parsed(message)
    assert world.one("select count(*) from code where code_hash = %s", "0" * 64) == 0


async def test_bundles_and_warnings(processor: ExecutionClient, rest: RestClient) -> None:
    await deliver(processor, "1", FIRST, "x = 1\n", warnings=["d.py:3: DeprecationWarning: old"])
    (alone,) = (await rest.list_bundles()).items
    assert (alone.name, alone.processor, alone.files, alone.warned) == ("main", None, 1, 1)
    state = {
        "name": "main",
        "kind": "git",
        "location": "/r",
        "ref": "main",
        "revision": "c" * 40,
        "refreshed_at": None,
        "error": "away",
        "warnings": ["The plugin 'shop' has pages."],
    }
    await processor.register(m.Register(kind="processor", name="p", host="h", pid=1, version="0", detail={"bundles": [state]}))
    (read,) = (await rest.list_bundles()).items
    assert (read.processor, read.host, read.revision, read.error, read.files) == ("p", "h", "c" * 40, "away", 1)
    assert (alone.warnings, read.warnings) == ([], ["The plugin 'shop' has pages."])
    (warned,) = (await rest.list_parse_warnings()).items
    assert (warned.file, warned.warnings) == ("d.py", "d.py:3: DeprecationWarning: old")


async def test_files_of_a_processor_that_died_are_free(processor: ExecutionClient, world: World) -> None:
    """R-HA8: as soon as its own lease is over, and not that of the file."""

    async def lease() -> tuple[int, list[str]]:
        service_id = (await processor.register(m.Register(kind="processor", name="p", host="h", pid=1, version="0"))).service_id
        answer = await processor.lease_files(m.FilesLease(service_id=service_id, bundles=["main"], limit=9, lease_s=600))
        return service_id, [leased.file for leased in answer.files]

    await processor.files_seen(m.FilesSeen(bundle="main", files=[m.FileSeen(file="d.py", fingerprint="1")]))
    first, files = await lease()
    assert files == ["d.py"]
    assert (await lease())[1] == []
    world.conn.execute("update service set beat_at = now() - interval '1 hour' where service_id = %s", [first])
    second, files = await lease()
    assert files == ["d.py"]
    lacking = [m.LeasedFile(bundle="main", file="d.py", fingerprint="1")]
    again = m.FilesLease(service_id=second, bundles=["main"], limit=9, lease_s=600, lacking=lacking)
    assert (await processor.lease_files(again)).files == [], "not to who gave it back"
    assert (await lease())[1] == ["d.py"], "but to others"
