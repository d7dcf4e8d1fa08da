"""Which modules does this Python have? The folders it imports from, and their files, in shards that can be walked in parallel."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

# lib-dynload has compiled modules of the standard library, which silver adds by name; a nested site-packages is a root of its own.
NOT_WALKED = {"__pycache__", "site-packages", "dist-packages", "lib-dynload"}


@dataclass(frozen=True)
class Root:
    path: str
    kind: str  # "stdlib" or "packages"
    order: int  # the first root that has a module wins, as in sys.path


@dataclass(frozen=True)
class Listed:
    """One file. ``module`` is None for files that no import statement can reach, e.g. scripts with a dash in their name."""

    path: str
    kind: str
    order: int
    form: str  # "source" or "compiled"
    package: str
    module: str | None
    is_package: bool
    bytes: int


def find_roots(extra: Iterable[str] = ()) -> list[Root]:
    """The standard library, the installed packages, and the ``extra`` folders with packages that exist."""
    installed = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    folders = {sysconfig.get_path("stdlib"): "stdlib"}
    folders |= dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *installed, *extra], "packages")
    return [Root(path, kind, order) for order, (path, kind) in enumerate(folders.items()) if os.path.isdir(path)]


def walk(root: Root, part: int, of: int) -> Iterator[Listed]:
    """The modules below ``root`` whose top-level name falls into ``part``; the parts 0 to ``of`` - 1 cover all, each once."""
    for folder, folders, names in os.walk(root.path):
        inside = os.path.relpath(folder, root.path)
        top_level = inside == "."
        folders[:] = [name for name in sorted(folders) if name not in NOT_WALKED and (not top_level or _part(name, of) == part)]
        parts = () if top_level else tuple(inside.split(os.sep))
        for name in sorted(names):
            if (not top_level or _part(name, of) == part) and (listed := _listed(root, parts, folder, name)):
                yield listed


def write_shard(lake: Path, roots: Iterable[Root], part: int, of: int) -> dict[str, int]:
    """Writes ``listing/part-N.jsonl`` and counts what is in it."""
    target = lake / "listing" / f"part-{part:05d}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    files = size = 0
    with target.open("w", encoding="utf-8") as out:
        for root in roots:
            for listed in walk(root, part, of):
                out.write(json.dumps(asdict(listed)) + "\n")
                files += 1
                size += listed.bytes
    return {"files": files, "bytes": size}


def module_name(parts: tuple[str, ...], stem: str) -> tuple[str | None, bool]:
    """The dotted name of ``parts/stem.py`` below a root, and whether it is a package; None when a part is no identifier."""
    is_package = stem == "__init__"
    names = parts if is_package else (*parts, stem)
    return (".".join(names) if names and all(name.isidentifier() for name in names) else None), is_package


def _part(name: str, of: int) -> int:
    return zlib.crc32(name.partition(".")[0].encode("utf-8", "surrogateescape")) % of


def _listed(root: Root, parts: tuple[str, ...], folder: str, name: str) -> Listed | None:
    suffix = next((s for s in (".py", *EXTENSION_SUFFIXES) if name.endswith(s)), None)
    path = os.path.join(folder, name)
    if suffix is None or not path.isprintable():  # a name that is not text cannot go into a table of text
        return None
    try:
        size = os.stat(path).st_size
    except OSError:  # a dangling link, or gone since the folder was read
        return None
    stem = name.removesuffix(suffix)
    module, is_package = module_name(parts, stem)
    return Listed(
        path=path,
        kind=root.kind,
        order=root.order,
        form="source" if suffix == ".py" else "compiled",
        package=parts[0] if parts else stem,
        module=module,
        is_package=is_package,
        bytes=size,
    )
