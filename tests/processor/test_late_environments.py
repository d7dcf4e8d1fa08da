"""R-AF1: an environment that does not load in time says where it was, also where there is no log."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from evenflow.fleet.environments import Environments
from evenflow.forking.owned_template import TemplateFailed
from evenflow.processor import checking
from evenflow.processor.checking import CheckedFile, check_files
from evenflow.processor.parsing import ParseLimits


def _slow_python(folder: Path) -> Path:
    """A Python that waits for a licence before it loads anything."""
    (folder / "sitecustomize.py").write_text(
        "import select\n\ndef ask_licence():\n    select.select([], [], [], 60)\n\nask_licence()\n"
    )
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_a_check_tells_where_an_environment_was_that_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "FOREIGN_LOAD_TIMEOUT", 0.5)
    environments = Environments("evenflow.airflow.loading.parse_process", {"slow": str(_slow_python(tmp_path))})
    (tmp_path / "a.py").write_text("")
    with pytest.raises(TemplateFailed, match=r"after 0.5 s") as refused:
        asyncio.run(check_files([CheckedFile(tmp_path, "a.py")], ParseLimits(), environment="slow", environments=environments))
    assert "ask_licence" in str(refused.value)
