"""What workers report, checked one by one and stored together."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from evenflow.api import limits
from evenflow.api.deferrals import SealedDefer, sealed_deferral
from evenflow.api.refusals import too_large
from evenflow.api.tokens import Tokens, TryToken
from evenflow.api.vault import Vault
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import (
    MAX_ASSET_EVENTS,
    MAX_ASSET_EXTRA_BYTES,
    MAX_ASSET_NAME,
    MAX_INLINE_XCOM,
    MAX_NAME_CHARS,
    MAX_REASON,
    MAX_TASKS,
    MAX_URI_CHARS,
    MAX_XCOM_BYTES,
)
from evenflow.errors import EvenflowError, KeyNotKnownYet, NotAllowed, XComError, XComTooLarge
from evenflow.killpoints import KillPoint, reached
from evenflow.store import dispatch
from evenflow.store.connect import AsyncPool
from evenflow.wire.messages import AssetChange, Ending, Report, ReportsAnswer, StoredObject


class ExitPayload(Ending):
    """``report.payload`` of an exit: what the scheduler decides from, and what people read. Absent when null."""

    exit_code: int | None = None
    ran_s: float | None = None
    defer: SealedDefer | None = None


class _Row(msgspec.Struct, omit_defaults=True):
    run_key: int
    task_index: int
    map_index: int
    epoch: int
    kind: str
    age_s: float
    payload: ExitPayload | None = None
    result: str | None = None
    secret: bool = False
    object: str | None = None
    size: int | None = None
    length: int | None = None


async def store(pool: AsyncPool, tokens: Tokens, vault: Vault, reports: Sequence[Report]) -> ReportsAnswer:
    """Stores all reports that can be stored, in one transaction, and says of each other one why it cannot."""
    rows: list[tuple[int, _Row]] = []
    refused: dict[int, str] = {}
    for position, report in enumerate(reports):
        try:
            rows.append((position, _checked(tokens, vault, report)))
        except KeyNotKnownYet:  # of all of them: who reports comes again in a moment, and nothing is refused for good
            raise
        except EvenflowError as error:
            refused[position] = str(error)
    if rows:
        reached(KillPoint.REPORTS_RECEIVED)
        async with pool.connection() as conn:
            try:
                await dispatch.insert_reports(conn, _json([row for _, row in rows]))
            except XComError:  # a result that the database cannot hold: find out whose
                refused.update(await _insert_singly(conn, rows))
    reached(KillPoint.REPORTS_STORED)
    positions = sorted(refused)
    return ReportsAnswer(
        accepted=len(reports) - len(refused), refused=[refused[position] for position in positions], refused_at=positions
    )


async def _insert_singly(conn: dispatch.Conn, rows: Sequence[tuple[int, _Row]]) -> dict[int, str]:
    refused = {}
    for position, row in rows:
        try:
            await dispatch.insert_reports(conn, _json([row]))
        except XComError as error:
            refused[position] = str(error)
    return refused


def _json(rows: Sequence[_Row]) -> str:
    return msgspec.json.encode(rows).decode()


def _checked(tokens: Tokens, vault: Vault, report: Report) -> _Row:
    token = tokens.verify(report.token)
    if not isinstance(token, TryToken):
        raise NotAllowed("A report needs the token of its try.")
    row = _Row(
        run_key=token.run_key,
        task_index=token.task_index,
        map_index=token.map_index,
        epoch=token.epoch,
        kind=report.kind,
        age_s=min(max(report.age_s, 0.0), limits.REPORT_AGE),
    )
    if report.kind == "exit":
        if report.outcome is None or (report.outcome == "deferred") != (report.defer is not None):
            raise XComError(
                "An exit report needs an outcome; the outcome 'deferred', and no other, needs to say what the try waits for."
            )
        row.payload = ExitPayload(
            outcome=report.outcome,
            exit_code=report.exit_code,
            reason=None if report.reason is None else _plain(report.reason)[:MAX_REASON],
            error_types=[_plain(name)[:MAX_NAME_CHARS] for name in report.error_types[: limits.ERROR_TYPES]],
            ran_s=None if report.ran_s is None else min(max(report.ran_s, 0.0), limits.REPORT_AGE),
            delay_s=None if report.delay_s is None else min(max(report.delay_s, 0.0), limits.RESCHEDULE),
            produced=report.produced,
            skip=report.skip,
            defer=None if report.defer is None else sealed_deferral(vault, token.run_key, report.defer),
        )
        if len(report.produced) > MAX_ASSET_EVENTS:
            raise too_large(f"The list of {len(report.produced):,} asset events", MAX_ASSET_EVENTS)
        for change in report.produced:
            _check_event(change)
        if len(report.skip) > MAX_TASKS:
            raise too_large(f"The list of {len(report.skip):,} tasks to skip", MAX_TASKS)
        if report.result is not None:
            if len(report.result) > MAX_INLINE_XCOM:
                raise XComTooLarge("The result", len(report.result), MAX_INLINE_XCOM)
            row.result = json_text(report.result, "The result")
            row.secret = report.secret
            if (stored := checked_object(report.stored, token.epoch, "The result")) is not None:
                row.object, row.size, row.length = stored
    return row


def _check_event(change: AssetChange) -> None:
    """Many of them are read at once, by who waits for the asset and by who looks at it. Raises an :class:`EvenflowError`."""
    if len(change.asset.encode()) > MAX_ASSET_NAME:
        raise too_large(f"The name of the asset {change.asset!r:.80}", MAX_ASSET_NAME)
    if len(change.uri) > MAX_URI_CHARS:
        raise too_large(f"The URI of the asset {change.asset!r:.80}", MAX_URI_CHARS)
    what = f"The extra of the event of asset {change.asset!r:.80}"
    if (flaw := flaw_of(change.extra)) is not None:
        raise XComError(f"{what} {flaw}.")
    if len(msgspec.json.encode(change.extra)) > MAX_ASSET_EXTRA_BYTES:
        raise too_large(what, MAX_ASSET_EXTRA_BYTES)


def checked_object(stored: StoredObject | None, epoch: int, what: str) -> tuple[str, int, int | None] | None:
    """(name, bytes, elements). A try refers to its own objects only, whatever its worker says: their names begin with its epoch.

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
    """``value`` as text. Whether it is JSON is for the database to say."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise XComError(f"{what} is not JSON: it is not UTF-8.") from None


def _plain(text: str) -> str:
    return text.replace("\0", "")  # which the database's text cannot hold
