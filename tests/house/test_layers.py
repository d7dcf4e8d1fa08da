"""No contract of the layers in ARCHITECTURE.md is softened by an exception; `scripts/check` says whether they hold."""

from __future__ import annotations

import tomllib

from tests.house.project import ROOT


def test_no_contract_has_exceptions() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert "exclude_type_checking_imports" not in linter
    assert [contract["name"] for contract in linter["contracts"] if "ignore_imports" in contract] == []
