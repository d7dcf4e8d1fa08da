"""Passwords of users: Argon2id, by the reference implementation. What is stored says with which parameters it was made."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from evenflow.api import limits
from evenflow.api.refusals import Refused

_MADE_BYTES = 15  # 20 characters: 120 bits


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher(
        time_cost=limits.PASSWORD_PASSES, memory_cost=limits.PASSWORD_MEMORY_KIB, parallelism=limits.PASSWORD_LANES
    )


def new_password() -> str:
    return secrets.token_urlsafe(_MADE_BYTES)


def hashed(password: str) -> str:
    """What is stored of it. Takes a tenth of a second."""
    return _hasher().hash(password)


@dataclass(frozen=True, slots=True)
class CheckedPassword:
    """``renewed`` is what to store for a right password from now on, if the parameters have changed since."""

    is_right: bool
    renewed: str | None = None


class Passwords:
    """Checks them in threads, a few at a time: each takes memory and a processor, and everybody may ask."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(limits.PASSWORDS_AT_ONCE)
        self._asked = 0
        self._nobodys: str | None = None

    async def check(self, password: str, stored: str | None) -> CheckedPassword:
        """Whether that is the password of which this is ``stored``. Where nothing is, it takes as long. Raises :class:`Refused`
        when too many wait.
        """
        async with self._turn():
            return await asyncio.to_thread(self._check, password, stored)

    async def hashed(self, password: str) -> str:
        """As the function :func:`hashed`."""
        async with self._turn():
            return await asyncio.to_thread(hashed, password)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._asked >= limits.PASSWORDS_AT_ONCE + limits.PASSWORDS_WAITING:
            raise Refused(503, "too_many_logins", "Too many people log in at this moment.", hint="Try again in a second.")
        self._asked += 1
        try:
            async with self._turns:
                yield
        finally:
            self._asked -= 1

    def _check(self, password: str, stored: str | None) -> CheckedPassword:
        if self._nobodys is None:
            self._nobodys = hashed(new_password())
        try:
            is_right = _hasher().verify(stored or self._nobodys, password) and stored is not None
        except (VerificationError, InvalidHashError):
            return CheckedPassword(is_right=False)
        renewed = hashed(password) if is_right and _hasher().check_needs_rehash(stored or "") else None
        return CheckedPassword(is_right, renewed)
