"""R-AF1: an environment that does not load in time says what it printed, also where there is no log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evenflow.forking.owned_template import TemplateFailed
from evenflow.membership.environments import Environments
from evenflow.processor import checking
from evenflow.processor.checking import CheckedFile, check_files
from evenflow.processor.parsing import ParseLimits


def test_a_check_tells_what_an_environment_printed_that_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "FOREIGN_LOAD_TIMEOUT", 1.0)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho waits for a licence\nexec sleep 60\n")
    python.chmod(0o755)
    (tmp_path / "a.py").write_text("")
    environments = Environments("never.reached", {"slow": str(python)})
    with pytest.raises(TemplateFailed, match=r"not loaded after 1 s.*\nwaits for a licence"):
        asyncio.run(check_files([CheckedFile(tmp_path, "a.py")], ParseLimits(), environment="slow", environments=environments))
