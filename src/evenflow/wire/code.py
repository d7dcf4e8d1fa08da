"""The code of a DAG version in transit: packed by the processor, kept by the API, unpacked by the worker.

An archive is a gzipped MessagePack map of paths to contents: it cannot hold links, devices or sparse files. Its name is the hash of
its content, not of its bytes: two machines that compress differently still agree. Packing the same files twice gives the same
bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec

from evenflow.errors import CodeArchiveError

MAX_ARCHIVE_BYTES = 32 * 2**20  # packed; hundreds of times what DAG files need, and one row in the database
MAX_UNPACKED_BYTES = 256 * 2**20  # source compresses about 1:5, so this leaves room, and a zip bomb cannot fill a worker's disk
MAX_FILES = 10_000
MAX_PATH_BYTES = 255  # the limit of every file system

# The number of files is checked before the first of them is read.
_decode = msgspec.msgpack.Decoder(Annotated[dict[str, bytes], msgspec.Meta(max_length=MAX_FILES)]).decode


def archive_hash(files: Mapping[str, bytes]) -> str:
    """Returns the name of an archive of ``files`` (path to content): SHA-256, hex, over ``path NUL sha256(content) LF``, paths
    sorted.
    """
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path}\0{hashlib.sha256(files[path]).hexdigest()}\n".encode())
    return total.hexdigest()


def pack(files: Mapping[str, bytes]) -> bytes:
    """Returns an archive of ``files``; paths are relative, separated by ``/``. Raises :class:`CodeArchiveError` when it is too
    large.
    """
    if len(files) > MAX_FILES:
        raise CodeArchiveError(f"This DAG's code has {len(files):,} files (limit {MAX_FILES:,}). Import fewer local modules.")
    unpacked = msgspec.msgpack.encode({checked_path(path): files[path] for path in sorted(files)})
    archive = gzip.compress(unpacked, compresslevel=6, mtime=0)
    if len(archive) > MAX_ARCHIVE_BYTES or len(unpacked) > MAX_UNPACKED_BYTES:
        raise CodeArchiveError(
            f"This DAG's code is {len(archive):,} bytes packed (limit {MAX_ARCHIVE_BYTES:,}). Keep data out of its modules."
        )
    return archive


def read_archive(archive: bytes) -> dict[str, bytes]:
    """Returns the content of an archive, by path. Raises :class:`CodeArchiveError` unless :func:`pack` could have made it."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        unpacked = inflater.decompress(archive, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise CodeArchiveError(f"The archive is not gzip: {error}.") from None
    if not inflater.eof or inflater.unused_data:
        raise CodeArchiveError(f"The archive is cut off, has a tail, or unpacks to more than {MAX_UNPACKED_BYTES:,} bytes.")
    try:
        files: dict[str, bytes] = _decode(unpacked)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise CodeArchiveError(f"The archive is no map of at most {MAX_FILES:,} files: {error}.") from None
    for path in files:
        checked_path(path)
    return files


def check_archive(code_hash: str, archive: bytes) -> None:
    """Raises :class:`CodeArchiveError` unless this is the archive of that name."""
    if (found := archive_hash(read_archive(archive))) != code_hash:
        raise CodeArchiveError(f"The archive's content has hash {found}, not {code_hash}: it was damaged or changed on its way.")


def unpack(archive: bytes, folder: Path, *, code_hash: str) -> None:
    """Puts the files of ``archive`` into ``folder``, which appears at once and whole; does nothing when it exists already.

    Raises :class:`CodeArchiveError` when the archive is not the one that ``code_hash`` names.
    """
    files = read_archive(archive)
    if (found := archive_hash(files)) != code_hash:
        raise CodeArchiveError(f"The archive's content has hash {found}, not {code_hash}: it was damaged or changed on its way.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".unpack-", dir=folder.parent))
    try:
        for path, content in files.items():
            target = building / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o444)
        try:
            os.rename(building, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def is_unpacked(folder: Path, *, code_hash: str) -> bool:
    """Returns whether ``folder`` holds exactly what ``code_hash`` names, without bytecode, because Python would run that
    instead.
    """
    files: dict[str, bytes] = {}
    size = 0
    try:
        for path in folder.rglob("*"):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                continue
            size += status.st_size
            if not stat.S_ISREG(status.st_mode) or size > MAX_UNPACKED_BYTES or len(files) >= MAX_FILES:
                return False
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError:
        return False
    return bool(files) and archive_hash(files) == code_hash


def checked_path(path: str) -> str:
    """Returns a path that archives may have. Raises :class:`CodeArchiveError` for any other."""
    parts = PurePosixPath(path).parts
    plain = path and "/".join(parts) == path and ".." not in parts and "\\" not in path and path.isprintable()
    if not plain or path.startswith("/") or len(path.encode()) > MAX_PATH_BYTES:
        raise CodeArchiveError(f"{path!r} cannot be a path in an archive: relative, plain, at most {MAX_PATH_BYTES} bytes.")
    return path
