"""``evenflow settings``: those that decide, in the database. Where things are is in the environment and in ``evenflow.toml``."""

from __future__ import annotations

from json import dumps
from typing import Any

from cyclopts import App

from evenflow.cli.input.params import json_or_text
from evenflow.cli.output.terminal import Json, local_time, print_json, print_table, say
from evenflow.cli.remote import remote
from evenflow.core.settings import find_setting

app = App(name="settings")


@app.command(name="list")
async def list_(*, json: Json = False) -> None:
    """All settings that decide, with their values and who set them."""
    async with remote() as client:
        found = (await client.list_settings()).items
    if json:
        print_json({"settings": found})
        return
    rows = ((s.name, _shown(s.value), _shown(s.default), s.changed_by, local_time(s.changed_at)) for s in found)
    print_table(("setting", "value", "default", "set by", "at"), rows, empty="No settings.")
    say("")
    for setting in found:
        say(f"{setting.name}: {setting.meaning}", "bright_black")


@app.command(name="set")
async def set_(name: str, value: str, /, *, json: Json = False) -> None:
    """Give a setting a value, for all schedulers at once. Infrastructure is not set here but in evenflow.toml."""
    given = json_or_text(value)
    find_setting(name).check(given)
    async with remote() as client:
        setting = await client.set_setting(name, given)
    if json:
        print_json(setting)
    else:
        say(f"{setting.name} is {_shown(setting.value)}")


@app.command
async def get(name: str, /, *, json: Json = False) -> None:
    """Print the value that a setting has."""
    find_setting(name)
    async with remote() as client:
        setting = await client.get_setting(name)
    if json:
        print_json(setting)
    else:
        say(_shown(setting.value))


@app.command
async def unset(name: str, /, *, json: Json = False) -> None:
    """Let the default of a setting hold again, for all schedulers at once."""
    find_setting(name)
    async with remote() as client:
        setting = await client.unset_setting(name)
    if json:
        print_json(setting)
    else:
        say(f"{setting.name} is {_shown(setting.value)}, its default")


@app.command
async def history(name: str, /, *, limit: int = 50, offset: int = 0, json: Json = False) -> None:
    """What a setting was set to, by whom and when, the newest first."""
    find_setting(name)
    async with remote() as client:
        changes = (await client.list_setting_history(name, limit=limit, offset=offset)).items
    if json:
        print_json({"history": changes})
        return
    rows = (
        (c.version, f"{_shown(c.value)}{' (default)' if c.unset else ''}", c.changed_by, local_time(c.changed_at)) for c in changes
    )
    print_table(("#version", "value", "by", "at"), rows, empty="Nobody has set it.")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)
