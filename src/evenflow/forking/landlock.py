"""Keeps a process and all that it starts out of a folder, by Linux' Landlock (5.13 or newer, no privilege needed).

Landlock knows permissions below folders and no exceptions from them. So to hide one folder, everything beside it and beside each of
its parents is permitted one by one, as these exist at that moment. A file that is made later *directly* in a parent of the hidden
folder cannot be opened from inside. A permission belongs to the identity of a file or folder, not to its name.

A process inside can neither trace outside processes nor read their memory, environment and descriptors, nor (Linux 6.12) signal
them. Root has other ways, so this is for other users only. Its price is ``no_new_privs``: a program inside gains no rights by its
file, above all not sudo and su.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from evenflow.forking import prctl

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_SCOPE_SIGNAL = 1 << 1
_SCOPES_SINCE = 6  # the first version of Landlock with it
_SIZES = {1: 8, 4: 16, 6: 24}  # of the struct for a ruleset, by the first version that has it

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))  # remove and make, of every kind
_REFER, _REFER_SINCE = 1 << 13, 2  # move and link between folders
_TRUNCATE, _TRUNCATE_SINCE = 1 << 14, 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Returns the version of the kernel's Landlock, or 0 if it has none, or it is switched off."""
    return max(0, int(prctl.libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def hide_folder(hidden: Path, *, readable: Iterable[Path], usable: Iterable[Path]) -> None:
    """From now on this process and those that it starts can neither read nor change anything in ``hidden``, except in its folders
    that are ``readable`` or ``usable``. Open files stay open. Raises :class:`OSError`.
    """
    known = version()
    in_files = _READ_FILE | _WRITE_FILE | (_TRUNCATE if known >= _TRUNCATE_SINCE else 0)
    everything = in_files | _CHANGE_FOLDER | (_REFER if known >= _REFER_SINCE else 0)
    scoped = _SCOPE_SIGNAL if known >= _SCOPES_SINCE else 0
    size = max(size for since, size in _SIZES.items() if since <= max(known, 1))
    ruleset = _call(_CREATE_RULESET, ctypes.byref(_Ruleset(everything, 0, scoped)), size, 0)
    try:
        hidden = hidden.resolve()
        for path in (*_beside(hidden), *_inside(hidden, usable)):
            _permit(ruleset, path, everything, in_files)
        for path in _inside(hidden, (*readable, *_of_python())):
            _permit(ruleset, path, _READ_FILE, _READ_FILE)
        prctl.gain_no_privileges()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _beside(hidden: Path) -> Iterator[Path]:
    """Yields everything that is neither in ``hidden`` nor one of its parents."""
    child = hidden
    for folder in hidden.parents:
        with os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.path != str(child))
        child = folder


def _inside(hidden: Path, folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        resolved = folder.resolve()
        if resolved != hidden and resolved.is_relative_to(hidden):
            yield resolved


def _of_python() -> Iterator[Path]:
    """Yields the folders of this interpreter's modules, which may be below the hidden folder."""
    yield from map(Path, (sys.prefix, sys.base_prefix, *filter(None, sys.path)))


def _permit(ruleset: int, path: Path, in_folder: int, in_file: int) -> None:
    """Permits a path. A link does not permit its target. A path that is gone, or closed to this process, needs no permission."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISLNK(mode):
            beneath = _Beneath(in_folder if stat.S_ISDIR(mode) else in_file, descriptor)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = int(prctl.libc.syscall(number, *arguments))
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"Landlock: {os.strerror(errno)}")
    return result
