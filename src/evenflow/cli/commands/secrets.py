"""``evenflow secrets``: the keys that seal connections and variables."""

from __future__ import annotations

from cyclopts import App

from evenflow.cli.output.terminal import Json, print_json, say
from evenflow.cli.remote import remote

app = App(name="secrets")


@app.command
async def rotate(*, json: Json = False) -> None:
    """Seal everything anew: with a new key, or with the first of EVENFLOW_SECRET_KEYS where keys are set."""
    async with remote() as client:
        rotated = await client.rotate_secrets()
    if json:
        print_json(rotated)
        return
    say(f"{rotated.resealed} values are sealed with the first key")
    if rotated.keys_are_set:
        say("Now you may take the other keys out of EVENFLOW_SECRET_KEYS on all API hosts.")


@app.command
def key() -> None:
    """Make a key for EVENFLOW_SECRET_KEYS and print it."""
    from evenflow.api.vault import new_key

    print(new_key())
