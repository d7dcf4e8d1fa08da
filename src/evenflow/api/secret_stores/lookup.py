"""Which secret stores there are, in which order they are asked, and how long their answers are remembered.

A store that is away delays its callers by some seconds, and no other request. Each store has a few threads of its own, equal
questions share one request, and a failure is remembered for a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from evenflow.api import limits
from evenflow.api.secret_stores.clouds import AwsSecrets, GoogleSecrets
from evenflow.api.secret_stores.hashicorp import VaultSecrets
from evenflow.api.secret_stores.store import EnvironmentSecrets, SecretStore, StoredSecret
from evenflow.core.limits import MAX_NAME_CHARS
from evenflow.core.object_names import SealedKind
from evenflow.errors import EvenflowError, SecretStoreError, SettingsError
from evenflow.wire.storage_threads import StorageThreads

DATABASE = "database"
_PROBED = "evenflow-doctor"
LookedUp = StoredSecret | SecretStoreError | None


class FoundSecret(NamedTuple):
    store: str
    secret: StoredSecret
    folds: bool = False  # the store's


@dataclass(slots=True)
class _AskedStore:
    """A store, and the threads that call it."""

    store: SecretStore
    threads: StorageThreads = field(default_factory=lambda: StorageThreads(limits.SECRET_CALLS))


class SecretStores:
    """Stores that are asked ``before`` the database and ``after`` it; without any, only the database is asked."""

    def __init__(
        self, before: Sequence[SecretStore] = (), after: Sequence[SecretStore] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._before = [_AskedStore(store) for store in before]
        self._after = [_AskedStore(store) for store in after]
        self._clock = clock
        self._known: OrderedDict[tuple[str, SealedKind, str], tuple[float, LookedUp]] = OrderedDict()  # and its end
        self._asking: dict[tuple[str, SealedKind, str], asyncio.Task[LookedUp]] = {}

    @property
    def names(self) -> list[str]:
        """The names of all stores, as messages show them."""
        return [asked.store.name for asked in (*self._before, *self._after)]

    async def probe(self) -> dict[str, SecretStoreError | None]:
        """Asks each store for a variable that is not there. Returns by name what is wrong, None for one that answers."""
        asked = [*self._before, *self._after]
        answers = await asyncio.gather(*(self._answer(each, "variable", _PROBED) for each in asked))
        wrong = [answer if isinstance(answer, SecretStoreError) else None for answer in answers]
        return {each.store.name: told for each, told in zip(asked, wrong, strict=True)}

    async def before_database(self, kind: SealedKind, name: str) -> FoundSecret | None:
        """Raises :class:`SecretStoreError`: a store that is away may be the one that has the secret."""
        return await self._first(self._before, kind, name)

    async def after_database(self, kind: SealedKind, name: str) -> FoundSecret | None:
        return await self._first(self._after, kind, name)

    async def _first(self, stores: Sequence[_AskedStore], kind: SealedKind, name: str) -> FoundSecret | None:
        if not is_askable(name):
            return None
        for asked in stores:
            answer = await self._answer(asked, kind, name)
            if isinstance(answer, SecretStoreError):
                raise SecretStoreError(str(answer))
            if answer is not None:
                return FoundSecret(asked.store.name, answer, asked.store.folds)
        return None

    async def _answer(self, asked: _AskedStore, kind: SealedKind, name: str) -> LookedUp:
        key = (asked.store.name, kind, name)
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.create_task(self._ask(asked, key))
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(asking)  # a caller that goes away does not cancel it for the others

    async def _ask(self, asked: _AskedStore, key: tuple[str, SealedKind, str]) -> LookedUp:
        answer: LookedUp
        try:
            answer = await asked.threads.run(limits.SECRET_WAIT, asked.store.read, key[1], key[2])
        except SecretStoreError as error:
            answer = error
        except Exception as error:  # its library may raise anything, with any text
            told = str(error) if isinstance(error, TimeoutError) else type(error).__name__
            answer = SecretStoreError(
                f"{asked.store.name} cannot be asked for the {key[1]} {key[2]!r}: {told}. See that it runs, and that the API "
                "reaches it."
            )
        self._known[key] = (self._clock() + _kept(answer), answer)
        self._known.move_to_end(key)
        while len(self._known) > limits.SECRETS_KNOWN:
            self._known.popitem(last=False)
        return answer


def is_askable(name: str) -> bool:
    """Returns whether a store may be asked for this name. A task chooses the name, which is part of a path: it must not lead
    elsewhere.
    """
    return 1 <= len(name) <= MAX_NAME_CHARS and name.isprintable() and not set(name) & set("/\\") and bool(name.strip("."))


def _kept(answer: LookedUp) -> float:
    """Returns how many seconds an answer is kept."""
    match answer:
        case StoredSecret():
            return limits.SECRET_KEPT
        case None:
            return limits.SECRET_MISSED
        case _:
            return limits.SECRET_FAILED


def open_stores(spec: str) -> SecretStores:
    """Opens the stores of the setting ``EVENFLOW_SECRET_STORES``. Raises :class:`SettingsError`."""
    urls = [url.strip() for url in spec.split(",") if url.strip()]
    if DATABASE not in urls:
        urls.append(DATABASE)
    if len(set(urls)) < len(urls):
        raise SettingsError(f"EVENFLOW_SECRET_STORES names a store twice: {spec}")
    place = urls.index(DATABASE)
    return SecretStores([_open(url) for url in urls[:place]], [_open(url) for url in urls[place + 1 :]])


def probe_stores(spec: str) -> list[tuple[str, EvenflowError | None]]:
    """Asks each store of the setting for a secret that is not there, as an API server would. Returns names and what is wrong."""
    try:
        return list(asyncio.run(open_stores(spec).probe()).items())
    except SettingsError as error:
        return [("", error)]


def _open(url: str) -> SecretStore:
    parts = urlsplit(url if "://" in url else f"{url}://")
    path = parts.path.strip("/")
    match parts.scheme:
        case "vault":
            return VaultSecrets(parts.netloc or "secret", path or "evenflow")
        case "aws":
            return AwsSecrets("/".join(part for part in (parts.netloc, path) if part) or "evenflow")
        case "gcp":
            return GoogleSecrets(parts.netloc, path or "evenflow")
        case "environment":
            return EnvironmentSecrets(parts.netloc or "SECRET_")
        case _:
            raise SettingsError(
                f"EVENFLOW_SECRET_STORES names {url!r}. It is a list, asked in its order, of: vault://mount/path, aws://prefix, "
                "gcp://project/prefix, environment://PREFIX_, and database."
            )
