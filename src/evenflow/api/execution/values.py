"""Answers a running try's questions about connections, variables and earlier runs, within what its DAG may know, and stores what
the try leaves beside its results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.execution.secret_finding import SecretFinder
from evenflow.api.refusals import Refused, too_large
from evenflow.api.sealing import check_value, may_use
from evenflow.api.tokens import TriggerToken, TryToken
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.links import web_links
from evenflow.core.object_names import SealedKind
from evenflow.errors import StaleEpoch
from evenflow.spark.limits import MOST_BYTES, MOST_CORES, MOST_TASKS, MOST_WALL
from evenflow.spark.status import ApplicationCost
from evenflow.store.db.connect import AsyncConn, AsyncPool, Row
from evenflow.store.serving import dispatch, events, sealed, triggers, try_records, xcom
from evenflow.wire.objects import FOLDER, ObjectStorage, new_name
from evenflow.wire.questions import AskNamed, Done, Folder, Found, KeepRecord, PreviousRun, Rendered, SetVariable

_MOST_OF_COST = {
    "cores": MOST_CORES,
    "wall_s": MOST_WALL,
    "run_s": MOST_TASKS,
    "gc_s": MOST_TASKS,
    **dict.fromkeys(("stages", "input_bytes", "output_bytes", "shuffle_bytes", "spilled_bytes"), MOST_BYTES),
}


class ValueRoutes:
    """A try that has ended gets no answer: its token is valid while its dispatch exists."""

    def __init__(self, pool: AsyncPool, versions: Versions, vault: Vault, finder: SecretFinder) -> None:
        self._pool, self._versions, self._vault, self._finder = pool, versions, vault, finder

    async def connection(self, call: Call) -> Found:
        return await self._find(call, "connection")

    async def variable(self, call: Call) -> Found:
        return await self._find(call, "variable")

    async def set_variable(self, call: Call) -> Done:
        message: SetVariable = call.message
        check_value("variable", message.name, message.text)
        async with self._pool.connection() as conn:
            dag_id, bundle, task_id = await self._asker(conn, call.of_try)
            await self._usable(conn, "variable", message.name, dag_id, bundle)
            actor = f"task {dag_id}.{task_id}"[:MAX_NAME_CHARS]
            async with events.recorded(conn, actor, "variable.set", message.name):
                new = self._vault.seal("variable", message.name, message.text)
                await sealed.set_value(conn, "variable", message.name, new, description=message.description, dags=None, actor=actor)
        return Done()

    async def delete_variable(self, call: Call) -> Done:
        message: AskNamed = call.message
        async with self._pool.connection() as conn:
            dag_id, bundle, task_id = await self._asker(conn, call.of_try)
            await self._usable(conn, "variable", message.name, dag_id, bundle)
            async with events.recorded(conn, f"task {dag_id}.{task_id}"[:MAX_NAME_CHARS], "variable.delete", message.name):
                await sealed.delete_value(conn, "variable", message.name)
        return Done()

    async def previous_run(self, call: Call) -> PreviousRun:
        async with self._pool.connection() as conn:
            subject, _, _ = await self._versions.of_subject(conn, call.of_try.run_key)
            found = await try_records.previous_run(conn, subject)
        if found is None:
            return PreviousRun()
        start, end, started, ended = (None if moment is None else moment.isoformat() for moment in found)
        return PreviousRun(data_interval_start=start, data_interval_end=end, start_date=started, end_date=ended)

    async def rendered(self, call: Call) -> Done:
        message: Rendered = call.message
        fields = msgspec.json.encode(message.fields)
        if len(fields) > limits.RENDERED:
            raise too_large("What the templates became", limits.RENDERED)
        async with self._pool.connection() as conn:
            if not await try_records.write_rendered(
                conn, epoch=call.of_try.epoch, fields=fields.decode().replace("\\u0000", "\\ufffd")
            ):
                raise try_over()
        return Done()

    async def record(self, call: Call) -> Done:
        message: KeepRecord = call.message
        value = msgspec.json.encode(message.value)
        if len(value) > limits.TRY_RECORD:
            raise too_large(f"What a try says of its work ({message.kind})", limits.TRY_RECORD)
        if message.kind == "spark_cost":
            _check_cost(message.value)
        if message.kind == "links" and len(web_links(message.value)) < len(message.value):
            raise Refused(422, "bad_value", "A link has a name, and a URL of HTTP or HTTPS with a host and without a login.")
        asker, of_trigger = call.of_try, isinstance(call.token, TriggerToken)
        if of_trigger and message.kind not in ("spark_ui", "spark_stages"):
            raise Refused(403, "forbidden", f"A trigger keeps nothing of the kind {message.kind!r}. Let the task say it.")
        async with self._pool.connection() as conn:
            kept = value.decode().replace("\\u0000", "\\ufffd")
            if of_trigger:
                await check_held(conn, call.asker)
            written = await try_records.write_record(
                conn, asker, try_number=asker.try_number, kind=message.kind, value=kept, most_links=limits.TRY_LINKS
            )
            if not written:
                raise try_over()
        return Done()

    async def _find(self, call: Call, kind: SealedKind) -> Found:
        message: AskNamed = call.message
        async with self._pool.connection() as conn:
            dag_id, bundle, task_id = await self._asker(conn, call.asker)
            row = await sealed.read_value(conn, kind, message.name)

        def rule(name: str, patterns: Sequence[str], store: str | None) -> None:
            _check_rule(kind, name, patterns, dag_id, bundle, store)

        of_try = f"{task_id}, try {call.asker.try_number} of run {call.asker.run_key}"
        text = await self._finder.find(kind, message.name, row, rule, asker=dag_id, detail={"last_try": of_try})
        if text is not None or not message.similar:
            return Found(text=text)
        async with self._pool.connection() as conn:
            similar = await self._similar(conn, kind, message.name, dag_id, bundle)
        return Found(similar=similar, stores=self._finder.stores)

    async def _similar(self, conn: AsyncConn, kind: SealedKind, name: str, dag_id: str, bundle: str) -> list[str]:
        """Returns only names that the DAG may use. The caller picks the nearest, so only its own process pays for the
        comparison.
        """
        found = await sealed.list_similar(conn, kind, name)
        return [name for name, patterns in found if may_use(patterns, dag_id, bundle)]

    async def _usable(self, conn: AsyncConn, kind: SealedKind, name: str, dag_id: str, bundle: str) -> Row | None:
        value = await sealed.read_value(conn, kind, name)
        if value is not None:
            _check_rule(kind, name, value["dags"], dag_id, bundle)
        return value

    async def _asker(self, conn: AsyncConn, token: TryToken | TriggerToken) -> tuple[str, str, str]:
        """Returns the DAG, its bundle and the task of a try in hand, or of a trigger's try. Raises :class:`StaleEpoch`."""
        await check_held(conn, token)
        _, version = await self._versions.of_run(conn, token.run_key)
        _, run, of_subject = await self._versions.of_subject(conn, token.run_key)
        return run.dag_id, of_subject.bundle, version.tasks[token.task_index].task_id


