"""Finding out which run makes a transaction fail (R-HA13).

A transaction decides about hundreds of runs. When it fails with an exception that is not about the database, it is repeated without
any run. If that fails too, no run is at fault, and the scheduler begins again as always. Otherwise it is repeated for halves of its
runs, and halves of those that fail. What succeeds is committed: other runs wait for a few milliseconds, not until a person comes.

Of the one run that is left, the reports are halved in the same way. If its oldest one fails alone, and the run does not fail
without it, that report is set aside and the run continues: a start or a person's request is dropped, an exit becomes the failure of
its try, a loss stays a loss. In all other cases the run is put into quarantine.

n suspects with one poison among them cost 2 log2 n transactions. A version that cannot be read names all its runs at once.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass

from evenflow.scheduler import observations as seen
from evenflow.scheduler.advance import advance
from evenflow.scheduler.catalog import Catalog, UnreadableVersion
from evenflow.scheduler.quarantine import describe, may_be_poison, set_aside
from evenflow.scheduler.scope import Scope
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox, quarantine
from evenflow.telemetry.observing import observe


@dataclass(slots=True)
class SetAsideCount:
    """How many runs and reports were set aside."""

    runs: int = 0
    reports: int = 0

    def __bool__(self) -> bool:
        return bool(self.runs or self.reports)


def isolate(conn: Conn, failed: Scope, error: Exception, stop: threading.Event) -> SetAsideCount:
    """Sets aside what made a transaction with the scope ``failed`` fail. ``conn`` is a fresh connection. Finds nothing when the
    fault does not come again, or comes without any run. Raises errors that are not about runs.
    """
    verdict = SetAsideCount()
    suspects = failed.suspects()
    if not isinstance(error, UnreadableVersion) and _attempt(conn, Scope(frozenset())) is not None:
        return verdict
    groups: list[tuple[Scope, Exception]] = []
    if isinstance(error, UnreadableVersion):
        groups.append((failed, error))
    elif suspects:
        groups += _failing(conn, suspects)
    while groups and not stop.is_set():
        scope, error = groups.pop()
        runs = scope.suspects()
        if isinstance(error, UnreadableVersion):
            guilty = scope.of_version(error.version_key)
            set_aside(conn, guilty, error)
            verdict.runs += len(guilty)
            groups += _failing(conn, runs - guilty)
        elif len(runs) > 1:
            for half in _halves(runs):
                groups += _failing(conn, half)
        else:
            for run_key in runs:
                _convict(conn, run_key, error, verdict)
    return verdict


def _halves(runs: Collection[int]) -> tuple[list[int], list[int]]:
    ordered = sorted(runs)
    middle = len(ordered) // 2
    return ordered[:middle], ordered[middle:]


def _failing(conn: Conn, runs: Collection[int]) -> list[tuple[Scope, Exception]]:
    """A transaction for these runs alone, if it fails."""
    if not runs:
        return []
    scope = Scope(frozenset(runs))
    error = _attempt(conn, scope)
    return [] if error is None else [(scope, error)]


def _attempt(conn: Conn, scope: Scope) -> Exception | None:
    """Why a transaction fails; ``None`` when it was committed."""
    try:
        advance(conn, Catalog(), scope=scope)
    except Exception as error:
        if not may_be_poison(error):
            raise
        return error
    return None


def _convict(conn: Conn, run_key: int, error: Exception, verdict: SetAsideCount) -> None:
    """Decides whether one of its reports makes the transaction of a run fail alone."""
    limit = Scope().reports
    while True:
        scope = Scope(frozenset([run_key]), limit)
        failure = _attempt(conn, scope)
        if failure is None and not scope.taken:
            return  # it does not come again
        if failure is None:
            continue  # what came before the poison is applied
        error = failure
        if limit == 1:
            break
        limit = max(1, min(limit, len(scope.taken) or limit) // 2)
    about = (scope.taken[0].kind, scope.taken[0].epoch) if scope.taken else None
    if _attempt(conn, Scope(frozenset([run_key]), 0)) is None and _set_report_aside(conn, run_key, about, error):
        verdict.reports += 1
    else:
        set_aside(conn, [run_key], error)
        verdict.runs += 1


def _set_report_aside(conn: Conn, run_key: int, about: tuple[str, int] | None, error: Exception) -> bool:
    reason = describe(error)
    with conn.transaction():
        done = quarantine.set_report_aside(conn, run_key, about, reason)
        inbox.notify(conn, INBOX)
    if done:
        observe(seen.report_set_aside(run_key, reason, error))
    return done
