"""``evenflow settings``: those that decide, in the database. Infrastructure is set in the environment and in ``evenflow.toml``."""

from __future__ import annotations

from functools import partial
from json import dumps
from typing import Any

from cyclopts import App

from evenflow.cli.input.params import Limit, json_or_text
from evenflow.cli.output.replies import Cell, Reply, listed, verb
from evenflow.cli.output.terminal import say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.settings import find_setting

app = App(name="settings")


@verb(app, "list")
async def list_() -> Reply:
    """All settings that decide, with their values and the people who set them."""
    async with remote() as client:
        page = await client.list_settings()

    def tell_meanings() -> None:
        say("")
        for setting in page.items:
            say(f"{setting.name}: {setting.meaning}", "bright_black")

    cells: dict[str, Cell[rest.settings.SettingValue]] = {
        "value": lambda s: _shown(s.value),
        "default": lambda s: _shown(s.default),
    }
    return listed("settings", page, rest.settings.SettingValue, cells=cells, empty="No settings.", then=tell_meanings)


@verb(app, "set")
async def set_(name: str, value: str, /) -> Reply:
    """Give a setting a value, for all schedulers at once. Infrastructure is set in evenflow.toml, not here."""
    given = json_or_text(value)
    find_setting(name).check(given)
    async with remote() as client:
        setting = await client.set_setting(name, value=given)
    return Reply(setting, f"{setting.name} is {_shown(setting.value)}")


@verb(app)
async def get(name: str, /) -> Reply:
    """Print the value of a setting."""
    find_setting(name)
    async with remote() as client:
        setting = await client.get_setting(name)
    return Reply(setting, _shown(setting.value))


@verb(app)
async def unset(name: str, /) -> Reply:
    """Restore the default of a setting, for all schedulers at once."""
    find_setting(name)
    async with remote() as client:
        setting = await client.unset_setting(name)
    return Reply(setting, f"{setting.name} is {_shown(setting.value)}, its default")


@verb(app)
async def history(name: str, /, *, limit: Limit = 50) -> Reply:
    """The values of a setting with their authors and times, the newest first."""
    find_setting(name)
    async with remote() as client:
        page = await read_pages(partial(client.list_setting_history, name), limit)
    cells: dict[str, Cell[rest.settings.SettingVersion]] = {
        "value": lambda c: f"{_shown(c.value)}{' (default)' if c.unset else ''}"
    }
    return listed("history", page, rest.settings.SettingVersion, cells=cells, limit=limit, empty="Nobody has set it.")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)