def _check_rule(kind: SealedKind, name: str, patterns: Sequence[str], dag_id: str, bundle: str, store: str | None = None) -> None:
    if not may_use(patterns, dag_id, bundle):
        cure = f"type: evenflow {kind}s allow {name} {dag_id}" if store is None else f"add it to its `dags` in {store}."
        raise Refused(403, "forbidden", f"The {kind} {name!r} is not for DAG {dag_id!r}. To let it, {cure}")


async def check_held(conn: AsyncConn, token: TryToken | TriggerToken) -> None:
    """Raises :class:`StaleEpoch` for an ended try, and for a trigger that fired, was cancelled or runs in another triggerer."""
    if isinstance(token, TriggerToken):
        if not await triggers.is_claimed(conn, token):
            raise StaleEpoch("This trigger is over: its task has resumed or ended, or another triggerer runs it.")
    elif not await dispatch.is_held(
        conn, epoch=token.epoch, run_key=token.run_key, task_index=token.task_index, map_index=token.map_index
    ):
        raise try_over()


class FolderRoutes:
    """The folders in object storage where tries put results that are files, one for each try. The database notes that a try may
    leave a folder before the try gets it.
    """

    def __init__(self, pool: AsyncPool, storage: ObjectStorage) -> None:
        self._pool, self._storage = pool, storage

    async def begin(self, call: Call) -> Folder:
        epoch = call.of_try.epoch
        async with self._pool.connection() as conn:
            await xcom.begin_folder(conn, epoch=epoch)
        name = new_name(epoch, FOLDER)
        try:
            await asyncio.to_thread(self._storage.begin_folder, name)
        except OSError as error:
            raise Refused(500, "no_storage", f"No folder can be made in {self._storage.url} for a result: {error}.") from None
        return Folder(url=self._storage.url, name=name)


def _check_cost(value: dict[str, Any]) -> None:
    """The view of all costs has numbers, and another value would break it for everybody."""
    try:
        cost = msgspec.convert(value, ApplicationCost)
    except msgspec.ValidationError as error:
        raise Refused(400, "bad_message", f"What an application of Spark took is not as expected: {error}.") from None
    for name, most in _MOST_OF_COST.items():
        if not 0 <= getattr(cost, name) <= most:
            raise Refused(400, "bad_message", f"What an application of Spark took must be from 0 to {most:,}: {name}.")
