"""Connections: where a task's code finds the systems it talks to, chosen outside the code.

A connection is a URI in the environment of the task: ``EVENFLOW_CONN_<ID>``, the id in upper case with ``_`` for every character
that is neither letter nor digit. The worker sets these from ``[connections]`` in ``evenflow.toml``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from evenflow.errors import ConnectionNotFound

ENV_PREFIX = "EVENFLOW_CONN_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A URI and its parts, unquoted. ``extra`` is its query; ``scheme`` is empty for text that is no URI, such as ``local[2]``."""

    conn_id: str
    uri: str = field(repr=False)
    scheme: str = ""
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    path: str = ""  # without the leading slash
    extra: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, conn_id: str, uri: str) -> Connection:
        """Raises :class:`ConnectionNotFound` for what cannot be read; the message does not show it, for it may hold a password."""
        from urllib.parse import parse_qsl, unquote, urlsplit

        if "://" not in uri:
            return cls(conn_id=conn_id, uri=uri)
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError as error:
            raise ConnectionNotFound(
                f"Connection {conn_id!r} is not a URI: {error}. Set {env_name(conn_id)} to "
                "scheme://login:password@host:port/path?key=value"
            ) from None
        return cls(
            conn_id=conn_id,
            uri=uri,
            scheme=parts.scheme,
            login=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            host=parts.hostname,
            port=port,
            path=unquote(parts.path.removeprefix("/")),
            extra=dict(parse_qsl(parts.query, keep_blank_values=True)),
        )


def env_name(conn_id: str) -> str:
    return ENV_PREFIX + re.sub(r"[^A-Z0-9]", "_", conn_id.upper())


def get_connection(conn_id: str) -> Connection:
    """The connection of this id. Raises :class:`ConnectionNotFound`, which says what to type."""
    uri = os.environ.get(env_name(conn_id))
    if not uri:
        known = ", ".join(sorted(name.removeprefix(ENV_PREFIX).lower() for name in os.environ if name.startswith(ENV_PREFIX)))
        raise ConnectionNotFound(
            f'Connection {conn_id!r} is not defined (defined: {known or "none"}). Add {conn_id} = "scheme://host:port" under '
            f"[connections] in evenflow.toml, or type: export {env_name(conn_id)}=scheme://host:port"
        )
    return Connection.parse(conn_id, uri)
