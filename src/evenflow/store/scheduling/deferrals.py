"""Task instances that are deferred, or have resumed: read and written in columns, a statement for any number of rows. The caller
holds the locks of their runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from evenflow.core.deferral import Keeping, Terms
from evenflow.core.flow.state import InstanceKey
from evenflow.core.limits import MOST_COUNTED
from evenflow.core.people.approvals import PEOPLE
from evenflow.core.settings import DEFERRED_KEEP_EXECUTOR_SLOT, DEFERRED_KEEP_RUN_CAP, DEFERRED_KEEP_TASK_LIMITS
from evenflow.store.db.columns import arrays, numbers, optional_floats, texts, words
from evenflow.store.db.rows import Conn, Rows, execute, row_of


class Deferral(Struct, gc=False):
    """A task instance that has just been deferred. Limits in the layout of a dispatch."""

    run_key: int
    task_index: int
    map_index: int
    epoch: int
    queue: str
    trigger: str
    sealed: str  # base64
    holds: Sequence[int]
    pool_slots: int
    retake: Sequence[int]
    retake_slots: int
    ran_s: float
    timeout_s: float | None
    execution_timeout_s: float | None  # from the start of its try


class Waiting(NamedTuple):
    """A task instance that waits, or has resumed: then ``purpose`` says what for, and it holds nothing here."""

    run_key: int
    task_index: int
    map_index: int
    epoch: int
    trigger: str
    purpose: str | None
    holds: list[int]
    pool_slots: int
    retake: list[int]
    retake_slots: int
    all_holds: list[int]  # both, in the order of a dispatch
    ready_at_s: float  # when its try was queued first, seconds since 1970
    waited_s: float
    state: str
    current_epoch: int
    try_number: int
    tries_before: int
    direct: bool  # whether resumes go straight back to workers

    @property
    def key(self) -> InstanceKey:
        return self[:3]


class Resume(Struct, gc=False):
    """What a resume is for; ``epoch`` is that of the deferral."""

    run_key: int
    task_index: int
    map_index: int
    epoch: int
    purpose: str
    event: str | None  # base64
    reason: str | None
    intent: str | None  # JSON: what a person wants once its clean-up has ended
    direct: bool = True  # whether it has a dispatch again; else it takes all that it held when it gets one


def read_terms(conn: Conn, limits: Collection[int]) -> Rows[Terms]:
    return Rows(execute(conn, "deferrals/read_terms", {"limits": numbers(limits)}), row_of(Terms))


def read_keeping(conn: Conn) -> Rows[Keeping]:
    """Reads one row."""
    params = {
        "task_limits": DEFERRED_KEEP_TASK_LIMITS,
        "run": DEFERRED_KEEP_RUN_CAP,
        "executor": DEFERRED_KEEP_EXECUTOR_SLOT,
    }
    return Rows(execute(conn, "deferrals/read_keeping", params), _keeping)


def _keeping(row: Iterable[bool | None]) -> Keeping:
    names = ("task_limits", "run", "executor")
    return Keeping(**{name: value for name, value in zip(names, row, strict=True) if value is not None})


def read_some(conn: Conn, keys: Collection[InstanceKey]) -> dict[InstanceKey, Waiting]:
    """Those of these task instances that wait or have resumed."""
    found = Rows(execute(conn, "deferrals/read_some", _keys(keys)), row_of(Waiting)).all()
    return {waiting.key: waiting for waiting in found}


def insert_all(conn: Conn, deferrals: Sequence[Deferral]) -> None:
    """Follows the moves of their task instances. They are counted from the first start of their try."""
    run_keys, tasks, maps, epochs, queues, triggers, sealed, holds, slots, retake, retake_slots, ran, timeouts, execution = zip(
        *map(astuple, deferrals), strict=True
    )
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "epochs": numbers(epochs),
        "queues": texts(queues),
        "triggers": texts(triggers),
        "sealed": texts(sealed),
        "holds": arrays(holds),
        "slots": numbers(slots),
        "retake": arrays(retake),
        "retake_slots": numbers(retake_slots),
        "ran": optional_floats(ran),
        "timeouts": optional_floats(timeouts),
        "execution_timeouts": optional_floats(execution),
        "people": PEOPLE,
    }
    execute(conn, "deferrals/insert_all", params)


def resume_all(conn: Conn, resumes: Sequence[Resume]) -> None:
    run_keys, tasks, maps, epochs, purposes, events, reasons, intents, direct = zip(*map(astuple, resumes), strict=True)
    params = {
        "run_keys": numbers(run_keys),
        "tasks": numbers(tasks),
        "maps": numbers(maps),
        "epochs": numbers(epochs),
        "purposes": words(purposes),
        "events": texts(events),
        "reasons": texts(reasons),
        "intents": texts(intents),
        "direct": words("t" if d else "f" for d in direct),
        "expected": len(resumes),
    }
    execute(conn, "deferrals/resume_all", params)


def delete_all(conn: Conn, keys: Collection[InstanceKey]) -> None:
    execute(conn, "deferrals/delete_all", _keys(keys))


def _keys(keys: Iterable[InstanceKey]) -> dict[str, str]:
    run_keys, tasks, maps = zip(*keys, strict=True)
    return {"run_keys": numbers(run_keys), "tasks": numbers(tasks), "maps": numbers(maps)}


def count_unserved(conn: Conn) -> tuple[int, str | None]:
    """How many triggers no triggerer has taken for a minute, at most :data:`MOST_COUNTED`, and the queue of one of them."""
    row = execute(conn, "triggers/count_unserved", {"most": MOST_COUNTED}).fetchone()
    assert row is not None
    return row[0], row[1]
