"""Where the driver of a session has its web page, told while it lives, so that the API can show it to people."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evenflow.spark.stages import Keep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def page_told(spark: SparkSession, keep: Keep, page: str | None) -> None:
    """``page`` is that of a Spark Connect server, which does not say it by itself. Without a page nothing is told."""
    with suppress(Exception):  # a name that is not known here, or a server that does not say its id: that is no failure of the task
        url = page or spark.sparkContext.uiWebUrl
        if url is not None:
            base = spark.conf.get("spark.ui.proxyBase", "")
            keep("spark_ui", {"application_id": spark.conf.get("spark.app.id"), "url": _by_number(url), "proxy_base": base})


def _by_number(url: str) -> str:
    """The API asks for no names: one may mean another host there, and another one each time."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    family, *_, address = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0]
    host = f"[{address[0]}]" if family is socket.AF_INET6 else address[0]
    return f"{parts.scheme}://{host}:{port}"
