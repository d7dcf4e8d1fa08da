"""The Spark UI of a session or of what a try has submitted: where it is, told while it lives, so that the API can show it to
people.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evenflow.errors import ApiRefused, NoContext
from evenflow.spark import driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evenflow.spark.stages import Keep


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUi:
    """As a driver tells it, and as it is kept with the try. ``proxy_base`` is what its links begin with, where its session has been
    told so. That of a Spark Connect server is shared: it shows what tasks of all DAGs do there.
    """

    application_id: str
    url: str
    proxy_base: str = ""
    is_shared: bool = False


def ui_told(spark: SparkSession, keep: Keep, url: str | None) -> None:
    """``url`` is that of a Spark Connect server, which does not say it by itself. Without one nothing is told."""
    with suppress(Exception):  # a name that is not known here, or a server that does not say its id
        if (found := url or spark.sparkContext.uiWebUrl) is not None:
            base = spark.conf.get("spark.ui.proxyBase", "") or ""
            app_id = str(spark.conf.get("spark.app.id"))
            ui = SparkUi(application_id=app_id, url=_by_number(found), proxy_base=base, is_shared=url is not None)
            keep("spark_ui", asdict(ui))


async def ui_of_run_told(folder: Path, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> bool:
    """Whether the driver of a try has said where its Spark UI is, which is then passed on."""
    told = await asyncio.to_thread(driver.read, folder / driver.UI)
    if told is None:
        return False
    with suppress(OSError, ApiRefused, NoContext):  # a name that is not known here, or an API that does not keep it
        url = await asyncio.to_thread(_by_number, told["url"])
        await ask("record", {"kind": "spark_ui", "value": asdict(SparkUi(**{**told, "url": url}))})
    return True


def _by_number(url: str) -> str:
    """The API asks for no names: one may mean another host there, and another one each time."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    family, *_, address = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0]
    host = f"[{address[0]}]" if family is socket.AF_INET6 else address[0]
    return f"{parts.scheme}://{host}:{port}"
