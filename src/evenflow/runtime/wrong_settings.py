"""Messages about wrong or unknown settings: the place, and a suggestion."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from evenflow.api.tracing.settings import read_headers
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
_ENDPOINTS = {  # what the address of each looks like, and the setting of what is shown there
    "openlineage_url": ("https://host/api/v1/lineage", "openlineage_key"),
    "traces_url": ("http://host:4318/v1/traces", "traces_headers"),
}


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


def readable_headers(headers: SecretStr | None) -> SecretStr | None:
    """Raises :class:`ValueError`, which does not repeat them."""
    read_headers("" if headers is None else headers.get_secret_value())
    return headers


def check_endpoint(setting: str, address: str) -> None:
    """Checks where Evenflow sends what it tells others. Raises :class:`ValueError`, whose text does not repeat the address: a
    password may be in it.
    """
    example, shown = _ENDPOINTS[setting]
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"write it as {example}, and what is to be shown there as {shown}")
