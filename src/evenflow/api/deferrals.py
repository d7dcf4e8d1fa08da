"""Seals what a deferred try and its trigger say before the database stores it, and opens it when it is read.

Arguments of triggers are often addresses and tokens, so the database and its readers see only ciphertext.
"""

from __future__ import annotations

import base64
from typing import Any, TypedDict

import msgspec

from evenflow.api.refusals import too_large
from evenflow.api.vault import Vault
from evenflow.core.deferral import Purpose, Resumed
from evenflow.core.ending import Defer, told
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import MAX_DEFERRED_BYTES, MAX_KEPT_DEPTH, MAX_NAME_CHARS, MAX_PATH_CHARS, MAX_WAIT_S
from evenflow.core.model import DEFAULT_QUEUE
from evenflow.core.people.approvals import PEOPLE, ApprovalQuestion
from evenflow.errors import SecretsError, XComError
from evenflow.store.serving.dispatch import ClaimedResume
from evenflow.store.serving.sealed import WAITING


class Times(TypedDict):
    """Durations of a resume, in seconds."""

    deferred_s: float
    began_s: float
    spent_s: float


def sealed_deferral(vault: Vault, run_key: int, defer: Defer) -> Defer:
    """Returns ``defer`` with the fields that the scheduler decides by in the clear, and the rest sealed. Raises :class:`XComError`
    and :class:`Refused` for a deferral that makes no sense or is too large, :class:`SecretsError` without a key.
    """
    queue = DEFAULT_QUEUE if defer.queue is None else defer.queue
    named = (
        ("The class path of the trigger", defer.trigger, MAX_PATH_CHARS),
        ("The name of the queue of triggerers", queue, MAX_NAME_CHARS),
    )
    for what, name, most in named:
        if not 1 <= len(name) <= most or not name.isprintable():
            raise XComError(f"{what} has 1 to {most} printable characters, not {name!r:.300}.")
    for what, values in ((f"trigger {defer.trigger}", defer.trigger_kwargs), (f"method {defer.method}", defer.kwargs)):
        text = f"The text of the arguments of {what:.300}"
        check_kept(text, values)
        if len(msgspec.json.encode(values)) > MAX_DEFERRED_BYTES:
            raise too_large(text, MAX_DEFERRED_BYTES)
    if queue == PEOPLE:
        question_of(defer)
    timeout = None if defer.timeout_s is None else min(max(defer.timeout_s, 0.0), MAX_WAIT_S)
    return Defer(trigger=defer.trigger, queue=queue, sealed=sealed_text(vault, run_key, told(defer)), timeout_s=timeout)


def question_of(defer: Defer) -> ApprovalQuestion:
    """Returns the question of a task that waits in the queue of people. Raises :class:`XComError` for anything else."""
    try:
        question = msgspec.json.decode(defer.trigger_kwargs["question"], type=ApprovalQuestion)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise XComError(f"What waits in the queue {PEOPLE} must be a question of approve(...): {error}.") from None
    if (flaw := question.flaw()) is not None:
        raise XComError(f"A question cannot be asked: {flaw}.")
    return question


def check_kept(what: str, value: Any) -> None:
    """Checks a value that answers to claims and beats carry to workers. Raises :class:`XComError`."""
    if (flaw := flaw_of(value, MAX_KEPT_DEPTH)) is not None:
        raise XComError(f"{what} {flaw}.")


def sealed_text(vault: Vault, run_key: int, value: Any) -> str:
    """Returns ``value`` as JSON, sealed for this run, in the form that a report carries."""
    return base64.b64encode(vault.seal(WAITING, str(run_key), msgspec.json.encode(value).decode())).decode()


def opened_text(vault: Vault, run_key: int, sealed: str) -> Any:
    """Returns what :func:`sealed_text` sealed. Raises :class:`SecretsError`."""
    return msgspec.json.decode(vault.open(WAITING, str(run_key), base64.b64decode(sealed)))


def opened_deferral(vault: Vault, run_key: int, what: str, sealed: bytes) -> Defer:
    """Opens a deferral. Raises :class:`SecretsError`, which names ``what``."""
    return msgspec.json.decode(vault.open(WAITING, str(run_key), sealed, what=what), type=Defer)


def resumed(vault: Vault, run_key: int, row: ClaimedResume, what: str, *, counts_waiting: bool) -> Resumed:
    """Returns how the try named ``what`` resumes. If no key opens its seal, it resumes as if its trigger had failed with that
    error.
    """
    times = Times(deferred_s=row.deferred_s, began_s=row.began_s, spent_s=row.began_s if counts_waiting else row.ran_s)
    try:
        defer = opened_deferral(vault, run_key, what, row.sealed)
        event = None if row.event is None else msgspec.json.decode(vault.open(WAITING, str(run_key), row.event, what=what))
    except SecretsError as error:
        return Resumed(purpose=Purpose.FAILED, trigger=row.trigger, method="", reason=str(error), **times)
    return Resumed(
        purpose=Purpose(row.purpose),
        trigger=defer.trigger,
        trigger_kwargs=defer.trigger_kwargs,
        method=defer.method,
        kwargs=defer.kwargs,
        event=event,
        reason=row.reason,
        secrets=defer.secrets,
        **times,
    )
