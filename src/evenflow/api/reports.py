"""Checks the reports of workers one by one, and stores them together with those of other workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from evenflow.api import limits
from evenflow.api.deferrals import sealed_deferral
from evenflow.api.inbox import Inbox
from evenflow.api.refusals import too_large
from evenflow.api.tokens import Tokens, TryToken
from evenflow.api.vault import Vault
from evenflow.core.ending import AssetChange, Ending, told
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import (
    INT32_MAX,
    MAX_ASSET_EVENTS,
    MAX_ASSET_EXTRA_BYTES,
    MAX_ASSET_NAME,
    MAX_INLINE_XCOM,
    MAX_NAME_CHARS,
    MAX_PATH_CHARS,
    MAX_REASON,
    MAX_TASKS,
    MAX_URI_CHARS,
    MAX_WAIT_S,
    MAX_XCOM_BYTES,
)
from evenflow.errors import EvenflowError, KeyNotKnownYet, NotAllowed, XComError, XComTooLarge
from evenflow.killpoints import KillPoint, reached
from evenflow.wire.messages import Report, ReportsAnswer, StoredObject

_encode = msgspec.json.Encoder().encode


class _ReportRow(msgspec.Struct, omit_defaults=True):
    run_key: int
    task_index: int
    map_index: int
    epoch: int
    kind: str
    age_s: float
    payload: dict[str, Any] | None = None  # of an end: what differs from the defaults of an Ending
    result: str | None = None
    secret: bool = False
    object: str | None = None
    size: int | None = None
    length: int | None = None


async def store(inbox: Inbox, tokens: Tokens, vault: Vault, reports: Sequence[Report]) -> ReportsAnswer:
    """Stores all reports that can be stored, and says why the others cannot."""
    rows: list[bytes] = []
    positions: list[int] = []
    refused: dict[int, str] = {}
    for position, report in enumerate(reports):
        try:
            rows.append(_encode(_checked(tokens, vault, report)))
            positions.append(position)
        except KeyNotKnownYet:  # for the whole request: the worker sends it again in a moment, and no report is refused for good
            raise
        except EvenflowError as error:
            refused[position] = str(error)
    if rows:
        reached(KillPoint.REPORTS_RECEIVED)
        for row, failure in (await inbox.put(rows)).items():
            if not isinstance(failure, XComError):  # for anything but a result that the database cannot hold
                raise failure
            refused[positions[row]] = str(failure)
    reached(KillPoint.REPORTS_STORED)
    refused_at = sorted(refused)
    return ReportsAnswer(
        accepted=len(reports) - len(refused), refused=[refused[position] for position in refused_at], refused_at=refused_at
    )


def _checked(tokens: Tokens, vault: Vault, report: Report) -> _ReportRow:
    token = tokens.verify(report.token)
    if not isinstance(token, TryToken):
        raise NotAllowed("A report needs the token of its try.")
    row = _ReportRow(
        run_key=token.run_key,
        task_index=token.task_index,
        map_index=token.map_index,
        epoch=token.epoch,
        kind="started" if report.ending is None else "exit",
        age_s=min(max(report.age_s, 0.0), limits.REPORT_AGE),
    )
    if report.ending is not None:
        row.payload = told(_bounded(vault, token.run_key, report.ending))
        if report.ending.result is not None:
            _add_result(row, report, report.ending.result)
    return row


def _bounded(vault: Vault, run_key: int, ending: Ending) -> Ending:
    """Returns an ending that the scheduler can read and the database can hold. Raises an :class:`EvenflowError`."""
    if (ending.outcome == "deferred") != (ending.defer is not None):
        raise XComError("A try that ends as 'deferred', and no other, needs to say what it waits for.")
    if len(ending.produced) > MAX_ASSET_EVENTS:
        raise too_large(f"The list of {len(ending.produced):,} asset events", MAX_ASSET_EVENTS)
    for change in ending.produced:
        _check_event(change)
    if len(ending.skip) > MAX_TASKS:
        raise too_large(f"The list of {len(ending.skip):,} tasks to skip", MAX_TASKS)
    return replace(
        ending,
        reason=None if ending.reason is None else _plain(ending.reason)[:MAX_REASON],
        error_types=[_plain(name)[:MAX_PATH_CHARS] for name in ending.error_types[: limits.ERROR_TYPES]],
        result=None,
        length=None,
        ran_s=None if ending.ran_s is None else min(max(ending.ran_s, 0.0), limits.REPORT_AGE),
        delay_s=None if ending.delay_s is None else min(max(ending.delay_s, 0.0), MAX_WAIT_S),
        defer=None if ending.defer is None else sealed_deferral(vault, run_key, ending.defer),
    )


def _add_result(row: _ReportRow, report: Report, result: bytes) -> None:
    if len(result) > MAX_INLINE_XCOM:
        raise XComTooLarge("The result", len(result), MAX_INLINE_XCOM)
    row.result = json_text(result, "The result")
    row.secret = report.secret
    if (stored := checked_object(report.stored, row.epoch, "The result")) is not None:
        row.object, row.size, row.length = stored
    if report.ending is not None and report.ending.length is not None:
        row.length = checked_length(report.ending.length, "The result")


def _check_event(change: AssetChange) -> None:
    """Limits an event's size, because consumers and pages read many events at once. Raises an :class:`EvenflowError`."""
    if len(change.asset.encode()) > MAX_ASSET_NAME:
        raise too_large(f"The name of the asset {change.asset!r:.80}", MAX_ASSET_NAME)
    if len(change.uri) > MAX_URI_CHARS:
        raise too_large(f"The URI of the asset {change.asset!r:.80}", MAX_URI_CHARS)
    if change.partition is not None and (len(change.partition) > MAX_NAME_CHARS or not change.partition.isprintable()):
        raise XComError(f"The partition {change.partition!r:.80} of the asset {change.asset!r:.80} is too long, or not printable.")
    what = f"The extra of the event of asset {change.asset!r:.80}"
    if (flaw := flaw_of(change.extra)) is not None:
        raise XComError(f"{what} {flaw}.")
    if len(msgspec.json.encode(change.extra)) > MAX_ASSET_EXTRA_BYTES:
        raise too_large(what, MAX_ASSET_EXTRA_BYTES)


def checked_length(length: int | None, what: str) -> int | None:
    """Raises :class:`XComError` for an impossible number of elements."""
    if length is not None and not 0 <= length <= INT32_MAX:
        raise XComError(f"{what} cannot have {length:,} elements.")
    return length


def checked_object(stored: StoredObject | None, epoch: int, what: str) -> tuple[str, int, int | None] | None:
    """Returns (name, bytes, elements). A try refers only to its own objects, whatever its worker says: their names begin with its
    epoch.

    Raises :class:`XComError` or :class:`XComTooLarge`.
    """
    if stored is None:
        return None
    if not re.fullmatch(rf"{epoch}-[0-9a-f]{{16}}\.json", stored.name):
        raise XComError(f"{what} cannot lie in the object {stored.name!r:.100}: it is not one of this try.")
    if not 0 <= stored.size <= MAX_XCOM_BYTES:
        raise XComTooLarge(what, stored.size, MAX_XCOM_BYTES)
    return stored.name, stored.size, stored.length


def json_text(value: bytes, what: str) -> str:
    """Returns ``value`` as text. The database checks whether it is JSON."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise XComError(f"{what} is not JSON: it is not UTF-8.") from None


def _plain(text: str) -> str:
    return text.replace("\0", "")  # the database's text cannot hold it
