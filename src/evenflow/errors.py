"""Every error that Evenflow raises on purpose. Each says what happened, to which object, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any


class EvenflowError(Exception):
    """Base of all errors raised by Evenflow.

    ``str(error)`` is one or two sentences for a person: what happened, to which object, and the cure. Where the cure is
    given apart, ``detail`` is without it, and ``hint`` is the cure. ``names_cause``: it begins with the class of what failed.
    """

    def __init__(self, *told: object, hint: str = "", names_cause: bool = False) -> None:
        self.names_cause = names_cause
        self.detail, self.hint = str(told[0]) if told else "", hint.strip()
        super().__init__(*((f"{told[0]} {self.hint}",) if self.hint else told))


# -- authoring ---------------------------------------------------------------------------------------------------------


class DagError(EvenflowError):
    """A DAG is wrong as written. Raised while the file is loaded, so that it shows as a parse error."""


class DagCycle(DagError):
    def __init__(self, dag_id: str, cycle: Sequence[str]) -> None:
        path = " >> ".join([*cycle, cycle[0]])
        super().__init__(f"DAG {dag_id!r} has a cycle: {path}. Remove one of these dependencies.")
        self.cycle = tuple(cycle)


class BadId(DagError):
    """A DAG, task or group id has characters that are not allowed, or is too long."""


class DuplicateId(DagError):
    """Two DAGs of a file, or two tasks or groups of a DAG, have the same id."""


class BadArgument(DagError):
    """A task calls its function or operator with arguments that it does not take, or without ones that it needs."""


class BadSetting(DagError):
    """A setting of a DAG, task or group is unknown, has the wrong type or makes no sense."""


class BadSchedule(DagError):
    """A schedule is not a cron expression or preset, or names a time zone that does not exist."""


class BadMapping(DagError):
    """``expand`` was given something that cannot be mapped over."""


class WrongDag(DagError):
    """A task or group is used outside a DAG, or in another DAG than its own."""


class DagTooLarge(DagError):
    """A DAG is above one of the limits of ``core.limits``."""


class DagFileError(DagError):
    """A :class:`DagError` with the place in the file where it was raised; the original is its ``__cause__``."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        super().__init__(f"{file}, line {line}: {message}" if line else f"{file}: {message}")
        self.file, self.line = file, line


class DagNotFound(EvenflowError):
    """A DAG id, file, run or task that was named does not exist."""


class ParamError(EvenflowError):
    """A run parameter is missing, unknown, or does not fit its schema."""


# -- for tasks to raise ------------------------------------------------------------------------------------------------


class TaskSkipped(EvenflowError):
    """Raise inside a task to end it as ``skipped``."""


class TaskFailedForGood(EvenflowError):
    """Raise inside a task to end it as ``failed`` whatever tries are left."""


class SensorTimeout(TaskFailedForGood):
    """A sensor's timeout is over, and its condition does not hold."""


class BadBranch(EvenflowError):
    """A branch chose something that is not directly downstream of it."""


class TaskRescheduled(EvenflowError):
    """Raise inside a task to give its slot back and be started again after ``delay``, in the same try.

    ``delay`` is a timedelta, seconds, or the datetime (with a time zone) when to begin again.
    """

    def __init__(self, delay: timedelta | float | datetime) -> None:
        if isinstance(delay, datetime):
            delay = delay - datetime.now(UTC)
        self.delay_s = max(0.0, delay.total_seconds() if isinstance(delay, timedelta) else float(delay))
        super().__init__(f"The task is to be started again in {self.delay_s:g} s.")


class TaskDeferred(BaseException):
    """Raised inside a task to wait without a process: ``trigger`` runs in a triggerer, and in the same try ``method_name`` of the
    operator is called with its event, as ``method(context, event=..., **kwargs)``.

    ``timeout`` is a timedelta or seconds, after which the try fails with :class:`TaskDeferralTimeout`. As in Airflow this is not an
    Exception, so no ``except Exception`` on its way catches it.
    """

    def __init__(
        self,
        *,
        trigger: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | float | None = None,
        queue: str | None = None,
    ) -> None:
        super().__init__(f"The task waits for {type(trigger).__name__} and goes on with {method_name}().")
        self.trigger, self.method_name, self.kwargs = trigger, method_name, kwargs
        self.timeout, self.queue = timeout, queue


class TaskDeferralTimeout(EvenflowError):
    """The event that a deferred task waits for did not happen within the task's timeout."""


class TriggerFailed(EvenflowError):
    """The trigger of a deferred task failed, again and again."""


class TriggerEnded(EvenflowError):
    """A trigger ended without an event that its task could get."""


class BadDeferral(EvenflowError):
    """A task defers in a way that cannot be resumed."""


