"""The API as a service: REST for people and tools, and the execution API for processes that run user code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenflow.api.app import application
from evenflow.api.claims import Claims
from evenflow.api.garbage import delete_garbage
from evenflow.api.keys import check_keys
from evenflow.api.limits import POOL
from evenflow.api.logs import LogDirectory
from evenflow.api.tokens import Tokens
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.api.web import WebServer
from evenflow.core.limits import BEAT_S
from evenflow.store import migrate, secrets, services
from evenflow.store.connect import AsyncPool, connect, open_pool
from evenflow.store.notify import DISPATCH, AsyncListener
from evenflow.wire.objects import ObjectStorage

log = logging.getLogger(__name__)


class ApiService:
    """``port`` 0 takes a free one, which ``port`` then tells. ``operator_token`` is let in beside the tokens that the key signs."""

    def __init__(
        self,
        database_url: str,
        *,
        host: str,
        port: int,
        log_dir: Path,
        name: str,
        vault: Vault,
        storage: ObjectStorage,
        operator_token: str | None = None,
    ) -> None:
        self.name = name
        self._url, self._host, self._port, self._log_dir = database_url, host, port, log_dir
        self._operator_token, self._vault, self._storage = operator_token, vault, storage
        self._logs = LogDirectory(log_dir)
        self._pool: AsyncPool | None = None
        self._claims: Claims | None = None
        self._listener: AsyncListener | None = None
        self._web: WebServer | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._service_id = 0
        self._state = "active"

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        return self._port if self._web is None else self._web.port

    async def start(self) -> None:
        await asyncio.to_thread(self._check_schema)
        self._log_dir.mkdir(parents=True, exist_ok=True)
        self._pool = pool = await open_pool(self._url, name=self.name, min_size=2, max_size=POOL)
        async with pool.connection() as conn:
            await check_keys(conn, self._vault, host=socket.gethostname())
            tokens = Tokens(await secrets.token_key(conn), operator_token=self._operator_token)
        versions = Versions()
        self._claims = claims = Claims(pool, versions, tokens)
        self._listener = AsyncListener(self._url, [DISPATCH], lambda _: claims.wake(), name=self.name)
        await self._listener.start()
        app = application(
            pool,
            tokens=tokens,
            versions=versions,
            claims=claims,
            logs=self._logs,
            vault=self._vault,
        )
        self._web = WebServer(app, host=self._host, port=self._port)
        await self._web.start()
        self._service_id = await self._register()
        self._run(claims.serve(), "claims")
        self._run(self._beat(), "heartbeat")
        self._run(delete_garbage(pool, self._storage, self._logs), "garbage")

    async def drain(self) -> None:
        """Long polls are answered, requests in hand finished; new ones are refused, for callers to go to another API process."""
        self._state = "draining"
        if self._claims is not None:
            self._claims.close()
        if self._web is not None:
            await self._web.stop()

    async def stop(self) -> None:
        await self.drain()
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._listener is not None:
            await self._listener.stop()
        if self._pool is not None:
            with contextlib.suppress(Exception):  # the database may be what is gone; the lease then says it
                async with self._pool.connection(timeout=1.0) as conn:
                    await services.beat(conn, service_id=self._service_id, kind="api", state="stopped")
            await self._pool.close()
        self._logs.close()

    async def failed(self) -> BaseException:
        assert self._web is not None
        web = asyncio.create_task(self._web.ended())
        try:
            await asyncio.wait([web, *self._loops], return_when=asyncio.FIRST_COMPLETED)
        finally:
            web.cancel()
        if web.done():
            return web.result()
        ended = next(task for task in self._loops if task.done())
        return ended.exception() or RuntimeError(f"The {ended.get_name()} loop of the API ended by itself.")

    def _run(self, loop: Coroutine[Any, Any, None], name: str) -> None:
        self._loops.append(asyncio.create_task(loop, name=name))

    def _check_schema(self) -> None:
        with connect(self._url, name=self.name) as conn:
            migrate.check(conn)

    async def _register(self) -> int:
        assert self._pool is not None
        async with self._pool.connection() as conn:
            return await services.register(
                conn,
                kind="api",
                name=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=version("evenflow"),
                detail={"port": self.port},
            )

    async def _beat(self) -> None:
        assert self._pool is not None
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                async with self._pool.connection() as conn:
                    known = await services.beat(conn, service_id=self._service_id, kind="api", state=self._state)
                if known is None:  # declared lost while the database or this process was held up; it holds nothing, so it goes on
                    self._service_id = await self._register()
            except Exception as error:
                log.warning("no heartbeat: %s", error)
