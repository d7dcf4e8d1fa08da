"""Secrets and the command line: what must not be typed there is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.api.vault import Vault
from tests.cli.conftest import Evenflow


def test_a_password_is_not_taken_from_the_command_line(evenflow: Evenflow) -> None:
    refused = evenflow("connections", "set", "db", "postgresql://me:open-sesame@host/x")
    assert refused.returncode == 2
    assert "give the URI on standard input" in refused.stderr
    assert "open-sesame" not in refused.stderr
    assert evenflow("variables", "set", "api_token", "open-sesame").returncode == 2


@pytest.mark.system
def test_extras_are_not_taken_from_the_command_line(evenflow: Evenflow) -> None:
    """R-CS10: which of them are secret only the system knows."""
    for uri in (
        "https://h?token=open-sesame",
        "https://h?sig=open-sesame",
        "https://h?__extra__=%7B%22apikey%22%3A%22open-sesame%22%7D",
    ):
        refused = evenflow("connections", "set", "db", uri)
        assert (refused.returncode, "open-sesame" in refused.stderr) == (2, False)
        assert "The URI holds extras, which may be secret, which the history of your shell would keep" in refused.stderr


def test_a_file_that_is_no_export_is_refused(evenflow: Evenflow, tmp_path: Path) -> None:
    file = tmp_path / "connections.json"
    file.write_text("open-sesame")
    refused = evenflow("connections", "import", str(file))
    assert (refused.returncode, "is not JSON" in refused.stderr, "open-sesame" in refused.stderr) == (2, True, False)


def test_a_key_is_made(evenflow: Evenflow) -> None:
    Vault(Path(), evenflow("secrets", "key").stdout.strip()).seal("variable", "v", "1")
