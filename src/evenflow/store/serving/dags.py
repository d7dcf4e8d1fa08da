"""DAG files, versions and their code: what the processor delivers. For the API."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.rows import args_row, kwargs_row

from evenflow.core.forecast import Forecast
from evenflow.core.limits import FORECAST_AGAIN_S, FRUITLESS_LEASES, LEASE_S
from evenflow.core.model import TaskSpec
from evenflow.core.timetable import Past
from evenflow.store.db.columns import numbers
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.notify import DISPATCH, INBOX, RESUMES
from evenflow.store.db.sql import sql
from evenflow.wire.messages import AskedValue, FileSeen, LeasedFile


class VersionRow(NamedTuple):
    version_key: int
    version_number: int
    spec: str
    code_hash: str
    file: str
    bundle: str


class Owner(NamedTuple):
    dag_id: str
    bundle: str
    file: str


class NextRun(NamedTuple):
    """When the next scheduled run is created, and its logical date; both null without one. ``wants_forecast``: a processor has to
    compute more.
    """

    run_at: datetime | None = None
    logical: datetime | None = None
    wants_forecast: bool = False


async def read_versions(conn: AsyncConn, keys: Iterable[int]) -> list[VersionRow]:
    cursor = conn.cursor(row_factory=args_row(VersionRow))
    return await (await cursor.execute(sql("dags/read_versions"), {"keys": numbers(keys)})).fetchall()


# -- files -------------------------------------------------------------------------------------------------------------


async def see_files(conn: AsyncConn, bundle: str, files: Sequence[FileSeen]) -> None:
    """Replaces the files of a bundle by these; DAGs whose file is gone are retired."""
    names = {"bundle": bundle, "files": [f.file for f in files], "fingerprints": [f.fingerprint for f in files]}
    async with conn.transaction():
        await conn.execute(sql("dags/insert_files"), names)
        await conn.execute(sql("dags/delete_files"), names)
        retired = await conn.execute(sql("dags/retire_orphans"), names)
        if retired.rowcount:
            await reparse_failed(conn)
            await conn.execute(sql("dags/notify"))


async def reparse_failed(conn: AsyncConn) -> None:
    """Lets the processors try again what had errors, because something that files were refused for has changed."""
    await conn.execute(sql("dags/reparse_failed"))


async def reparse_all(conn: AsyncConn) -> None:
    """Lets the processors load every file again, because what files mean has changed."""
    await conn.execute(sql("dags/reparse_all"))


async def lease_files(
    conn: AsyncConn, *, bundles: Sequence[str], service_id: int, limit: int, lease_s: float, lacking: Sequence[tuple[str, str]] = ()
) -> list[LeasedFile]:
    """Returns files of these bundles to parse. The (bundle, file) that the service is ``lacking`` become free for others."""
    lacks = {"lacking_bundles": [bundle for bundle, _ in lacking], "lacking_files": [file for _, file in lacking]}
    names = {
        "bundles": list(bundles),
        "service_id": service_id,
        "limit": limit,
        "file_lease_s": lease_s,
        "most": FRUITLESS_LEASES,
        "again_s": FORECAST_AGAIN_S,
        "lease_s": LEASE_S,
        **lacks,
    }
    async with conn.transaction():
        if lacking:
            await conn.execute(sql("dags/return_files"), {"service_id": service_id, **lacks})
        cursor = conn.cursor(row_factory=kwargs_row(LeasedFile))
        return await (await cursor.execute(sql("dags/lease_files"), names)).fetchall()


async def lock_file(conn: AsyncConn, bundle: str, file: str) -> str | None:
    """The fingerprint of a file, which stays so until the transaction ends; null when the file is gone."""
    row = await (await conn.execute(sql("dags/lock_file"), {"bundle": bundle, "file": file})).fetchone()
    return None if row is None else str(row[0])


async def record_parse(
    conn: AsyncConn,
    *,
    bundle: str,
    file: str,
    seconds: float,
    error: str | None,
    error_line: int | None,
    warnings: str | None = None,
    wants: Sequence[str] = (),
    asked: Sequence[AskedValue] = (),
) -> None:
    names = {"bundle": bundle, "file": file, "seconds": seconds, "error": error, "error_line": error_line, "warnings": warnings}
    given = [value for value in asked if not value.refused]
    names |= {
        "wants": list(wants) or None,
        "asked": [f"{value.kind}:{value.name}" for value in asked] or None,
        "kinds": [value.kind for value in given],
        "names": [value.name for value in given],
        "stamps": [value.changed_at for value in given],
    }
    await conn.execute(sql("dags/record_parse"), names)


# -- DAGs --------------------------------------------------------------------------------------------------------------


async def lock_ids(conn: AsyncConn, dag_ids: Collection[str]) -> None:
    """Keeps other transactions from storing a version of these DAGs until this one ends."""
    await conn.execute(sql("dags/lock_ids"), {"dag_ids": list(dag_ids)})


async def find_owners(conn: AsyncConn, *, bundle: str, file: str, dag_ids: Collection[str]) -> list[Owner]:
    """Returns which of these DAGs this file cannot have, because others have them."""
    names = {"bundle": bundle, "file": file, "dag_ids": list(dag_ids)}
    cursor = conn.cursor(row_factory=args_row(Owner))
    return await (await cursor.execute(sql("dags/find_owners"), names)).fetchall()


async def list_resources(conn: AsyncConn) -> tuple[set[str], dict[str, list[str]]]:
    """The names of all pools, and the queues of all executors by name."""
    rows = await (await conn.execute(sql("dags/list_resources"))).fetchall()
    return {name for kind, name, _ in rows if kind == "pool"}, {name: queues for kind, name, queues in rows if kind == "executor"}


async def insert_version(
    conn: AsyncConn,
    *,
    dag_id: str,
    spec: str,
    spec_hash: str,
    code_hash: str,
    file: str,
    tasks: Sequence[TaskSpec],
    bundle: str | None = None,
    revision: str | None = None,
) -> int:
    """The key of the version with this spec and code, new or not; ``tasks`` are (task_id, operator). A new one keeps where it was
    found: the ``bundle``, and the ``revision`` that this had then."""
    names = {
        "dag_id": dag_id,
        "spec": spec,
        "spec_hash": spec_hash,
        "code_hash": code_hash,
        "file": file,
        "bundle": bundle,
        "revision": revision,
    }
    row = await (await conn.execute(sql("dags/insert_version"), names)).fetchone()
    assert row is not None
    version_key, is_new = row
    if is_new:
        of_tasks = {
            "version_key": version_key,
            "task_ids": [task.task_id for task in tasks],
            "operators": [task.operator for task in tasks],
            "execution_timeouts": [task.execution_timeout for task in tasks],
            "queued_timeouts": [task.queued_timeout for task in tasks],
            "other_queues": [task.other_queue for task in tasks],
        }
        await conn.execute(sql("dags/insert_tasks"), of_tasks)
    return int(version_key)


async def upsert(
    conn: AsyncConn,
    *,
    dag_id: str,
    version_key: int,
    bundle: str,
    file: str,
    line: int,
    tags: Sequence[str] = (),
    is_paused: bool,
    next_run: NextRun,
    forecast: Forecast | None = None,
) -> None:
    """Makes this the DAG's newest version, whose runs wait in this ``line`` (:mod:`evenflow.core.graph`); ``is_paused`` counts only
    for a new DAG, and a schedule that is code has a ``forecast``.
    """
    names = {
        "dag_id": dag_id,
        "version_key": version_key,
        "bundle": bundle,
        "file": file,
        "line": line,
        "tags": list(tags),
        "is_paused": is_paused,
        "forecast": None if forecast is None else forecast.to_json(),
        **_columns(next_run),
    }
    await conn.execute(sql("dags/upsert"), names)
    await conn.execute(sql("quarantine/forget_dag"), {"dag_id": names["dag_id"]})


def _columns(next_run: NextRun) -> dict[str, Any]:
    return {"next_run_at": next_run.run_at, "next_logical": next_run.logical, "wants_forecast": next_run.wants_forecast}


async def release(conn: AsyncConn, dag_id: str, bundle: str) -> None:
    """Gives the DAG to this bundle. Its files that were refused because of the DAG are loaded again."""
    await conn.execute(sql("dags/release"), {"dag_id": dag_id, "bundle": bundle})
    await reparse_failed(conn)


async def retire_unlisted(conn: AsyncConn, *, bundle: str, file: str, dag_ids: Collection[str]) -> bool:
    """Retires DAGs that the file had and lacks now; says whether there were some."""
    names = {"bundle": bundle, "file": file, "dag_ids": list(dag_ids)}
    return (await conn.execute(sql("dags/retire_unlisted"), names)).rowcount > 0


async def lock_schedule(conn: AsyncConn, dag_id: str) -> tuple[Past, datetime]:
    """Returns what is known of a DAG's schedule, and the time of the database's clock. Until the transaction ends no other one
    continues its schedule.
    """
    row = await (await conn.execute(sql("dags/lock_schedule"), {"dag_id": dag_id})).fetchone()
    assert row is not None
    *past, forecast, now = row
    return Past(*past)._replace(forecast=Forecast.read(forecast) if forecast else Forecast()), now


async def notify(conn: AsyncConn) -> None:
    """Tells schedulers that DAGs or limits have changed."""
    await conn.execute(sql("dags/notify"))


# -- code --------------------------------------------------------------------------------------------------------------


async def has_code(conn: AsyncConn, code_hash: str) -> bool:
    row = await (await conn.execute(sql("dags/has_code"), {"code_hash": code_hash})).fetchone()
    return row is not None and bool(row[0])


async def insert_code(conn: AsyncConn, code_hash: str, archive: bytes) -> None:
    await conn.execute(sql("dags/insert_code"), {"code_hash": code_hash, "archive": archive})


async def read_code(conn: AsyncConn, code_hash: str) -> bytes | None:
    cursor = conn.cursor(binary=True)  # an archive in text form is twice as long
    row = await (await cursor.execute(sql("dags/read_code"), {"code_hash": code_hash})).fetchone()
    return None if row is None else bytes(row[0])


class CodeUse(NamedTuple):
    in_hand: bool  # of the service that asks
    version_keys: list[int]
    bundles: list[str]


async def find_code_use(conn: AsyncConn, code_hash: str, *, service_id: int, most: int) -> CodeUse:
    """What needs an archive: the service's work in hand, and the ``most`` newest versions that are of it."""
    names = {"code_hash": code_hash, "service_id": service_id, "most": most}
    use = await (await conn.cursor(row_factory=args_row(CodeUse)).execute(sql("dags/find_code_use"), names)).fetchone()
    assert use is not None
    return use


