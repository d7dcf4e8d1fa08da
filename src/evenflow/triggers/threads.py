"""Threads for calls that block: files on a disk that may be far away, and database drivers. A process has a few, for all its
triggers.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar
from weakref import WeakKeyDictionary

from evenflow.triggers.limits import THREADS, THREADS_FOR_ONE

T = TypeVar("T")
Turns = defaultdict[str, asyncio.Semaphore]


async def at_file(function: Callable[[], T]) -> T:
    """Returns what ``function`` returns, which looks at a file."""
    return await asyncio.get_running_loop().run_in_executor(_threads("files"), function)


async def at_database(name: str, function: Callable[[], T]) -> T:
    """Returns what ``function`` returns, which asks the database of the connection ``name``; a few calls ask one database
    at once.
    """
    loop = asyncio.get_running_loop()
    async with _turns.setdefault(loop, Turns(lambda: asyncio.Semaphore(THREADS_FOR_ONE)))[name]:
        return await loop.run_in_executor(_threads("databases"), function)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


@cache
def _threads(purpose: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix=f"triggers-{purpose}")
