"""Where traces are sent, as people set it. It is read without the extra that sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """``ratio`` of all runs are told. ``public_url`` is where people find the web UI."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ratio: float = 1.0
    public_url: str = ""


def read_headers(text: str) -> dict[str, str]:
    """Returns headers as ``OTEL_EXPORTER_OTLP_HEADERS`` has them: ``name=value,name=value``. Raises :class:`ValueError`, which
    does not repeat them.
    """
    headers = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, is_pair, value = part.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not is_pair or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii() or not value.isprintable():
            raise ValueError("write headers as name=value, several with commas between, such as: authorization=Bearer%20abc")
        headers[name] = value
    return headers
