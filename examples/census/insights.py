"""What the report says: numbers and short lists taken from the gold layer."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from census import tables
from census.tables import Row

TOP_MODULES = 25
TOP_PACKAGES = 15
MATRIX_PACKAGES = 14


@dataclass(frozen=True)
class Insights:
    """Lists are sorted, the first row the most notable; shares are between 0 and 1."""

    headline: dict[str, int]
    shares: dict[str, float]
    top_modules: list[Row]
    most_imported: list[Row]
    packages: list[Row]
    matrix: tuple[list[str], list[list[int]]]  # packages, and how many module pairs lead from row to column
    when: list[tuple[str, int, int, int]]  # package, edges on import, lazy, for types only
    depths: dict[str, list[int]]  # of the modules, by kind
    chain: list[str]  # the longest chain of imports
    popularity: list[int]  # of the modules: by how many others each is imported
    file_lines: dict[str, list[int]]  # by kind
    cycles: list[Row]
    unresolved: list[Row]
    errors: list[Row]
    changes: list[float]
    quality: list[Row]


def read_insights(lake: Path) -> Insights:
    modules = tables.read(lake, "gold/modules")
    edges = tables.read(lake, "silver/edges")
    packages = tables.read(lake, "gold/packages")
    files = tables.read(lake, "bronze/files", ["kind", "status", "lines", "bytes", "form"])
    depth = {row["module"]: row["depth"] for row in tables.read(lake, "gold/depths")}
    errors = tables.read(lake, "silver/errors")
    cycles = [row for row in tables.read(lake, "gold/cycles") if row["modules"]]
    pagerank = json.loads((lake / "gold" / "pagerank.json").read_text())
    quality = json.loads((lake / "quality.json").read_text())
    by_rank = sorted(modules, key=lambda row: (-row["rank"], row["module"]))
    package_of = {row["module"]: row["package"] for row in modules}
    kinds = ("stdlib", "packages")
    return Insights(
        headline={
            "files read": sum(row["status"] in ("ok", "error", "skipped") for row in files),
            "lines": sum(row["lines"] for row in files),
            "modules": len(modules),
            "packages": len(packages) - 1,  # the standard library is no package that anyone installs
            "imports": len(edges),
            "circles": len(cycles),
        },
        shares={
            "lines": _share(files, "lines", lambda row: row["kind"] == "stdlib"),
            "rank": _share(modules, "rank", lambda row: row["kind"] == "stdlib"),
            "imports": _share(edges, "statements", lambda row: package_of[row["target"]] == "(stdlib)"),
            "lazy": sum(not edge["on_import"] for edge in edges) / max(len(edges), 1),
        },
        top_modules=by_rank[:TOP_MODULES],
        most_imported=sorted(modules, key=lambda row: (-row["imported_by"], row["module"]))[:TOP_PACKAGES],
        packages=sorted(packages, key=lambda row: (-(row["lines"] or 0), row["package"]))[:TOP_PACKAGES],
        matrix=_matrix(packages, tables.read(lake, "gold/package_edges")),
        when=_when(edges, package_of, packages),
        depths={kind: [depth[row["module"]] for row in modules if row["kind"] == kind] for kind in kinds},
        chain=_chain(depth, edges),
        popularity=[row["imported_by"] for row in modules],
        file_lines={kind: [row["lines"] for row in files if row["kind"] == kind and row["status"] == "ok"] for kind in kinds},
        cycles=sorted(cycles, key=lambda row: (-row["modules"], row["first"]))[:10],
        unresolved=sorted(tables.read(lake, "silver/unresolved"), key=lambda row: (-row["modules"], row["name"]))[:TOP_PACKAGES],
        errors=sorted(errors, key=lambda row: row["path"]),
        changes=pagerank["changes"],
        quality=quality,
    )


def _share(rows: list[Row], column: str, belongs: Any) -> float:
    total = sum(row[column] or 0 for row in rows)
    return sum(row[column] or 0 for row in rows if belongs(row)) / total if total else 0.0


def _matrix(packages: list[Row], between: list[Row]) -> tuple[list[str], list[list[int]]]:
    """Among the packages that are tied closest to others."""
    ties: Counter[str] = Counter()
    for row in between:
        ties[row["from"]] += row["edges"]
        ties[row["to"]] += row["edges"]
    names = sorted((name for name, _ in ties.most_common(MATRIX_PACKAGES)), key=lambda name: -ties[name])
    edges = {(row["from"], row["to"]): row["edges"] for row in between}
    return names, [[edges.get((source, target), 0) for target in names] for source in names]


def _when(edges: list[Row], package_of: dict[str, str], packages: list[Row]) -> list[tuple[str, int, int, int]]:
    counts: Counter[tuple[str, str]] = Counter()
    for edge in edges:
        when = "import" if edge["on_import"] else "typing" if edge["only_typing"] else "lazy"
        counts[package_of[edge["source"]], when] += 1
    largest = sorted(packages, key=lambda row: -(row["lines"] or 0))[:TOP_PACKAGES]
    return [(p["package"], *(counts[p["package"], when] for when in ("import", "lazy", "typing"))) for p in largest]


def _chain(depth: dict[str, int], edges: list[Row]) -> list[str]:
    """From a deepest module, each time to the deepest of those that it imports and that are less deep."""
    below: dict[str, list[str]] = {}
    for edge in edges:
        if edge["on_import"] and depth[edge["target"]] < depth[edge["source"]]:
            below.setdefault(edge["source"], []).append(edge["target"])
    if not depth:
        return []
    chain = [min(depth, key=lambda module: (-depth[module], module))]
    while chain[-1] in below:
        chain.append(min(below[chain[-1]], key=lambda module: (-depth[module], module)))
    return chain
