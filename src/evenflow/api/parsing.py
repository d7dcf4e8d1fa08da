"""Stores the result of a DAG file as versions, DAGs and limits.

All is one transaction, unless existing limits change. That takes the executor's lock, and schedulers must not wait for the lock
while a thousand DAGs are stored. So limits change in a second transaction, and only that one marks the file as parsed. If the
process dies between the two, the file is delivered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from evenflow.api import limits
from evenflow.api.judge import Judge
from evenflow.api.judge_process import JudgedSpec
from evenflow.api.specs import check_resources, next_run_of
from evenflow.core.assets import leaves
from evenflow.core.forecast import Forecast
from evenflow.core.graph import creation_line
from evenflow.core.limits import MOST_VALUES_OF_FILE
from evenflow.core.model import DagSpec, hash_of
from evenflow.core.settings import UTC
from evenflow.core.timetable import Past
from evenflow.errors import BadSchedule, DagError
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import assets, callbacks, dags, settings
from evenflow.store.serving.dag_limits import change_limits, insert_limits
from evenflow.wire.code import check_archive
from evenflow.wire.messages import ParsedAnswer, ParsedFile


async def store_parsed(pool: AsyncPool, judge: Judge, parsed: ParsedFile) -> ParsedAnswer:
    """Stores what a file defines. Its errors are kept for people to read; the DAGs of a file with an error do not change.

    A result is dropped if the file has another fingerprint now: the file was leased again, and a newer result will come. A result
    from before the default time zone changed is dropped, too.
    """
    judged = await judge.specs(parsed.specs)
    if parsed.code is not None and parsed.code_hash is not None:
        await asyncio.to_thread(check_archive, parsed.code_hash, parsed.code)
    async with pool.connection() as conn, conn.transaction():
        if (answer := await _outdated(conn, parsed, judged)) is not None:
            return answer
        if parsed.specs and parsed.code_hash is not None and not await _code_is_here(conn, parsed.code_hash, parsed.code):
            return ParsedAnswer(need_code=True)
        stored = (
            _StoredFile([parsed.error[-limits.TRACEBACK :]], {})
            if parsed.error is not None
            else await _store_specs(conn, parsed, judged)
        )
        answer = ParsedAnswer(errors=stored.errors if parsed.error is None else [])
        if not stored.limits_change:
            await _record(conn, parsed, stored)
            return answer
    async with pool.connection() as conn, conn.transaction():
        if (outdated := await _outdated(conn, parsed, judged)) is not None:
            return outdated
        await _lock_own(conn, parsed, stored.specs)
        await _record(conn, parsed, stored)
        await dags.notify(conn)
        await change_limits(conn, stored.specs.values())
    return answer


class _StoredFile(NamedTuple):
    errors: list[str]
    specs: dict[str, DagSpec]  # by DAG
    limits_change: bool = False
    wants: Sequence[str] = ()  # DAGs that this file defines, and that belong to another file


async def _outdated(conn: AsyncConn, parsed: ParsedFile, judged: Sequence[JudgedSpec]) -> ParsedAnswer | None:
    """Returns the answer to an outdated result. Until the transaction ends, no other result of the file is stored."""
    if await dags.lock_file(conn, parsed.bundle, parsed.file) != parsed.fingerprint:
        return ParsedAnswer()
    stale = _with_another_timezone(parsed, judged, await settings.read_default_timezone(conn))
    return None if stale is None else ParsedAnswer(errors=[stale])


async def _record(conn: AsyncConn, parsed: ParsedFile, stored: _StoredFile) -> None:
    await dags.record_parse(
        conn,
        bundle=parsed.bundle,
        file=parsed.file,
        seconds=parsed.seconds,
        error="\n".join(stored.errors).replace("\0", "") or None,
        error_line=parsed.error_line,
        warnings="\n".join(parsed.warnings)[: limits.WARNINGS].replace("\0", "") or None,
        wants=stored.wants,
        asked=parsed.asked[:MOST_VALUES_OF_FILE],
    )


def _with_another_timezone(parsed: ParsedFile, judged: Sequence[JudgedSpec], zone: str) -> str | None:
    """Returns the message for a file that was loaded with another default time zone than the current one."""
    for found in judged:
        used = zone if found.spec is None else msgspec.json.decode(found.spec, type=_LoadedWith).default_timezone
        if used != zone:
            return f"{parsed.file} was loaded with the default time zone {used}, which is {zone} now. It will be loaded anew."
    return None


class _LoadedWith(msgspec.Struct):
    default_timezone: str = UTC


async def _code_is_here(conn: AsyncConn, code_hash: str, archive: bytes | None) -> bool:
    if archive is None:
        return await dags.has_code(conn, code_hash)
    await dags.insert_code(conn, code_hash, archive)
    return True


async def _store_specs(conn: AsyncConn, parsed: ParsedFile, judged: Sequence[JudgedSpec]) -> _StoredFile:
    if parsed.specs and parsed.code_hash is None:
        return _StoredFile(["The DAGs came without the hash of their code. Processor and API may be of different versions."], {})
    errors = [found.error for found in judged if found.error is not None]
    specs: dict[str, DagSpec] = {}
    forecasts: dict[str, Forecast] = {}
    pools, executors = await dags.list_resources(conn)
    for text in (found.spec for found in judged if found.spec is not None):
        try:
            spec = msgspec.json.decode(text, type=DagSpec)
            check_resources(spec, pools, executors)
            if spec.dag_id in specs:
                raise DagError(f"The file defines the DAG {spec.dag_id!r} twice.")
            await _try_deadlines(conn, spec)
            if (forecast := _forecast_of(spec, parsed)) is not None:
                forecasts[spec.dag_id] = forecast
            specs[spec.dag_id] = spec
        except DagError as error:
            errors.append(str(error))
    owners = await _lock_own(conn, parsed, specs)
    errors += [_taken(owner, parsed) for owner in owners]
    version_keys = {spec.dag_id: await _store_version(conn, spec, parsed) for spec in specs.values()}
    limits_change = await insert_limits(conn, specs.values())
    new_are_paused = await settings.read_paused_at_creation(conn)
    for spec in specs.values():
        await _store_dag(conn, spec, version_keys[spec.dag_id], parsed, new_are_paused, forecasts.get(spec.dag_id))
    if not errors and await dags.retire_unlisted(conn, bundle=parsed.bundle, file=parsed.file, dag_ids=specs):
        await dags.reparse_failed(conn)
    await dags.notify(conn)
    return _StoredFile(errors, specs, limits_change, [owner.dag_id for owner in owners])


async def _lock_own(conn: AsyncConn, parsed: ParsedFile, specs: dict[str, DagSpec]) -> list[dags.Owner]:
    """Locks these DAGs for this file until the transaction ends. Removes those of other files from ``specs``, and returns their
    owners.
    """
    await dags.lock_ids(conn, specs)
    owners = await dags.find_owners(conn, bundle=parsed.bundle, file=parsed.file, dag_ids=specs)
    for owner in owners:
        del specs[owner.dag_id]
    return owners


def _taken(owner: dags.Owner, parsed: ParsedFile) -> str:
    place = f"of {parsed.file} (bundle {parsed.bundle!r}) is already defined in {owner.file} (bundle {owner.bundle!r})"
    give = f", or give it away: evenflow dags release {owner.dag_id} --to {parsed.bundle}" if owner.bundle != parsed.bundle else ""
    return f"The DAG {owner.dag_id!r} {place}, which keeps it. Rename one{give}."


async def _try_deadlines(conn: AsyncConn, spec: DagSpec) -> None:
    if spec.deadlines and (why := await callbacks.try_deadlines(conn, msgspec.json.encode(spec.deadlines).decode())) is not None:
        raise DagError(f"DAG {spec.dag_id!r}: the database cannot follow a deadline of it: {why}. Change its time or time zone.")


async def _store_version(conn: AsyncConn, spec: DagSpec, parsed: ParsedFile) -> int:
    assert parsed.code_hash is not None
    canonical = spec.to_json()
    return await dags.insert_version(
        conn,
        dag_id=spec.dag_id,
        spec=canonical,
        spec_hash=hash_of(canonical),
        code_hash=parsed.code_hash,
        file=parsed.file,
        bundle=parsed.bundle,
        revision=parsed.revision,
        tasks=spec.tasks,
    )


def _forecast_of(spec: DagSpec, parsed: ParsedFile) -> Forecast | None:
    """Returns the next runs of a DAG whose schedule is code. Raises :class:`BadSchedule`."""
    if spec.schedule.kind != "code":
        return None
    text = parsed.forecasts.get(spec.dag_id)
    if text is None:
        raise BadSchedule(f"DAG {spec.dag_id!r} came without next runs. Processor and API may be of different versions.")
    try:
        return Forecast.read(text)
    except BadSchedule as error:
        raise BadSchedule(f"DAG {spec.dag_id!r}: {error}") from None


async def _store_dag(
    conn: AsyncConn, spec: DagSpec, version_key: int, parsed: ParsedFile, new_are_paused: bool, forecast: Forecast | None
) -> None:
    past, now = await dags.lock_schedule(conn, spec.dag_id)
    past = past._replace(forecast=forecast or Forecast())
    await dags.upsert(
        conn,
        dag_id=spec.dag_id,
        version_key=version_key,
        bundle=parsed.bundle,
        file=parsed.file,
        line=creation_line(spec),
        tags=spec.tags,
        is_paused=new_are_paused if spec.is_paused_upon_creation is None else spec.is_paused_upon_creation,
        next_run=await upcoming_run(spec, past, now),
        forecast=forecast,
    )
    made = {name for task in spec.tasks for name in task.outlets}
    await assets.register(conn, spec.assets, made=made)
    await assets.set_producer(conn, spec.dag_id, made)
    await assets.set_watch(conn, spec.dag_id, spec.schedule.watch, spec.schedule.watch_key)
    await assets.set_consumer(conn, spec.dag_id, set(leaves(spec.schedule.assets)) if spec.schedule.assets is not None else ())


async def upcoming_run(spec: DagSpec, past: Past, now: datetime) -> dags.NextRun:
    """Returns the next scheduled run of a DAG with this past. ``now`` is the database's time, as in the scheduler that makes the
    run: a clock that is ahead would pass over a date. The search for a rare tick takes some milliseconds.
    """
    run = await asyncio.to_thread(next_run_of, spec, past, now)
    wants = spec.schedule.kind == "code" and past.forecast.is_low(past.logical_date, spec.catchup, now)
    return dags.NextRun(run and run.run_after, run and run.logical_date, wants)
