"""Files beside DAG files that no import finds, because a module of Python's standard library, or an installed one, has
their name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def hidden_files(files: Iterable[Path], root: Path) -> dict[Path, str]:
    """Returns those of the ``files`` below ``root`` that an import of their name does not find, each with an explanation."""
    by_top: dict[str, list[Path]] = {}
    for file in files:
        by_top.setdefault(file.relative_to(root).with_suffix("").parts[0], []).append(file)
    reasons = {top: reason for top in by_top if (reason := hiding(top, root))}
    return {file: reason for top, reason in reasons.items() for file in by_top[top]}


def hiding(top: str, root: Path) -> str | None:
    """Returns what ``import top`` means, where that is not the module of this name below ``root``."""
    own = next((path for path in (root / f"{top}.py", root / top) if path.exists()), None)
    try:
        found = find_spec(top)
    except ValueError:  # a loaded module that does not know its origin
        return None
    if own is None or found is None or found.origin in (None, str(own), str(own / "__init__.py")):
        return None
    of_python = top in sys.stdlib_module_names
    meant = "the module of Python's standard library" if of_python else f"the installed module {found.origin}"
    return f"{own.name} is hidden: import {top} means {meant}. Give {own.name} another name if other files are to import it."
