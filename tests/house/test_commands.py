"""The commands of the house say what they are, and the ones that everybody relies on are there."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.house.project import ROOT

SCRIPTS = ("scripts/setup", "scripts/web", "scripts/lock", "scripts/check", ".ci/run")


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
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("make ")] == ["test", "test-system"]


def test_every_test_is_of_one_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r'pytest .*-m ("[^"]*"|\S+) ', makefile) == [
        '"not slow and not system"',
        '"system and not slow and not alone"',
        '"system and not slow and alone"',
        "slow",
    ]


def test_make_test_refuses_long_tests() -> None:
    """Where nobody says otherwise, as .ci/run does."""
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "LONGEST")}
    command = ["make", "--dry-run", "test"]
    assert "$(MAKE)" not in (ROOT / "Makefile").read_text(encoding="utf-8"), "a line that calls it is run by a dry run, too"
    said = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "--longest 2 " in said
