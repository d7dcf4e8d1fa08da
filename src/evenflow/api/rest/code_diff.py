"""The code of a version, file by file, and how that of two versions differs, as unified diffs."""

from __future__ import annotations

import difflib

from evenflow.api import limits
from evenflow.contracts.rest.dags import CodeFile, FileChange
from evenflow.wire.code import read_archive


def diff_code(before: bytes, after: bytes) -> list[FileChange]:
    """Both are archives."""
    old, new = read_archive(before), read_archive(after)
    return [
        FileChange(file=file, kind=_kind(old, new, file), text=_unified(file, old.get(file, b""), new.get(file, b"")))
        for file in sorted(old.keys() | new.keys())
        if old.get(file) != new.get(file)
    ]


def show_code(archive: bytes, first: str) -> list[CodeFile]:
    """The file ``first``, then the others by name."""
    files = read_archive(archive)
    return [CodeFile(file=file, text=_text(files[file])) for file in sorted(files, key=lambda file: (file != first, file))]


def _text(data: bytes) -> str | None:
    if len(data) > limits.DIFFED_FILE:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _kind(old: dict[str, bytes], new: dict[str, bytes], file: str) -> str:
    if file not in old:
        return "added"
    return "changed" if file in new else "removed"


def _unified(file: str, before: bytes, after: bytes) -> str | None:
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return None
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{file}", f"b/{file}", lineterm=""))
