"""Values that a running try stores once for all tries of its task instance, so that a later try continues what it began."""

from __future__ import annotations

import msgspec

from evenflow.api import limits
from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.execution.values import check_held
from evenflow.api.refusals import Refused, too_large
from evenflow.api.vault import Vault
from evenflow.core.limits import MAX_NAME_CHARS, MAX_ONCE_BYTES
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import try_records
from evenflow.store.serving.sealed import ONCE, name_of_once
from evenflow.wire.questions import AskOnce, Done, ForgetOnce, KeptValue, Once, SetOnce


def check_kept_name(name: str) -> None:
    """Raises :class:`Refused` for what cannot be the name of a kept value."""
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise Refused(422, "bad_value", f"The name of a value has 1 to {MAX_NAME_CHARS} printable characters, not {name!r:.300}.")


class OnceRoutes:
    """An ended try stores nothing, so a worker that is thought lost cannot overwrite what the next try has made."""

    def __init__(self, pool: AsyncPool, vault: Vault) -> None:
        self._pool, self._vault = pool, vault

    async def ask(self, call: Call) -> Once:
        message: AskOnce = call.message
        check_kept_name(message.name)
        async with self._pool.connection() as conn:
            found = await try_records.ask_once(conn, epoch=call.of_try.epoch, name=message.name, limit=limits.ONCE_VALUES)
            if found is None:
                await check_held(conn, call.of_try)
                raise too_large(f"The number of values that this task stores once, with {message.name!r},", limits.ONCE_VALUES)
        return self._told(call, message.name, found)

    async def set(self, call: Call) -> Once:
        message: SetOnce = call.message
        text = msgspec.json.encode(message.kept.value)
        if len(text) > MAX_ONCE_BYTES:
            raise too_large(f"The value {message.name!r} that is stored once", MAX_ONCE_BYTES)
        if message.outside and message.kept.secret:
            raise Refused(422, "bad_value", f"{message.name!r} names what runs outside, by a secret. Store an id that is none.")
        place = (ONCE, name_of_once(call.of_try.run_key, message.name))
        value, sealed = (None, self._vault.seal(*place, text.decode())) if message.kept.secret else (text.decode(), None)
        async with self._pool.connection() as conn:
            found = await try_records.store_once(
                conn,
                epoch=call.of_try.epoch,
                name=message.name,
                value=value,
                sealed=sealed,
                replaces=message.replaces,
                outside=message.outside,
            )
            if found is None:
                await check_held(conn, call.of_try)
                raise Refused(409, "not_asked", f"Nothing can be stored as {message.name!r}: it was forgotten. Ask for it first.")
        return self._told(call, message.name, found)

    async def forget(self, call: Call) -> Done:
        message: ForgetOnce = call.message
        async with self._pool.connection() as conn:
            if not await try_records.forget_once(conn, epoch=call.of_try.epoch, name=message.name):
                raise try_over()
        return Done()

    def _told(self, call: Call, name: str, found: try_records.OnceValue) -> Once:
        text = found.value
        if found.sealed is not None:
            place = (ONCE, name_of_once(call.of_try.run_key, name))
            text = self._vault.open(*place, found.sealed, what=f"What was stored once as {name!r}")
        if text is None:
            return Once(key=found.key)
        return Once(key=found.key, kept=KeptValue(value=msgspec.json.decode(text), secret=found.sealed is not None))
