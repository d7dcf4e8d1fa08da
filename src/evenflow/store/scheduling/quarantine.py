"""What is set aside because handling it raised an exception. For the scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evenflow.core.limits import MAX_REASON
from evenflow.core.states import RUN_FINISHED, Ender, RunEvent, RunState, move_run
from evenflow.store.db.columns import numbers, words
from evenflow.store.db.rows import Conn, execute
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK


def lock_executor(conn: Conn) -> None:
    """Waits for the executor's lock, and keeps it for the rest of the transaction. It comes before every other lock."""
    execute(conn, "dags/lock_executor", {"executor": EXECUTOR_LOCK})


def put_runs(conn: Conn, run_keys: Collection[int], reason: str) -> int:
    """Sets runs aside, under the executor's lock: nothing is applied to them, nothing of them starts. How many were not before."""
    params = {"run_keys": numbers(run_keys), "reason": reason[:MAX_REASON]}
    count = execute(conn, "quarantine/put_runs", params).rowcount
    execute(conn, "quarantine/park_lanes", {"run_keys": numbers(run_keys)})
    hold_reports(conn, run_keys)
    return count


def hold_reports(conn: Conn, run_keys: Iterable[int], *, cancels: bool = False) -> None:
    """Has reports and due timers of runs in quarantine wait, ``cancels`` too or not. Releases what ended tries held, as wakes."""
    execute(conn, "quarantine/hold_reports", {"run_keys": numbers(run_keys), "cancels": cancels})


def find_cancels(conn: Conn, run_keys: Iterable[int]) -> dict[int, str]:
    """Returns which of these runs a person wants to end, and that person."""
    return dict(execute(conn, "quarantine/find_cancels", {"run_keys": numbers(run_keys)}).fetchall())


def release_runs(conn: Conn, run_keys: Iterable[int], actor: str) -> None:
    """What was held of them counts again. Under the executor's lock."""
    execute(conn, "quarantine/release_runs", {"run_keys": numbers(run_keys), "actor": actor})


def set_report_aside(conn: Conn, run_key: int, about: tuple[str, int] | None, reason: str) -> bool:
    """Sets aside a report that cannot be applied, ``about`` a (kind, epoch) or the oldest of its run; whether that was possible."""
    kind, epoch = about or (None, 0)
    params = {"run_key": run_key, "kind": kind, "epoch": epoch, "reason": reason[:MAX_REASON], "length": MAX_REASON}
    return execute(conn, "quarantine/set_report_aside", params).rowcount > 0


def end_tries(conn: Conn, run_key: int) -> int:
    """Kills the tries of a run that run, deletes the others; answers how many run."""
    row = execute(conn, "quarantine/end_tries", {"run_key": run_key}).fetchone()
    assert row is not None
    return int(row[0])


def end_instances(conn: Conn, run_key: int, ends: Collection[tuple[str, str, str]], *, reason: str, actor: str) -> None:
    """Ends what has no process. ``ends`` has the state before, the event that ends it, and the state after."""
    was, events, states = (words(column) for column in zip(*ends, strict=True))
    params = {"run_key": run_key, "was": was, "events": events, "states": states, "reason": reason[:MAX_REASON], "actor": actor}
    params["ended_by"] = Ender.CANCEL
    execute(conn, "quarantine/end_instances", params)


def end_run(conn: Conn, run_key: int, *, reason: str, actor: str) -> None:
    """Ends a run of which no process is left."""
    params = {
        "run_key": run_key,
        "live": words(state for state in RunState if state not in RUN_FINISHED),
        "event": RunEvent.CANCEL,
        "state": move_run(RunState.RUNNING, RunEvent.CANCEL),
        "reason": reason[:MAX_REASON],
        "actor": actor,
    }
    execute(conn, "quarantine/end_run", params)


def put_one(conn: Conn, kind: str, name: str, reason: str) -> None:
    """Sets aside what a DAG (``schedule``, ``assets``) or a ``backfill`` would have made."""
    execute(conn, "quarantine/put_one", {"kind": kind, "object": name, "reason": reason[:MAX_REASON]})


def count_all(conn: Conn) -> int:
    """How much is set aside."""
    return sum(count for _, count in execute(conn, "quarantine/count_all", {"scope": None}).fetchall())