# -- what people ask for -----------------------------------------------------------------------------------------------


async def set_paused(conn: AsyncConn, dag_id: str, *, is_paused: bool, next_run: NextRun) -> None:
    async with conn.transaction():
        names = {"dag_id": dag_id, "is_paused": is_paused, **_columns(next_run)}
        await conn.execute(sql("dags/set_paused"), names)
        await notify(conn)
        await conn.execute(sql("states/notify"), {"channels": [DISPATCH, RESUMES]})  # its frozen tries may be claimed


async def skip_dates(conn: AsyncConn, dag_id: str, *, past: Past, next_run: NextRun) -> None:
    """Says up to where the DAG, which is locked, counts as scheduled."""
    names = {
        "dag_id": dag_id,
        "last_logical": past.logical_date,
        "last_interval_end": past.interval_end,
        **_columns(next_run),
    }
    await conn.execute(sql("dags/skip_dates"), names)
    await notify(conn)


async def insert_run(
    conn: AsyncConn,
    *,
    dag_id: str,
    run_id: str,
    version_key: int,
    params: str,
    logical_date: datetime | None,
    interval: tuple[datetime, datetime] | None = None,
    run_type: str = "manual",
    priority: int = 0,
    note: str | None = None,
    traceparent: str | None = None,
) -> int | None:
    """The key of a new run, queued for the schedulers; null when the DAG has a run of this name or this logical date. ``params`` is
    JSON.
    """
    start, end = interval or (None, None)
    names = {
        "dag_id": dag_id,
        "run_id": run_id,
        "version_key": version_key,
        "run_type": run_type,
        "params": params,
        "logical_date": logical_date,
        "interval_start": start,
        "interval_end": end,
        "priority": priority,
        "note": note,
        "traceparent": traceparent,
    }
    async with conn.transaction():
        row = await (await conn.execute(sql("dags/insert_run"), names)).fetchone()
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
    return None if row is None else int(row[0])


