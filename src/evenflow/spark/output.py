"""What a driver printed, in the log of its task: its end, without what Java and Spark say of themselves. All of it is in a file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from evenflow.errors import SettingsError
from evenflow.sdk.secrets.masking import is_secret_name
from evenflow.spark import driver
from evenflow.spark.limits import MOST_OUTPUT_SHOWN

REDACTION = "spark.redaction.regex"

_NAMED_SECRET = "(?i)secret|password|token|access[.]?key"  # Spark's own default of it
_SECRET = re.compile(r"(?i)((?:secret|password|passwd|token|access[.]?key|credential)[\w.]*\s*[=:]\s*)(\S+)")
_NOISE = re.compile(
    r"^((NOTE: )?Picked up J|WARNING: Using incubator|Using Spark's default log4j|Setting Spark log level|:: |\{\"ts\": )"
    r"|^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN NativeCodeLoader)"
)


def show(folder: Path) -> None:
    """Prints at most the last :data:`MOST_OUTPUT_SHOWN` bytes."""
    try:
        with (folder / driver.OUTPUT).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_OUTPUT_SHOWN:
                file.seek(size - MOST_OUTPUT_SHOWN)
                print(f"({size - MOST_OUTPUT_SHOWN:,} bytes of the driver's output before this are left out)")
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return
    shown, left_out = without_noise(text)
    sys.stdout.write(redacted(shown))
    if left_out:
        print(f"({left_out} lines in which Spark speaks of itself are only in {folder / driver.OUTPUT})")
    sys.stdout.flush()


def without_noise(text: str) -> tuple[str, int]:
    """Without lines in which Java and Spark speak of themselves, and how many these are."""
    lines = text.splitlines(keepends=True)
    shown = [line for line in lines if not _NOISE.search(line)]
    return "".join(shown), len(lines) - len(shown)


def redacted(text: str) -> str:
    """As ``spark.redaction.regex`` has Spark do it in its own UI: values of names that speak of secrets."""
    return _SECRET.sub(r"\1***", text)


def secret_values(conf: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """Returns what must never be shown: values of settings and variables whose names Spark itself would redact, or that are names
    of secrets to Evenflow. Raises :class:`SettingsError`.
    """
    pattern = conf.get(REDACTION, _NAMED_SECRET)
    try:
        named = re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"{REDACTION} is no regular expression: {error}. Write e.g. {_NAMED_SECRET}") from None
    pairs = [(name, value) for name, value in (*conf.items(), *env.items()) if name != REDACTION]
    return [value for name, value in pairs if named.search(name) or is_secret_name(name)]


def secrets_of_run(folder: Path) -> list[str]:
    """Returns the secrets of a try, from its order; none once the try is tidied up: then its driver has masked what is left."""
    return list((driver.read(folder / driver.ORDER) or {}).get("secrets", ()))
