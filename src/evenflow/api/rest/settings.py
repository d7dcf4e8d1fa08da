"""Settings that decide. They live in the database, so that all schedulers have the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from evenflow.api.rest.context import Actor, Connection, InSlice
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.settings import SettingRequest, SettingValue, SettingVersion
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.settings import DEFAULT_TIMEZONE, SETTINGS, Setting, find_setting
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import dags, events, settings

routes = Routes("Settings")


@routes.get("/settings", Role.VIEWER, ScopedBy.OWN)
async def list_settings(conn: Connection) -> Page[SettingValue]:
    """All settings that decide, with their values; the default where none was set."""
    stored = await settings.read_settings(conn)
    items = [_shown(setting, stored.get(name)) for name, setting in SETTINGS.items()]
    return Page[SettingValue](items=items, limit=len(items), more=False)


@routes.get("/settings/{name}", Role.VIEWER, ScopedBy.OWN)
async def get_setting(conn: Connection, name: str) -> SettingValue:
    return await _read(conn, find_setting(name))


@routes.put("/settings/{name}", Role.OPERATOR)
async def set_setting(conn: Connection, actor: Actor, name: str, change: SettingRequest) -> SettingValue:
    """Gives a setting a value, for all schedulers from their next transaction on."""
    setting = find_setting(name)
    setting.check(change.value)
    async with _changing(conn, setting), events.recorded(conn, actor, "setting.set", name, value=change.value):
        await settings.set_value(conn, name, change.value, actor=actor)
    return await _read(conn, setting)


@routes.delete("/settings/{name}", Role.OPERATOR)
async def unset_setting(conn: Connection, actor: Actor, name: str) -> SettingValue:
    """Its default holds again, for all schedulers from their next transaction on."""
    setting = find_setting(name)
    async with _changing(conn, setting), events.recorded(conn, actor, "setting.unset", name):
        await settings.unset_value(conn, name, actor=actor)
    return await _read(conn, setting)


@routes.get("/settings/{name}/history", Role.VIEWER, ScopedBy.OWN)
async def list_setting_history(http: Request, conn: Connection, query: InSlice, name: str) -> Page[SettingVersion]:
    """What the setting was set to, and by whom, the newest first."""
    setting = find_setting(name)
    part = part_of(http, query, int)
    changes = await settings.list_changes(conn, name, limit=part.limit, after=part.after)
    rows = [{**row, "unset": row["value"] is None} for row in changes]
    rows = [{**row, "value": setting.default} if row["unset"] else row for row in rows]
    return part.page(Page[SettingVersion], rows)


@asynccontextmanager
async def _changing(conn: AsyncConn, setting: Setting) -> AsyncIterator[None]:
    """A transaction that changes ``setting``, with what else depends on it."""
    async with conn.transaction():
        before = await settings.read_value(conn, setting.name)
        yield
        if setting.name == DEFAULT_TIMEZONE and await settings.read_value(conn, setting.name) != before:
            await dags.reparse_all(conn)


async def _read(conn: AsyncConn, setting: Setting) -> SettingValue:
    return _shown(setting, (await settings.read_settings(conn)).get(setting.name))


def _shown(setting: Setting, stored: Row | None) -> SettingValue:
    unset = {"value": setting.default, "changed_at": None, "changed_by": None, "version": None}
    told = {"name": setting.name, "default": setting.default, "kind": setting.kind, "meaning": setting.meaning}
    return SettingValue.model_validate({**(stored or unset), **told})
