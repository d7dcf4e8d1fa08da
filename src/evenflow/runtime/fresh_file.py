"""Waits until DAG files have been read in their present state, and not in the one before the last change."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from evenflow.errors import DagError
from evenflow.processor.folder import DagFolder
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving.files import Parse, list_parsed, read_parse, request_parse

SEEN_WITHIN_S = 25.0  # a processor scans its folder every 10 s, even if the kernel reports no change
PARSED_WITHIN_S = 90.0  # longer than a processor lets a file take, so that its own error comes first
POLL_S = 0.05


async def parse_anew(conn: AsyncConn, bundle: str, folder: Path, file: str) -> None:
    """Returns when a processor of ``folder`` has read ``file`` (its path below the folder) after this call began.

    Raises :class:`DagError` with the file's error, or when no processor reads it in time.
    """
    try:
        async with asyncio.timeout(PARSED_WITHIN_S) as limit:
            parse = await _newly_parsed(conn, bundle, folder, file, limit)
    except TimeoutError:
        raise DagError(
            f"No processor has read {folder / file}. Is one running (evenflow status)? "
            "It reads files that contain both words, 'evenflow' and 'dag', unless they are hidden or listed in .evenflowignore."
        ) from None
    if parse.error is not None:
        raise DagError(f"{folder / file} cannot be run:\n{parse.error.strip()}")


async def folder_parsed(conn: AsyncConn, bundle: str, folder: Path) -> None:
    """Returns when processors have read every DAG file that is in ``folder`` now, or after ``SEEN_WITHIN_S``."""
    files = (await asyncio.to_thread(DagFolder(folder).scan)).files.keys()
    deadline = asyncio.get_running_loop().time() + SEEN_WITHIN_S
    while True:
        if files <= await list_parsed(conn, bundle) or asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(POLL_S)


async def _newly_parsed(conn: AsyncConn, bundle: str, folder: Path, file: str, limit: asyncio.Timeout) -> Parse:
    while True:
        before = await request_parse(conn, bundle, file)
        _have_folder_looked_at(folder / file)
        if before is None:
            limit.reschedule(asyncio.get_running_loop().time() + SEEN_WITHIN_S)
        if before is None or not before.is_busy:
            return await _parsed_after(conn, bundle, file, before)
        await asyncio.sleep(POLL_S)  # a load that runs now may have begun before the last change


async def _parsed_after(conn: AsyncConn, bundle: str, file: str, before: Parse | None) -> Parse:
    was_parsed_at = before.parsed_at if before is not None else None
    while True:
        now = await read_parse(conn, bundle, file)
        if now is not None and now.parsed_at is not None and now.parsed_at != was_parsed_at:
            return now
        await asyncio.sleep(POLL_S)


def _have_folder_looked_at(file: Path) -> None:
    """Has the kernel report a change in the folder to the processor; if it cannot, the next regular scan comes."""
    with contextlib.suppress(OSError):
        os.utime(file.parent)
