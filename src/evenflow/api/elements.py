"""Which instance of a mapped task has the n-th of the values that it pushed: each instance of a task that maps over them asks.

Counting would cost each the length of the list. So the list is read once and kept, for as long as it is true: when all instances
have ended it changes only with an operation on the run, and those are counted.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

from evenflow.api.limits import CACHED_ELEMENTS
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import xcom

_ListKey = tuple[int, int, str, int]  # run_key, task_index, key, how often people had changed the run


class ElementCache:
    """The lists that were asked for last."""

    def __init__(self) -> None:
        self._lists: OrderedDict[_ListKey, Sequence[int]] = OrderedDict()
        self._size = 0

    async def of(self, conn: AsyncConn, *, epoch: int, run_key: int, task_index: int, key: str) -> Sequence[int] | None:
        """The map indexes of those that pushed a value, in order. None when the try ``epoch``, which asks, is over."""
        changes = await xcom.find_state(conn, epoch=epoch)
        if changes is None:
            return None
        name = (run_key, task_index, key, changes)
        if (known := self._lists.get(name)) is not None:
            self._lists.move_to_end(name)
            return known
        pushed, complete = await xcom.list_pushed(conn, run_key=run_key, task_index=task_index, key=key)
        if complete:
            self._keep(name, range(len(pushed)) if pushed == list(range(len(pushed))) else array("i", pushed))
        return pushed

    def _keep(self, name: _ListKey, indexes: Sequence[int]) -> None:
        self._size += _size(indexes) - _size(self._lists.pop(name, ()))
        self._lists[name] = indexes
        while self._size > CACHED_ELEMENTS:
            self._size -= _size(self._lists.popitem(last=False)[1])


def _size(indexes: Sequence[int]) -> int:
    """What it costs to keep, in numbers; one without gaps is kept as its ends."""
    return len(indexes) if isinstance(indexes, array) else 1
