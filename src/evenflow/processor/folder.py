"""The DAG files of a folder, each with a fingerprint that changes with the file, its local imports and its data.

Fingerprints depend on contents, so processors on different hosts agree on them. Imports are found in the text, without running it.
Imports that show only when a file is loaded, and data, are learned from its load, so a new file of this kind is loaded twice.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenflow.errors import DagError
from evenflow.processor import observations as seen
from evenflow.processor.ignore import AIRFLOWS, IGNORE_FILE, Rule, is_ignored, read_rules
from evenflow.sdk.loading.data_files import files_of
from evenflow.sdk.loading.imports import local_imports
from evenflow.telemetry.observing import observe

Stamp = tuple[int, int, int]  # mtime_ns, size, inode: the content is read again only when it changes

SETTLED_NS = 2 * 10**9  # the coarsest clock of a file system ticks every two seconds

# A file without one of each, in any case, defines no DAG. A file for Airflow defines none either; but it is not skipped silently:
# loading it says what to change.
_WORDS = ((b"dag",), (b"evenflow", b"airflow"))


@dataclass(frozen=True, slots=True)
class Scan:
    """``files`` maps a DAG file's path below ``root``, with ``/``, to its fingerprint. ``unread`` are Airflow's ignore files, in
    folders without Evenflow's own.
    """

    root: Path
    files: dict[str, str]
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Content:
    stamp: Stamp
    settled: bool  # read long enough after the last change that any later one has another stamp
    digest: str
    may_define_dags: bool


@dataclass(frozen=True, slots=True)
class _Imports:
    """The imports of a DAG file, and the state from which they were found."""

    names: frozenset[str]  # all Python files: an import may mean a new one
    digests: dict[str, str]  # by the paths of the imported modules and of the file itself


class DagFolder:
    """Scans may run in a thread, one at a time. ``airflows``: Airflow's ignore files count like Evenflow's own."""

    def __init__(self, folder: Path, *, airflows: bool = False) -> None:
        self._folder, self._airflows = folder, airflows
        self._contents: dict[str, _Content] = {}
        self._imports: dict[str, _Imports] = {}
        self._loaded: dict[str, frozenset[str]] = {}
        self._watched: dict[str, list[str]] = {}
        self._names: frozenset[str] = frozenset()  # the same object while it is equal: compared once a scan, not once a file

    def learn(self, file: str, files: list[str], watched: list[str]) -> None:
        """Learns which files ``file`` needed when it was loaded, and the paths that decide which data files it has."""
        self._loaded[file] = frozenset(files)
        self._watched[file] = [path for path in watched if not path.startswith("/") and ".." not in path.split("/")]

    def scan(self) -> Scan:
        """Scans the folder. Raises :class:`OSError` when it cannot be read."""
        root = self._folder.resolve(strict=True)  # the folder may be a link that deployments swap
        unread: list[str] = []
        found = dict(_python_files(root, "", (), unread, airflows=self._airflows))
        stamps = {path: stamp for path, (stamp, _) in found.items()}
        if self._names != stamps.keys():
            self._names = frozenset(stamps)
        data = {file: self._data_of(root, file) for file in self._watched.keys() & found.keys()}
        for of_file in data.values():
            stamps.update({path: stamp for path, stamp in of_file.items() if stamp is not None})
        self._contents = {
            path: content for path, content in self._contents.items() if content.settled and content.stamp == stamps.get(path)
        }
        files = {}
        for path, (_, ignored) in found.items():
            content = None if ignored else self._content(root, path, stamps)
            if content is not None and content.may_define_dags:
                files[path] = self._fingerprint(root, path, stamps, data.get(path, ()))
        self._imports = {path: imports for path, imports in self._imports.items() if path in files}
        return Scan(root, files, unread)

    def _data_of(self, root: Path, file: str) -> dict[str, Stamp | None]:
        """Returns the data files. If they are too many or too large, it has an empty name, because a later change of that counts,
        too.
        """
        try:
            return {path: _stamp((root / path).stat()) for path in files_of(self._watched[file], root)}
        except (DagError, OSError):  # loading the file reports what is wrong
            return {"": None}

    def _fingerprint(self, root: Path, file: str, stamps: dict[str, Stamp], data: Iterable[str]) -> str:
        learned = {*self._loaded.get(file, ()), *self._watched.get(file, ())}
        needed = {file, *self._imported(root, file, stamps), *learned, *data}
        total = hashlib.sha256()
        for path in sorted(needed):
            total.update(f"{path}\0{self._digest(root, path, stamps)}\n".encode())
        return total.hexdigest()

    def _imported(self, root: Path, file: str, stamps: dict[str, Stamp]) -> set[str]:
        known = self._imports.get(file)
        if (
            known is None
            or known.names is not self._names
            or any(self._digest(root, path, stamps) != digest for path, digest in known.digests.items())
        ):
            try:
                modules = {path.relative_to(root).as_posix() for path in local_imports(root / file, root)}
            except (OSError, ValueError, RecursionError):  # loading the file reports what is wrong
                modules = {file}
            known = self._imports[file] = _Imports(self._names, {path: self._digest(root, path, stamps) for path in modules})
        return set(known.digests)

    def _digest(self, root: Path, path: str, stamps: dict[str, Stamp]) -> str:
        content = self._content(root, path, stamps)
        return content.digest if content else ""

    def _content(self, root: Path, path: str, stamps: dict[str, Stamp]) -> _Content | None:
        """Returns None for a file that is missing or cannot be read."""
        known = self._contents.get(path)
        if known is None and path in stamps:
            try:
                data = (root / path).read_bytes()
            except OSError as error:
                observe(seen.file_skipped(path, str(error)))
                return None
            lowered = data.lower()
            known = self._contents[path] = _Content(
                stamp=stamps[path],
                settled=time.time_ns() - stamps[path][0] > SETTLED_NS,
                digest=hashlib.sha256(data).hexdigest(),
                may_define_dags=all(any(word in lowered for word in words) for words in _WORDS),
            )
        return known


def _python_files(
    root: Path, folder: str, rules: tuple[Rule, ...], unread: list[str], ignored: bool = False, *, airflows: bool = False
) -> Iterator[tuple[str, tuple[Stamp, bool]]]:
    """Yields (path, (stamp, whether it is ignored)) of all Python files, without linked folders, hidden ones and caches."""
    with os.scandir(root / folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    names = {entry.name for entry in entries}
    read = next((name for name in (IGNORE_FILE, AIRFLOWS) if name in names), None)
    if read == IGNORE_FILE or (read == AIRFLOWS and airflows):
        rules += read_rules((root / folder / read).read_text(errors="replace"), folder)
    elif read is not None:
        unread.append(f"{folder}/{AIRFLOWS}" if folder else AIRFLOWS)
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if entry.is_dir(follow_symlinks=False):
            inside = ignored or is_ignored(path, rules, is_folder=True)
            yield from _python_files(root, path, rules, unread, inside, airflows=airflows)
        elif entry.name.endswith(".py") and entry.is_file():
            yield path, (_stamp(entry.stat()), ignored or is_ignored(path, rules, is_folder=False))


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
