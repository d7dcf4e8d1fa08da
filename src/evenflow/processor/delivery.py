"""Delivers the result of loading a DAG file to the control plane: the code first if it is not known yet, then the DAGs."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from evenflow.errors import ApiRefused, ApiUnavailable, CodeArchiveError
from evenflow.membership.backoff import ApiSilent, Backoff, Silences
from evenflow.processor import limits
from evenflow.processor import observations as seen
from evenflow.processor.parsing import Parsed
from evenflow.telemetry.observing import observe
from evenflow.wire.code import MAX_UNPACKED_BYTES, archive_hash, checked_path, pack
from evenflow.wire.messages import LeasedFile, ParsedAnswer, ParsedFile

T = TypeVar("T")


class DeliveryApi(Protocol):
    async def file_parsed(self, message: ParsedFile) -> ParsedAnswer: ...

    async def put_code(self, code_hash: str, archive: bytes) -> None: ...


async def deliver(
    api: DeliveryApi,
    leased: LeasedFile,
    parsed: Parsed,
    root: Path,
    revision: str | None,
    *,
    waits: Callable[[], None] = lambda: None,
) -> int:
    """Delivers, however long the API is away, and returns how many of its DAGs are refused; ``waits`` is called at each wait. If
    the API refuses the delivery as a whole, that becomes the file's error. Raises :class:`ApiRefused` if that is refused, too.
    """
    message = ParsedFile(
        bundle=leased.bundle,
        file=leased.file,
        fingerprint=leased.fingerprint,
        revision=revision,
        seconds=parsed.seconds,
        specs=parsed.specs,
        forecasts=parsed.forecasts,
        error=parsed.error,
        error_line=parsed.error_line,
        warnings=parsed.warnings,
        asked=parsed.asked,
    )
    try:
        return await _deliver(api, message, root, parsed.files, waits)
    except (ApiRefused, ApiSilent, CodeArchiveError, OSError) as error:
        if isinstance(error, ApiRefused) and (error.status >= 500 or error.status in (401, 403)):
            raise
        message.specs, message.code_hash, message.code, message.error = (
            [],
            None,
            None,
            f"{leased.file} cannot be delivered: {error}",
        )
        await _insist(lambda: api.file_parsed(message), waits)
        return len(parsed.specs)


async def _deliver(api: DeliveryApi, message: ParsedFile, root: Path, files: list[str], waits: Callable[[], None]) -> int:
    archive = b""
    if message.specs:
        message.code_hash, archive = await asyncio.to_thread(_packed, root, files)
        message.code = archive if len(archive) <= limits.INLINE_CODE else None
    answer = await _insist(lambda: api.file_parsed(message), waits)
    if answer.need_code and message.code_hash is not None:
        code_hash = message.code_hash
        await _insist(lambda: api.put_code(code_hash, archive), waits)
        answer = await _insist(lambda: api.file_parsed(message), waits)
    for error in answer.errors:
        observe(seen.dag_refused(message.file, error))
    return len(answer.errors)


def _packed(root: Path, files: list[str]) -> tuple[str, bytes]:
    """Returns the name of the archive of these files, and the archive.

    The names come from a process that runs authors' code. This process can read more, so a name must not make it read another file.
    """
    code: dict[str, bytes] = {}
    left = MAX_UNPACKED_BYTES
    for file in files:
        if not (root / checked_path(file)).resolve().is_relative_to(root):
            raise CodeArchiveError(f"{file!r} is a link to what is not below {root}. Put the file itself there.")
        code[file] = _content(root / file, file, left)
        left -= len(code[file])
    return archive_hash(code), pack(code)


def _content(path: Path, file: str, at_most: int) -> bytes:
    """Reads a regular file, up to what may travel: opening a pipe waits for its writer, and some devices are endless."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise CodeArchiveError(f"{file!r} is no regular file, so it cannot travel with the code of a DAG.")
        content = opened.read(at_most + 1) if found.st_size <= at_most else None
    if content is None or len(content) > at_most:
        raise CodeArchiveError(f"The files of this DAG, {file!r} among them, are more than {MAX_UNPACKED_BYTES:,} bytes together.")
    return content


async def _insist(request: Callable[[], Awaitable[T]], waits: Callable[[], None]) -> T:
    """Repeats a request until it is answered. Raises :class:`ApiSilent`."""
    backoff, silences = Backoff(), Silences()
    while True:
        try:
            return await request()
        except ApiUnavailable as error:
            silences.count(error)
            observe(seen.delivery_waits(str(error)))
            waits()
            await backoff.wait()
