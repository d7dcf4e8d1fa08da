"""The commands of the house say what they are, and the ones that everybody relies on are there."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.house.project import ROOT

SCRIPTS = ("scripts/setup", "scripts/lock", ".ci/run")


def test_make_help_lists_the_commands() -> None:
    said = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^\s+(?:\x1b\[1m)?([a-z-]+)", said, flags=re.MULTILINE))
    assert {"help", "demo", "up", "test", "test-slow", "check", "bench", "docs", "lock", "clean"} <= commands


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_can_be_run(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", path], capture_output=True, text=True).stderr == ""
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")


def test_ci_runs_what_everyone_runs() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
