"""Translates an error for the wire: a status, a code for programs, and the error's own words for people."""

from __future__ import annotations

from typing import NamedTuple

from evenflow.api import observations as seen
from evenflow.errors import (
    BadValue,
    CodeArchiveError,
    DagError,
    DagNotFound,
    EvenflowError,
    KeyNotKnownYet,
    LogStorageError,
    NotAllowed,
    ParamError,
    SecretsError,
    SecretStoreError,
    StaleEpoch,
    XComError,
    XComTooLarge,
)
from evenflow.store.db.failures import is_bad_value, is_outage
from evenflow.store.serving.events import ORIGIN, Origin
from evenflow.telemetry.observing import observe

REASON = 300  # characters of a refusal in an event


UNREAD = frozenset(
    {401, 403, 411, 413, 429}
)  # statuses of requests whose body was not read: the connection ends, because reading the body is the alternative


class HttpRefusal(NamedTuple):
    status: int
    code: str
    detail: str
    hint: str = ""
    retry_after_s: int = 0  # until it is worth to ask again; 0: unknown

    @property
    def message(self) -> str:
        """All that there is to be said, for people."""
        return f"{self.detail} {self.hint}".rstrip()


class Refused(EvenflowError):
    """A request that cannot be served, with a status, and a code of ``contracts.rest.problems`` that says why."""

    def __init__(self, status: int, code: str, detail: str, *, hint: str = "", retry_after_s: int = 0) -> None:
        super().__init__(detail, hint=hint)
        self.status, self.code, self.retry_after_s = status, code, retry_after_s


class CannotStore(Refused):
    """Not all logs could be written. ``offsets``: how far each of them is stored."""

    def __init__(self, reason: str, offsets: list[int]) -> None:
        super().__init__(507, "cannot_store", f"Logs of tasks cannot be stored: {reason}")
        self.offsets = offsets


class Unauthorized(NotAllowed):
    """A request came without a token."""


class Forbidden(NotAllowed):
    """A token is good, but does not allow this."""


def too_large(what: str, limit: int) -> Refused:
    return Refused(413, "too_large", f"{what} is above the limit of {limit:,} bytes.")


def no_dag(dag_id: str, hint: str = "") -> DagNotFound:
    return DagNotFound(f"There is no DAG {dag_id!r}.", hint=f"{hint} To see all, type: evenflow dags list")


def no_pool(name: str) -> Refused:
    return Refused(404, "not_found", f"There is no pool {name!r}.", hint="To see all, type: evenflow pools list")


_KNOWN: tuple[tuple[type[EvenflowError], int, str], ...] = (
    (Forbidden, 403, "forbidden"),
    (NotAllowed, 401, "unauthorized"),
    (KeyNotKnownYet, 503, "key_not_known_yet"),
    (StaleEpoch, 409, "stale_epoch"),
    (XComTooLarge, 413, "too_large"),
    (XComError, 422, "bad_value"),
    (SecretsError, 409, "wrong_key"),
    (SecretStoreError, 424, "secret_store"),  # final: the caller learns at once what is wrong, and in which store
    (LogStorageError, 507, "log_storage"),  # another server may have it, so the caller does not ask here again
    (CodeArchiveError, 422, "bad_archive"),
    (DagNotFound, 404, "not_found"),
    (BadValue, 422, "bad_value"),
    (ParamError, 422, "bad_params"),
    (DagError, 422, "bad_dag"),
)


def refusal(error: Exception) -> HttpRefusal:
    """Returns the answer to a request that raised ``error``. Errors that the caller has not caused are logged with their
    traceback.
    """
    answer, origin = _answer(error), ORIGIN.get()
    if origin is not None:
        origin.refused, origin.status = answer.message[:REASON], answer.status
    return answer


def request_id() -> str:
    """Returns the id of the request that is served."""
    return (ORIGIN.get() or Origin()).request_id


def _answer(error: Exception) -> HttpRefusal:
    if isinstance(error, Refused):
        return HttpRefusal(error.status, error.code, error.detail, error.hint, error.retry_after_s)
    for kind, status, code in _KNOWN:
        if isinstance(error, kind):
            return HttpRefusal(status, code, error.detail, error.hint)
    if is_bad_value(error):
        return HttpRefusal(422, "bad_value", f"The database cannot store a value of the request: {error}")
    if is_outage(error):
        observe(seen.database_silent(str(error)))
        return HttpRefusal(
            503, "database_unavailable", "The database does not answer.", "Try again; evenflow doctor looks for the cause."
        )
    observe(seen.request_failed(request_id(), error))
    return HttpRefusal(500, "internal", "The API failed at this request.", "Its log says why, under the id of the request.")
