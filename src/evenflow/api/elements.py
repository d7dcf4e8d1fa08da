"""Finds the instance of a mapped task that pushed the n-th value: each instance of a task that maps over the values asks.

Counting would cost each question the length of the list. So the list is read once and kept while it is true: when all instances
have ended, only an operation on the run changes it, and those are counted.
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
    """Keeps the lists that were asked for last."""

    def __init__(self) -> None:
        self._lists: OrderedDict[_ListKey, Sequence[int]] = OrderedDict()
        self._size = 0

    async def of(self, conn: AsyncConn, *, epoch: int, run_key: int, task_index: int, key: str) -> Sequence[int] | None:
        """Returns the map indexes of the instances that pushed a value, in order, or None when the asking try ``epoch`` is over."""
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
    """Returns the cost of keeping a list, in numbers. A list without gaps is kept as its two ends."""
    return len(indexes) if isinstance(indexes, array) else 1