class LookRefused(EvenflowError):
    """A sensor or trigger looks at something that repeated looks cannot change: a wrong login, a missing table."""


class LookUnanswered(EvenflowError):
    """The system that a sensor or trigger looks at does not answer, or is busy. A trigger tolerates that for some minutes."""


class TemplateError(EvenflowError):
    """A template field of a task cannot be rendered: an undefined name, a syntax error, a missing file."""


class NoContext(EvenflowError):
    """The context of a task was requested where no task is running."""


class CommandFailed(EvenflowError):
    """A shell command of a task ended with an exit code other than 0; a negative one is the signal that ended it."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NotificationFailed(EvenflowError):
    """A mail or webhook was not delivered."""


class IsolatedTaskFailed(EvenflowError):
    """A function for another Python cannot be brought there, has raised, or its environment cannot be made."""


class DagTestFailed(EvenflowError):
    """A run of ``dag.test()`` ended as ``failed``."""


class XComError(EvenflowError):
    """A task's result or argument cannot be stored or read."""


class XComTooLarge(XComError):
    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} is {size:,} bytes as JSON, above the limit of {limit:,}. Write it to storage and return its path or URL."
        )


# -- the state machine -------------------------------------------------------------------------------------------------


class IllegalMove(EvenflowError):
    def __init__(self, what: str, state: str, event: str, legal: Sequence[str]) -> None:
        super().__init__(f"A {what} in state {state!r} cannot take {event!r}; legal there: {', '.join(legal) or 'nothing'}.")


class StaleEpoch(EvenflowError):
    """A try that is no longer current tried to write something; the write was refused and changed nothing."""


class LostRace(EvenflowError):
    """A guarded write hit fewer rows than it named although the lock was held: a bug, and the transaction is rolled back."""


class NotActing(EvenflowError):
    """An autoscaler wanted to change something, and another one acts by now."""


class ExecutorUnavailable(EvenflowError):
    """A broker or a cluster takes nothing now, and its content cannot be seen."""


# -- infrastructure ----------------------------------------------------------------------------------------------------


class SettingsError(EvenflowError):
    """A setting is missing or makes no sense."""


class WrongTimezone(SettingsError):
    """The default time zone of the database is not the one that this host wants, or is not known here."""


class BadValue(EvenflowError):
    """A given value is not one that this pool or setting of the database may have."""


class DatabaseUnavailable(EvenflowError):
    """PostgreSQL cannot be reached."""


class DatabaseTooOld(EvenflowError):
    def __init__(self, found: str, needed: int) -> None:
        super().__init__(
            f"PostgreSQL {found} is too old: Evenflow needs {needed} or newer. Upgrade the server, or unset "
            "EVENFLOW_DATABASE_URL to use the embedded one."
        )


class DatabaseNotMigrated(EvenflowError):
    def __init__(self, found: int, needed: int) -> None:
        super().__init__(f"The database is at schema version {found}, this Evenflow needs {needed}. Type: evenflow db migrate")


class DatabaseOfDevelopment(EvenflowError):
    def __init__(self) -> None:
        super().__init__(
            "The database was made by another development version of Evenflow, whose tables differ; between those nothing is "
            "migrated. Begin with an empty one: name another with EVENFLOW_DATABASE_URL, or, when it is the embedded one, stop "
            "Evenflow and delete the folder postgres in its home (.evenflow, or what EVENFLOW_HOME names)."
        )


class DatabaseTooNew(EvenflowError):
    def __init__(self, found: int, *, needed: int, known: int) -> None:
        super().__init__(
            f"The database is at schema version {found}, on which a program must know version {needed}; this Evenflow knows "
            f"{known}. Upgrade Evenflow on this host."
        )


class ContractNeeded(EvenflowError):
    def __init__(self, step: str, works_from: int) -> None:
        super().__init__(
            f"This Evenflow needs the migration {step}, which programs that do not know schema {works_from} do not survive. "
            "Stop or upgrade the older services, then type: evenflow db migrate --contract"
        )


class OldServicesRun(EvenflowError):
    def __init__(self, step: str, services: Sequence[str]) -> None:
        super().__init__(
            f"The migration {step} takes away what older services use that still run: {'; '.join(services)}. "
            "Upgrade or stop them, then type again: evenflow db migrate --contract"
        )


class MigrationBlocked(EvenflowError):
    def __init__(self, step: str, transactions: Sequence[str]) -> None:
        super().__init__(
            f"The migration {step} did not get its locks, and changed nothing. The oldest transactions: "
            f"{', '.join(transactions) or 'none any more'}. Wait for them, or end them (select pg_terminate_backend(pid)), then "
            "type again: evenflow db migrate"
        )


