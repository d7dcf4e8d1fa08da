"""Is what the layers hold believable? Read with another engine than the one that wrote it, so a mistake cannot hide itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from census import tables
from census.gold import DAMPING

MOST_BAD = 0.02  # of all source files; CPython's own tests come with a handful of broken ones
LEAST_RESOLVED = 0.5  # of all import targets; far more on any real machine, so below something is wrong with the resolution
ROUNDING = 1e-6


class DataQualityError(Exception):
    """Checks were violated; the message lists them all."""


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    found: str


def check_lake(lake: Path, listed: int) -> list[Check]:
    """Runs all checks and writes ``quality.json``; bronze should have ``listed`` files. Raises :class:`DataQualityError`."""
    checks = [*_rows(lake, listed), *_graph(lake), *_ranks(lake)]
    (lake / "quality.json").write_text(json.dumps([asdict(check) for check in checks], indent=1))
    violated = [f"{check.name} ({check.found})" for check in checks if not check.passed]
    if violated:
        raise DataQualityError(f"{len(violated)} of {len(checks)} checks failed: " + "; ".join(violated))
    return checks


def _rows(lake: Path, listed: int) -> list[Check]:
    files = tables.read(lake, "bronze/files", ["path", "status", "form"])
    read = sum(row["status"] in ("ok", "error", "skipped") for row in files)
    bad = sum(row["status"] in ("error", "skipped") for row in files)
    paths = len({row["path"] for row in files})
    errors, in_silver, ranked = (tables.count(lake, name) for name in ("silver/errors", "silver/modules", "gold/modules"))
    return [
        Check("bronze has every listed file", len(files) == listed, f"{len(files):,} of {listed:,}"),
        Check("bronze has no file twice", paths == len(files), f"{len(files) - paths:,} twice"),
        Check("silver has every unreadable file of bronze", errors == bad, f"{errors:,} of {bad:,}"),
        Check(f"at most {MOST_BAD:.0%} of the files that were read are unreadable", bad <= MOST_BAD * read, f"{bad:,} of {read:,}"),
        Check("gold has every module of silver", ranked == in_silver, f"{ranked:,} of {in_silver:,}"),
    ]


def _graph(lake: Path) -> list[Check]:
    names = [row["module"] for row in tables.read(lake, "silver/modules", ["module"])]
    modules = set(names)
    edges = tables.read(lake, "silver/edges", ["source", "target", "statements"])
    pairs = {(edge["source"], edge["target"]) for edge in edges}
    dangling = sum(source not in modules or target not in modules for source, target in pairs)
    loops = sum(source == target for source, target in pairs)
    found = sum(edge["statements"] for edge in edges)
    lost = sum(row["statements"] for row in tables.read(lake, "silver/unresolved", ["statements"]))
    return [
        Check("no module twice", len(modules) == len(names), f"{len(names) - len(modules):,} twice"),
        Check("no edge twice", len(pairs) == len(edges), f"{len(edges) - len(pairs):,} twice"),
        Check("both ends of every edge are modules", dangling == 0, f"{dangling:,} of {len(edges):,} are not"),
        Check("no module imports itself", loops == 0, f"{loops:,} do"),
        Check(
            f"at least {LEAST_RESOLVED:.0%} of the imports lead to a module",
            found >= LEAST_RESOLVED * (found + lost),
            f"{found:,} of {found + lost:,}",
        ),
    ]


def _ranks(lake: Path) -> list[Check]:
    ranks = [row["rank"] for row in tables.read(lake, "gold/modules", ["rank"])]
    total, least = sum(ranks), min(ranks, default=0.0)
    floor = (1 - DAMPING) / len(ranks) if ranks else 0.0
    rounds = json.loads((lake / "gold" / "pagerank.json").read_text())
    return [
        Check("all ranks sum to 1", abs(total - 1) <= ROUNDING, f"{total:.9f}"),
        Check("every rank is at least what chance gives", least >= floor * (1 - ROUNDING), f"{least:.3g}, {floor:.3g} by chance"),
        Check("the ranks have settled", rounds["converged"], f"{rounds['changes'][-1]:.2g} after {rounds['rounds']} rounds"),
    ]
