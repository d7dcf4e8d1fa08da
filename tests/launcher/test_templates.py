"""The template of pods, which a launcher reads from a file that an option of the executor may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.core.pods.options import read_options
from evenflow.errors import SettingsError
from evenflow.launcher.kubernetes.template import read_template


def test_what_is_wrong_with_a_file_is_told_without_its_content(tmp_path: Path) -> None:
    """R-SE1: whoever may set an option names a file of the launcher's host, and everybody sees the reason."""
    file = tmp_path / "environment"
    file.write_text("A=1\nDATABASE_URL: postgresql: //evenflow:open-sesame@db/evenflow\n")
    with pytest.raises(SettingsError, match="is no YAML in line 2: mapping values are not allowed here") as refused:
        read_template(read_options({"template": str(file)}), "")
    assert "open-sesame" not in str(refused.value)
