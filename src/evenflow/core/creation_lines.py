"""In which line the runs of a DAG wait to be created. Lines take turns: a backlog for one pool delays no run for another."""

from __future__ import annotations

import zlib

from evenflow.core.limits import CREATION_LINES
from evenflow.core.model import DagSpec


def line_of(spec: DagSpec) -> int:
    """Of all DAGs whose first tasks go to the same pools and queues: a number below :data:`CREATION_LINES`."""
    places = sorted({(task.pool, task.queue) for task in spec.tasks if not task.upstream})
    return zlib.crc32(repr(places).encode()) % CREATION_LINES
