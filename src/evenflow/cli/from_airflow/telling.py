"""Where the house is and what opens it, and what people are told of the move."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from evenflow.cli.from_airflow.moving import Moved
from evenflow.cli.output.terminal import print_table, say
from evenflow.core.quantities import counted
from evenflow.errors import ParamError

DSN_VARIABLE, KEY_VARIABLE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__FERNET_KEY"


def dsn_of(given: str | None) -> str:
    """From the command line without a password, which other users and the shell's history can see. Raises :class:`ParamError`."""
    if given is None:
        kept = os.environ.get(DSN_VARIABLE)
        if not kept:
            raise ParamError(
                f"It is not said where Airflow's database is. Set {DSN_VARIABLE}, or type --dsn postgresql://user@host/airflow"
            )
        return kept
    try:
        password = urlsplit(given).password
    except ValueError:
        raise ParamError("The DSN is no URL. Type for example: --dsn postgresql://user@host/airflow") from None
    if password:
        raise ParamError(
            f"The DSN holds a password, which the history of your shell would keep. Set {DSN_VARIABLE} instead, or leave the "
            "password out and set PGPASSWORD."
        )
    return given


def fernet_key_of(file: Path | None) -> str:
    """Raises :class:`ParamError`."""
    if file is None:
        return os.environ.get(KEY_VARIABLE, "")
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ParamError(f"{file} cannot be read: {error.strerror}.") from None


def tell_moved(moved: Sequence[Moved], *, written: bool) -> None:
    """A table, and how many of each kind."""
    rows = [[each.kind, each.name, _WORDS[each.fate][written], each.why] for each in moved]
    print_table(["what", "name", "", "why"], rows, empty="There is nothing in that database.")
    fates = Counter(each.fate for each in moved)
    say(", ".join(f"{n} {_WORDS[fate][written]}" for fate, n in fates.items()) or "Nothing to do.")
    if not written and fates["moved"]:
        say(f"Nothing is changed yet. To bring {counted(fates['moved'], 'thing')} here, type it again with --write")


_WORDS = {"moved": ("would be brought", "brought"), "kept": ("would stay", "stayed"), "left": ("would be left", "left")}
