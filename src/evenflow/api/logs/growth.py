"""Whether a try's log still grows, and where a character of it ends."""

from __future__ import annotations

from evenflow.core.states import HOLDING, TaskState
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import views

LOG_GROWS = HOLDING | {TaskState.NONE, TaskState.SCHEDULED, TaskState.DEFERRED, TaskState.UP_FOR_RESCHEDULE}
LOG_ENDED = frozenset(TaskState) - LOG_GROWS


async def find_try(
    conn: AsyncConn, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int | None
) -> tuple[int, bool]:
    """Returns the number of the try that is meant, and whether its log will not grow any more. Raises :class:`DagNotFound`."""
    instance = await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    if instance is None:
        hint = await views.similar_task(conn, dag_id, task_id)
        where = f"in a run {run_id!r} of DAG {dag_id!r}"
        raise DagNotFound(f"There is no task {task_id!r} {where}.", hint=f"{hint} See: evenflow runs list {dag_id}")
    newest = instance.try_number or 1
    if try_number is not None and try_number > newest:
        tries = f"has had {newest} of them" if instance.try_number else "has not begun"
        raise DagNotFound(f"There is no try {try_number} of the task {task_id!r}: it {tries}.")
    shown = try_number or newest
    return shown, shown < newest or (instance.state is not None and instance.state in LOG_ENDED)


def whole_characters(data: bytes) -> bytes:
    """Removes an incomplete character at the end, whose other bytes are still to come."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:  # the first byte of a character of 2 to 4 bytes
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data
