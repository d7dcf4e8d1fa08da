"""The layers of ARCHITECTURE.md hold, and no contract is softened by an exception."""

from __future__ import annotations

import tomllib

import pytest
from importlinter.cli import lint_imports

from tests.house.project import ROOT


def test_contracts_hold(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == 0, capsys.readouterr().out


def test_no_contract_has_exceptions() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert "exclude_type_checking_imports" not in linter
    assert [contract["name"] for contract in linter["contracts"] if "ignore_imports" in contract] == []
