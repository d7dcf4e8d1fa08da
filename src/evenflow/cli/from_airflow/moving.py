"""What of a house comes here and what does not, and the requests to the REST API that bring it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from evenflow.cli.from_airflow.database import AirflowDag, House
from evenflow.cli.from_airflow.fernet import Keys, Undecryptable
from evenflow.client.rest import RestClient, every
from evenflow.core.deferral import HOLD, RELEASE
from evenflow.core.limits import INT32_MAX
from evenflow.core.object_names import CONNECTION, VARIABLE
from evenflow.core.quantities import counted
from evenflow.errors import ApiRefused, ConnectionNotFound
from evenflow.sdk.secrets.uris import JSON_FIELDS, uri_of_fields
from evenflow.store.db.connect import Row

HouseFate = Literal["moved", "kept", "left"]

_PASSWORD, _EXTRA = ("password", "is_encrypted"), ("extra", "is_extra_encrypted")


@dataclass(frozen=True, slots=True)
class Moved:
    """``kept``: there is one here already, and it stays. ``left``: it did not come. ``why`` says more, of these two always."""

    kind: str
    name: str
    fate: HouseFate
    why: str = ""


@dataclass(frozen=True, slots=True)
class Moving:
    """``writes``: False only says what would be done. ``overwrites`` what is here already."""

    client: RestClient
    keys: Keys
    writes: bool
    overwrites: bool

    async def move(self, house: House) -> list[Moved]:
        return [moved async for moved in self._all(house)]

    async def _all(self, house: House) -> AsyncIterator[Moved]:
        connections = await self._names(self.client.list_connections)
        for row in house.connections:
            yield await self._tried("connection", row["conn_id"], row, connections, self._connection)
        variables = await self._names(self.client.list_variables)
        for row in house.variables:
            yield await self._tried("variable", row["key"], row, variables, self._variable)
        pools = {pool.name: pool for pool in (await self.client.list_pools()).items}
        for row in house.pools:
            yield await self._tried(
                "pool", row["pool"], row, {name: f"{pool.slots} slots" for name, pool in pools.items()}, self._pool
            )
        here = {dag.dag_id: dag async for dag in every(self.client.list_dags)}
        for dag in house.dags:
            if dag.dag_id not in here:
                yield Moved("DAG", dag.dag_id, "left", "it is not here: bring its file first, then type this again")
                continue
            for moved in await self._dag(dag, here[dag.dag_id].is_paused, beats=house.beats):
                yield moved
        for row in house.backfills:
            yield Moved(
                "backfill",
                f"{row['id']} of {row['dag_id']}",
                "left",
                "it is not through: begin what is left by evenflow backfill create",
            )

    async def _names(self, read: Callable[..., Awaitable[Any]]) -> dict[str, str]:
        return {item.name: "" async for item in every(read)}

    async def _tried(
        self, kind: str, name: str, row: Row, here: dict[str, str], move: Callable[[str, Row], Awaitable[None]]
    ) -> Moved:
        if not isinstance(name, str) or not name.isprintable():  # SQLite holds anything
            return Moved(kind, repr(name), "left", "a name is printable text: give it another one there")
        if any(isinstance(value, bytes) for value in row.values()):
            return Moved(kind, name, "left", "its row holds bytes where text belongs: make it by hand")
        if row.get("team_name"):
            return Moved(
                kind, name, "left", f"it is of the team {row['team_name']!r}, and here it would be for all: make it by hand"
            )
        if name in here and not self.overwrites:
            found = f" with {here[name]}" if here[name] else ""
            return Moved(kind, name, "kept", f"there is one here{found}; --overwrite takes Airflow's")
        try:
            await move(name, row)
        except (ApiRefused, ConnectionNotFound, Undecryptable) as error:
            return Moved(kind, name, "left", str(error))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:  # its text may show a value
            return Moved(kind, name, "left", f"its row cannot be read ({type(error).__name__}): make it by hand")
        return Moved(kind, name, "moved")

    async def _connection(self, name: str, row: Row) -> None:
        opened = {field: self.keys.open(row[field], is_encrypted=bool(row[flag])) for field, flag in (_PASSWORD, _EXTRA)}
        uri = uri_of_fields(name, {field: row[field] for field in JSON_FIELDS} | opened)
        about = row["description"] or None
        await self.client.check_secret(kind=CONNECTION, name=name, text=uri, description=about)
        if self.writes:
            await self.client.set_connection(name, uri=uri, description=about)

    async def _variable(self, name: str, row: Row) -> None:
        text = self.keys.open(row["val"], is_encrypted=bool(row["is_encrypted"])) or ""
        about = row["description"] or None
        await self.client.check_secret(kind=VARIABLE, name=name, text=text, description=about)
        if self.writes:
            await self.client.set_variable(name, value=text, description=about)

    async def _pool(self, name: str, row: Row) -> None:
        """In Airflow -1 slots are as many as one likes."""
        slots = INT32_MAX if row["slots"] < 0 else row["slots"]
        while_deferred = HOLD if row["include_deferred"] else RELEASE
        if self.writes:
            await self.client.set_pool(name, slots=slots, description=row["description"] or "", while_deferred=while_deferred)

    async def _dag(self, dag: AirflowDag, is_paused_here: bool, *, beats: bool) -> list[Moved]:
        """The dates come before the pause ends."""
        done: list[Moved] = []
        if dag.done_until is not None:
            until = min(dag.done_until, datetime.now(UTC))
            skip = partial(self.client.skip_dates, dag.dag_id, until=until)
            done.append(await self._asked("dates", dag.dag_id, skip, f"up to {until.isoformat(timespec='seconds')} they are done"))
        if dag.is_paused != is_paused_here:
            if beats and not dag.is_paused:
                why = "a scheduler of Airflow's runs, and both would run it: stop that one, then type this again"
                done.append(Moved("pause", dag.dag_id, "left", why))
            else:
                pause = partial(self.client.set_paused, dag.dag_id, is_paused=dag.is_paused)
                done.append(await self._asked("pause", dag.dag_id, pause, "paused" if dag.is_paused else "active"))
        if dag.live:
            done.append(Moved("runs", dag.dag_id, "left", f"{counted(dag.live, 'run')} not ended there, where they end"))
        return done

    async def _asked(self, kind: str, name: str, ask: Callable[[], Awaitable[Any]], why: str) -> Moved:
        if self.writes:
            try:
                await ask()
            except ApiRefused as error:
                return Moved(kind, name, "left", str(error))
        return Moved(kind, name, "moved", why)
