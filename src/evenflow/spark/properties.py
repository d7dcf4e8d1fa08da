"""Spark configuration in a file: the arguments of a JVM are in the process list, which every user of the host reads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def submit_arguments(conf: Mapping[str, str], folder: Path, earlier: str | None = None) -> str:
    """What pyspark hands to ``spark-submit`` so that the JVM has ``conf``, which only this user can read, above what the
    installation's own ``spark-defaults.conf`` says. ``earlier`` are the arguments of the environment.
    """
    file = folder / "evenflow.conf"
    write_properties(file, conf)
    return f"--properties-file {shlex.quote(str(file))} --load-spark-defaults {earlier or 'pyspark-shell'}"


def write_properties(file: Path, conf: Mapping[str, str]) -> None:
    """A new file that only this user can read."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.writelines(f"{_escaped(key)}={_escaped(_text(value))}\n" for key, value in conf.items())


def _text(value: object) -> str:
    """Authors write numbers and truths as such."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """Escapes a text for Java's properties: every character except plain letters and digits by the numbers of its UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    numbers = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(chr(number) if number < 128 and chr(number).isalnum() else f"\\u{number:04x}" for number in numbers)
