"""Values that tasks keep with an asset for all runs of all DAGs, as Airflow's tasks do in its state store of assets."""

from __future__ import annotations

import msgspec

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.execution.once import check_kept_name
from evenflow.api.execution.values import check_held
from evenflow.api.refusals import Refused, too_large
from evenflow.api.versions import Versions
from evenflow.core.limits import MAX_ONCE_BYTES
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import assets
from evenflow.wire.questions import AskAssetValue, AssetValue, Done, ForgetAssetValues, KeptValue, SetAssetValue


class AssetValueRoutes:
    """A task may use the values of assets that it names as inlets or outlets, and of those that its aliases stand for."""

    def __init__(self, pool: AsyncPool, versions: Versions) -> None:
        self._pool, self._versions = pool, versions

    async def read(self, call: Call) -> AssetValue:
        message: AskAssetValue = call.message
        async with self._pool.connection() as conn:
            await self._check_named(conn, call, message.asset)
            found = await assets.read_value(conn, message.asset, message.name)
        return AssetValue(kept=None if found is None else KeptValue(value=msgspec.json.decode(found)))

    async def write(self, call: Call) -> Done:
        message: SetAssetValue = call.message
        what = f"What is to be kept with asset {message.asset!r} as {message.name!r}"
        check_kept_name(message.name)
        text = msgspec.json.encode(message.kept.value).decode()
        if len(text) > MAX_ONCE_BYTES:
            raise too_large(what, MAX_ONCE_BYTES)
        if message.kept.secret:
            cure = "every task that names the asset would see it. Keep it as a connection or a variable"
            raise Refused(422, "bad_value", f"{what} holds a secret that this task was given: {cure}.")
        async with self._pool.connection() as conn:
            await self._check_named(conn, call, message.asset)
            limit = limits.ASSET_VALUES
            if not await assets.write_value(conn, message.asset, message.name, text, epoch=call.of_try.epoch, limit=limit):
                await check_held(conn, call.of_try)
                raise too_large(f"The number of values that are kept with asset {message.asset!r}, with {message.name!r},", limit)
        return Done()

    async def forget(self, call: Call) -> Done:
        message: ForgetAssetValues = call.message
        async with self._pool.connection() as conn:
            await self._check_named(conn, call, message.asset)
            if not await assets.forget_values(conn, message.asset, message.name, epoch=call.of_try.epoch):
                raise try_over()
        return Done()

    async def _check_named(self, conn: AsyncConn, call: Call, asset: str) -> None:
        """Raises :class:`Refused` unless the task of the try names the asset."""
        run, version = await self._versions.of_run(conn, call.of_try.run_key)
        task = version.tasks[call.of_try.task_index]
        if asset in (*task.inlets, *task.outlets):
            return
        for alias in (*task.inlets, *task.outlet_aliases):
            if asset in {row["name"] for row in await assets.list_named(conn, alias, is_alias=True, limit=limits.INLET_EVENTS)}:
                return
        cure = "Add it to inlets= or outlets=."
        raise Refused(403, "forbidden", f"{asset!r} is no inlet or outlet of task {task.task_id!r} of DAG {run.dag_id!r}. {cure}")
