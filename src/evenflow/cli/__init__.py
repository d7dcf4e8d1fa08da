"""The command line. One module a noun; each command's imports happen only when it is chosen."""

from __future__ import annotations

import gc
import sys

IMPORTED = 50_000  # new objects until the collector runs; a command imports several times as many, which stay


def main() -> None:
    """The ``evenflow`` command."""
    gc.set_threshold(IMPORTED)
    from evenflow.cli.app import run

    sys.exit(run(sys.argv[1:]))
