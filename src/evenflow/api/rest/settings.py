"""Settings that decide. They live in the database, so that all schedulers have the same."""

from __future__ import annotations

from fastapi import APIRouter

from evenflow.api.rest.context import Connection, Operator
from evenflow.api.rest.models import Page, SettingChange, SettingValue
from evenflow.core.settings import SETTINGS, Setting, find_setting
from evenflow.store import events, settings
from evenflow.store.settings import SetValue

routes = APIRouter(tags=["Settings"])


@routes.get("/settings")
async def list_settings(conn: Connection) -> Page[SettingValue]:
    """All settings that decide, with their values; the default where nobody has set one."""
    stored = await settings.read_settings(conn)
    items = [_shown(setting, stored.get(name)) for name, setting in SETTINGS.items()]
    return Page[SettingValue](items=items, limit=len(items), offset=0, more=False)


@routes.put("/settings/{name}")
async def set_setting(conn: Connection, operator: Operator, name: str, change: SettingChange) -> SettingValue:
    """Gives a setting a value, for all schedulers from their next transaction on."""
    setting = find_setting(name)
    setting.check(change.value)
    async with events.recorded(conn, operator, "setting.set", name, value=change.value):
        await settings.set_value(conn, name, change.value, actor=operator)
    return _shown(setting, (await settings.read_settings(conn)).get(name))


def _shown(setting: Setting, stored: SetValue | None) -> SettingValue:
    return SettingValue(
        name=setting.name,
        value=setting.default if stored is None else stored.value,
        default=setting.default,
        kind=setting.kind,
        meaning=setting.meaning,
        changed_at=None if stored is None else stored.changed_at,
        changed_by=None if stored is None else stored.changed_by,
    )
