"""How the code of two versions differs, file by file, as unified diffs."""

from __future__ import annotations

import difflib

from evenflow.api import limits
from evenflow.contracts.rest.dags import FileChange
from evenflow.wire.code import read_archive


def diff_code(before: bytes, after: bytes) -> list[FileChange]:
    """Both are archives."""
    old, new = read_archive(before), read_archive(after)
    return [
        FileChange(file=file, kind=_kind(old, new, file), text=_unified(file, old.get(file, b""), new.get(file, b"")))
        for file in sorted(old.keys() | new.keys())
        if old.get(file) != new.get(file)
    ]


def _kind(old: dict[str, bytes], new: dict[str, bytes], file: str) -> str:
    if file not in old:
        return "added"
    return "changed" if file in new else "removed"


def _unified(file: str, before: bytes, after: bytes) -> str | None:
    if max(len(before), len(after)) > limits.DIFFED_FILE:
        return None
    try:
        old, new = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        return None
    return "\n".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}", lineterm=""))