async def find_logical(conn: AsyncConn, dag_id: str, logical_date: datetime) -> str | None:
    """The name of the DAG's run of this logical date."""
    row = await (await conn.execute(sql("dags/find_logical"), {"dag_id": dag_id, "logical_date": logical_date})).fetchone()
    return None if row is None else str(row[0])


async def set_note(conn: AsyncConn, run_key: int, note: str | None) -> None:
    await conn.execute(sql("dags/set_note"), {"run_key": run_key, "note": note})


async def list_unfinished(conn: AsyncConn, dag_id: str, *, state: str | None, limit: int) -> list[int]:
    """Runs that have not ended and are not being cancelled, the oldest first."""
    names = {"dag_id": dag_id, "state": state, "limit": limit}
    return [run_key for (run_key,) in await (await conn.execute(sql("dags/list_unfinished"), names)).fetchall()]


async def request_cancel(conn: AsyncConn, run_keys: Iterable[int], *, actor: str) -> int:
    """Asks the schedulers to end these runs; returns for how many this was not asked before."""
    async with conn.transaction():
        row = await (await conn.execute(sql("dags/request_cancel"), {"run_keys": numbers(run_keys), "actor": actor})).fetchone()
        await conn.execute(sql("inbox/notify"), {"channel": INBOX})
    assert row is not None
    return int(row[0])
