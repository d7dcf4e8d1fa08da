"""Routes for the processor: the files that exist, those to parse, their results, and the code that workers will need."""

from __future__ import annotations

import asyncio

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call
from evenflow.api.judge import Judge
from evenflow.api.parsing import store_parsed
from evenflow.api.refusals import Refused
from evenflow.api.tokens import ServiceToken
from evenflow.api.versions import Versions
from evenflow.core.bundle import OWN_BUNDLE
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import dags, settings
from evenflow.wire.code import check_archive
from evenflow.wire.messages import FilesLease, FilesLeased, FilesSeen, ParsedAnswer, ParsedFile


class FileRoutes:
    def __init__(self, pool: AsyncPool, versions: Versions, judge: Judge) -> None:
        self._pool, self._versions, self._judge = pool, versions, judge

    async def seen(self, call: Call) -> None:
        message: FilesSeen = call.message
        if len(message.files) > limits.FILES:
            raise Refused(413, "too_large", f"{len(message.files):,} DAG files in one bundle; the limit is {limits.FILES:,}.")
        call.within_scope([message.bundle])
        if message.bundle == OWN_BUNDLE:
            raise Refused(422, "bad_value", f"No bundle is called {OWN_BUNDLE!r}: what is in that one is Evenflow's own.")
        files = {seen.file: seen for seen in message.files}
        async with self._pool.connection() as conn:
            await dags.see_files(conn, message.bundle, list(files.values()))

    async def lease(self, call: Call) -> FilesLeased:
        message: FilesLease = call.message
        call.speaks_for(message.service_id)
        call.within_scope(message.bundles)
        async with self._pool.connection() as conn:
            leased = await dags.lease_files(
                conn,
                bundles=message.bundles,
                service_id=message.service_id,
                limit=min(message.limit, limits.FILES_LEASED),
                lease_s=min(message.lease_s, limits.LEASE),
                lacking=[(lacking.bundle, lacking.file) for lacking in message.lacking],
            )
            zone = await settings.read_default_timezone(conn)
        return FilesLeased(files=leased, default_timezone=zone)

    async def parsed(self, call: Call) -> ParsedAnswer:
        message: ParsedFile = call.message
        if len(message.specs) > limits.SPECS:
            raise Refused(413, "too_large", f"{message.file} defines {len(message.specs):,} DAGs; the limit is {limits.SPECS:,}.")
        call.within_scope([message.bundle])
        answer = await store_parsed(self._pool, self._judge, message)
        reached(KillPoint.VERSION_STORED)
        return answer

    async def put_code(self, call: Call) -> None:
        code_hash: str = call.path["code_hash"]
        await asyncio.to_thread(check_archive, code_hash, call.message)
        async with self._pool.connection() as conn:
            await dags.insert_code(conn, code_hash, call.message)

    async def get_code(self, call: Call) -> bytes:
        code_hash: str = call.path["code_hash"]
        async with self._pool.connection() as conn:
            archive = await dags.read_code(conn, code_hash) if await self._may_read(conn, call.of_service, code_hash) else None
        if archive is None:
            raise Refused(404, "not_found", f"There is no code {code_hash} that this service may read.")
        return archive

    async def _may_read(self, conn: AsyncConn, service: ServiceToken, code_hash: str) -> bool:
        """Returns whether the service may read this code. With a scope, a service may read code of its tries, or of its queues or
        bundles; a service for one try may read the code of that try only.
        """
        if not service.scope and not service.epoch:
            return True
        use = await dags.find_code_use(conn, code_hash, service_id=service.service_id, most=limits.CODE_VERSIONS)
        if service.kind == "processor":
            return not set(use.bundles).isdisjoint(service.scope)
        if use.in_hand or service.epoch:
            return use.in_hand
        versions = await self._versions.of(conn, use.version_keys)
        return any(task.queue in service.scope for version in versions.values() for task in version.tasks)
