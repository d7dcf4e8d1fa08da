"""The command line. One module a noun; nothing is imported before the command that needs it is chosen."""

from __future__ import annotations

import gc
import sys

IMPORTED = 50_000  # new objects until the collector looks at them; a command imports several times as many, which stay


def main() -> None:
    """The ``evenflow`` command."""
    gc.set_threshold(IMPORTED)
    from evenflow.cli.app import run

    sys.exit(run(sys.argv[1:]))
