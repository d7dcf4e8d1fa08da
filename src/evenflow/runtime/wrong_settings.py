"""Messages about wrong or unknown settings: the place, and a suggestion."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from evenflow.core.likeness import closest
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.runtime.project import config_file
from evenflow.runtime.secret_files import SUFFIX

_NOT_SHOWN = (
    "database_url",
    "token",
    "metrics_token",
    "openlineage_url",
    "openlineage_key",
    "traces_url",
    "traces_headers",
    "identity_client_secret",
    "secret_keys",
    "celery_broker",
    "xcom_url",
    "log_url",
    "kubernetes",
    "connections",
    "bundles",
)  # secrets, and tables that would hide the message


def explain(problem: Any, given: Mapping[str, Any], known: Collection[str]) -> str:
    """Returns a message for one of pydantic's problems, with the argument, variable or line of the file; ``given`` are values of
    the command line.
    """
    name = str(problem["loc"][0]) if problem["loc"] else ""
    variable = PREFIX + name.upper()
    if problem["type"] == "extra_forbidden":
        return f"{config_file()}: {name} is no setting.{did_you_mean(name, known)}"
    if name in given:
        where = f"--{name.replace('_', '-')}"
    elif variable in os.environ:
        where = variable
    elif variable + SUFFIX in os.environ:
        where = variable + SUFFIX
    else:
        where = f"{config_file()}: {name}"
    message = problem["msg"].removeprefix("Value error, ")
    shown = "" if name in _NOT_SHOWN else f" (it is {problem['input']!r})"
    return f"{where}: {message[:1].lower()}{message[1:]}{shown}."


def did_you_mean(name: str, known: Collection[str]) -> str:
    close = closest(name, sorted(known))
    return f" Did you mean {close}?" if close else ""


def readable_broker(broker: SecretStr | None) -> SecretStr | None:
    """Refuses what would be read wrongly: a / or # in a password ends the host, and errors would quote a part of it. Raises
    :class:`ValueError`.
    """
    for url in broker.get_secret_value().split(";") if broker is not None else ():
        try:
            _ = urlsplit(url).port
        except ValueError:
            raise ValueError(
                "a broker is redis://:PASSWORD@HOST:6379/0 or amqp://USER:PASSWORD@HOST//, with a number as its port. Write "
                "characters such as / # @ : of a password as %2F %23 %40 %3A"
            ) from None
    return broker