class DumpError(EvenflowError):
    """The database cannot be dumped to a file, or restored from one."""


class DatabaseSetBack(EvenflowError):
    """The database was set back while a service ran on it: restored from a backup, or taken over by a standby that lagged."""


class OptionsDropped(EvenflowError):
    """A connection to the database does not have the settings that it asked for."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"Sessions of {place} do not get the options that Evenflow sends: they bound how long a program that hangs keeps its "
            "locks. A connection pooler drops them (PgBouncer: options in ignore_startup_parameters). Let EVENFLOW_DATABASE_URL "
            "name the server itself."
        )


class AlreadyRunning(EvenflowError):
    """Another ``evenflow up`` runs on this home, or another program has the port."""


class StartingOrStopping(AlreadyRunning):
    """Another ``evenflow up`` or ``run`` has the home, but cannot be used: it has not started yet, or is about to end."""


class ServiceFailed(EvenflowError):
    """A service that ``evenflow up`` started ended before it was ready."""


class ApiUnavailable(EvenflowError):
    """The Evenflow API cannot be reached."""


class ApiNotTrusted(ApiUnavailable):
    """The API answers, and the two sides do not agree on TLS: a certificate is from an unknown authority, or not for that host."""


class ApiRefused(EvenflowError):
    """The API answered with an error; the message is its own. ``code`` is what kind of error that is, where REST says so."""

    def __init__(self, status: int, message: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status, self.code = status, code


class LogsNotStored(ApiRefused):
    """The API cannot store logs: its disk is full, or it may not write. ``offsets``: how far each of the sent ones is stored."""

    def __init__(self, status: int, message: str, offsets: Sequence[int]) -> None:
        super().__init__(status, message)
        self.offsets = offsets


class ClusterUnavailable(EvenflowError):
    """The API of a Kubernetes cluster cannot be reached, or answers no request."""


class ClusterRefused(EvenflowError):
    """The API of a Kubernetes cluster refused a request, in its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class CodeArchiveError(EvenflowError):
    """An archive of DAG code is damaged, unsafe, too large, or not the one that its name says."""


class NotAllowed(EvenflowError):
    """A token does not allow the request."""


class KeyNotKnownYet(EvenflowError):
    """A token was signed with a newer key than this API process has read from the database."""


class ExtraMissing(SettingsError):
    """A setting or a DAG needs a package that ``pip install evenflow`` alone does not install."""

    def __init__(self, what: str, extra: str, error: ImportError) -> None:
        missing = (
            f"the package {error.name.partition('.')[0]}, which is not installed" if error.name else f"more packages ({error})"
        )
        super().__init__(f"{what} needs {missing}. Type: pip install 'evenflow[{extra}]'")


class JavaNotFound(EvenflowError):
    """Spark needs a Java runtime, and no suitable one was found."""


class SparkNotInstalled(EvenflowError):
    """pyspark is not installed in this environment."""


class SparkUnavailable(EvenflowError):
    """The Spark master or Spark Connect server of a connection does not answer, or this process cannot have a session."""


class SparkServerLost(SparkUnavailable):
    """The Spark Connect server of a try has ended meanwhile. Like the loss of a worker it uses up no try."""


class SparkMasterAway(SparkUnavailable):
    """Nothing answers where a Spark master should; it may have taken the request before."""


class PodFailed(EvenflowError):
    """The pod of a task did not end well: the reason of its container or its cluster, and the end of its log."""


class PodFailedForGood(PodFailed, TaskFailedForGood):
    """The cluster refuses the pod, and would each time: its spec is wrong, or the account may not create it there."""


class SparkFailed(EvenflowError):
    """A Spark application or query failed. The reason comes first: the class of the innermost cause, its text, and the executor."""


class SparkFailedForGood(SparkFailed, TaskFailedForGood):
    """It would fail in the same way in every try: an analysis error, another version of Python on the executors."""


class ExpectationFailed(EvenflowError):
    """Data are not as a task expects them. Another try may find that they have arrived."""


class SparkEndUnknown(SparkFailed):
    """A Spark application is over, and nothing proves that it succeeded."""


class ConnectionNotFound(EvenflowError):
    """A connection that a task names is not defined."""


class VariableNotFound(EvenflowError):
    """A variable that a task names is not defined, or is not the JSON that it should be."""


class SecretStoreError(EvenflowError):
    """A secret store cannot be asked, or has something that is not a secret. The message names the store, and what to do."""


class LogStorageError(EvenflowError):
    """Logs of tasks cannot be read or deleted in their storage."""


class SecretsError(EvenflowError):
    """A stored connection or variable cannot be sealed or opened with the keys of this API."""
