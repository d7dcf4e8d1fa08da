"""``.evenflowignore``: which files below a folder are no DAG files. A subset of what ``.gitignore`` can say."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

IGNORE_FILE = ".evenflowignore"


@dataclass(frozen=True, slots=True)
class Rule:
    folder: str  # of the ignore file, "" for the root
    pattern: str  # fnmatch; * also matches /
    anchored: bool  # matched against the path below the folder, else against the last name
    folders_only: bool
    negated: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        below = path.removeprefix(f"{self.folder}/") if self.folder else path
        return fnmatchcase(below if self.anchored else PurePosixPath(path).name, self.pattern)


def read_rules(text: str, folder: str) -> tuple[Rule, ...]:
    """A rule a line; ``#`` begins a comment, ``!`` takes files in again, ``/`` at the end means folders, elsewhere it anchors."""
    rules = []
    for line in text.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            negated = pattern.startswith("!")
            pattern = pattern.removeprefix("!")
            name = pattern.rstrip("/")
            rules.append(Rule(folder, name.lstrip("/"), "/" in name, pattern.endswith("/"), negated))
    return tuple(rules)


def is_ignored(path: str, rules: tuple[Rule, ...], *, is_folder: bool) -> bool:
    """Whether the last rule that matches ``path``, relative to the root, says so."""
    return next((not rule.negated for rule in reversed(rules) if rule.matches(path, is_folder=is_folder)), False)
