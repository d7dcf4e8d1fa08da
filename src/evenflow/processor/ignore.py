"""``.evenflowignore``: which files below a folder are not DAG files, read like Git's ``.gitignore`` except for escapes and
``[^a]``.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

IGNORE_FILE = ".evenflowignore"
AIRFLOWS = ".airflowignore"


@dataclass(frozen=True, slots=True)
class Rule:
    folder: str  # of the ignore file, "" for the root
    pattern: tuple[str, ...]  # of the names of a path below the folder: fnmatch, or ** for any number of them
    folders_only: bool
    negated: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        names = path.removeprefix(f"{self.folder}/").split("/")
        ends = {0}  # how many names the pattern may stand for, up to the current part
        for part in self.pattern:
            if part == "**":
                ends = set(range(min(ends, default=len(names)), len(names)))
            else:
                ends = {end + 1 for end in ends if end < len(names) and fnmatchcase(names[end], part)}
        return len(names) in ends


def read_rules(text: str, folder: str) -> tuple[Rule, ...]:
    """Reads one rule a line; ``#`` begins a comment, ``!`` includes files again, ``/`` at the end means folders, elsewhere it
    anchors.
    """
    rules = []
    for line in text.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            negated = pattern.startswith("!")
            pattern = pattern.removeprefix("!")
            name = pattern.rstrip("/")
            parts = name.removeprefix("/").split("/") if "/" in name else ["**", name]
            parts += ["*"] if parts[-1] == "**" else []  # the content of a folder, not the folder
            rules.append(Rule(folder, tuple(parts), pattern.endswith("/"), negated))
    return tuple(rules)


def is_ignored(path: str, rules: tuple[Rule, ...], *, is_folder: bool) -> bool:
    """Returns whether the last rule that matches ``path``, relative to the root, ignores it. The folders around it are not
    ignored.
    """
    return next((not rule.negated for rule in reversed(rules) if rule.matches(path, is_folder=is_folder)), False)


def not_read(path: Path) -> str:
    """Returns a message about Airflow's ignore file in a folder without Evenflow's own."""
    rename = shlex.join(["mv", str(path), str(path.with_name(IGNORE_FILE))])
    return f"It is not read. Type: {rename} (its lines are glob patterns, as in Airflow 3; not regular expressions)."
