"""The command line. One module a noun; nothing is imported before the command that needs it is chosen."""

from __future__ import annotations

import sys


def main() -> None:
    """The ``evenflow`` command."""
    from evenflow.cli.app import run

    sys.exit(run(sys.argv[1:]))
