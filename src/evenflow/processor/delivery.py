"""What loading a DAG file gave, on its way to the control plane: the code first where that is not known yet, then the DAGs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable, CodeArchiveError
from evenflow.process.patience import Patience
from evenflow.processor import limits
from evenflow.processor.parsing import Parsed
from evenflow.wire.code import archive_hash, pack
from evenflow.wire.messages import LeasedFile, ParsedAnswer, ParsedFile

T = TypeVar("T")

log = structlog.get_logger(__name__)


class DeliveryApi(Protocol):
    async def file_parsed(self, message: ParsedFile) -> ParsedAnswer: ...

    async def put_code(self, code_hash: str, archive: bytes) -> None: ...


async def deliver(api: DeliveryApi, leased: LeasedFile, parsed: Parsed, root: Path, revision: str | None) -> None:
    """However long the API is away; what it refuses becomes the file's error. Raises :class:`ApiRefused` if not even that."""
    message = ParsedFile(
        bundle=leased.bundle,
        file=leased.file,
        fingerprint=leased.fingerprint,
        revision=revision,
        seconds=parsed.seconds,
        specs=parsed.specs,
        error=parsed.error,
        error_line=parsed.error_line,
        warnings=parsed.warnings,
    )
    try:
        await _deliver(api, message, root, parsed.files)
    except (ApiRefused, CodeArchiveError, OSError) as error:
        if isinstance(error, ApiRefused) and (error.status >= 500 or error.status in (401, 403)):
            raise
        message.specs, message.code_hash, message.code, message.error = (
            [],
            None,
            None,
            f"{leased.file} cannot be delivered: {error}",
        )
        await _insist(lambda: api.file_parsed(message))


async def _deliver(api: DeliveryApi, message: ParsedFile, root: Path, files: list[str]) -> None:
    archive = b""
    if message.specs:
        message.code_hash, archive = await asyncio.to_thread(_packed, root, files)
        message.code = archive if len(archive) <= limits.INLINE_CODE else None
    answer = await _insist(lambda: api.file_parsed(message))
    if answer.need_code and message.code_hash is not None:
        code_hash = message.code_hash
        await _insist(lambda: api.put_code(code_hash, archive))
        answer = await _insist(lambda: api.file_parsed(message))
    for error in answer.errors:
        log.warning("DAG refused", file=message.file, reason=error)


def _packed(root: Path, files: list[str]) -> tuple[str, bytes]:
    """The name of the archive of these files, and the archive.

    The names come from a process that runs authors' code: none may make this one, which can read more, read something else.
    """
    for file in files:
        if not (root / file).resolve().is_relative_to(root):
            raise CodeArchiveError(f"{file!r} is a link to what is not below {root}. Put the file itself there.")
    code = {file: (root / file).read_bytes() for file in files}
    return archive_hash(code), pack(code)


async def _insist(request: Callable[[], Awaitable[T]]) -> T:
    patience = Patience()
    while True:
        try:
            return await request()
        except ApiUnavailable as error:
            log.warning("delivery waits for the API", reason=str(error))
            await patience.wait()
