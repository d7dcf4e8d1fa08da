"""Secrets as people type them: on standard input, never in a command line, which other users and the shell's history can see."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path

from evenflow.errors import ParamError


def read_secret(prompt: str, file: Path | None) -> str:
    """From ``file``, else from standard input; on a terminal it is asked for and not shown. Without the newline at its end."""
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ParamError(f"{file} cannot be read: {error.strerror}.") from None
    elif sys.stdin.isatty():
        text = getpass(f"{prompt} (not shown): ")
    else:
        text = sys.stdin.read()
    text = text.removesuffix("\n")
    if not text:
        raise ParamError(f"There is nothing to store: standard input was empty. {prompt} is read from there, or from --file.")
    return text
