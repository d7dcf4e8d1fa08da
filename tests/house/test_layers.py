"""No contract of the layers in ARCHITECTURE.md is softened by an exception, and within the layers nothing goes round in a circle;
`scripts/check` says whether the contracts hold.
"""

from __future__ import annotations

import tomllib
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.house.project import ROOT


def test_no_contract_has_exceptions() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert "exclude_type_checking_imports" not in linter
    assert [contract["name"] for contract in linter["contracts"] if "ignore_imports" in contract] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for type checkers nor inside functions either: each module can be read with those below it alone."""
    graph = grimp.build_graph("evenflow", cache_dir=None)
    order = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(f"{' -> '.join(reversed(error.args[1]))}")
