"""Connections as text: a URI, or Airflow's JSON, and its parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from evenflow.errors import ConnectionNotFound

EXTRA = "__extra__"  # the part of the query with an extra that is not a flat dict of strings, as JSON
JSON_FIELDS = ("conn_type", "login", "password", "host", "port", "schema", "extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionUri:
    """A URI and its parts, unquoted. ``extra`` is its query; ``scheme`` is empty for text that is not a URI, such as
    ``local[2]``.
    """

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
    def parse(cls, conn_id: str, uri: str) -> Self:
        """``uri`` may also be Airflow's JSON form, ``{"conn_type": ..., "login": ..., "extra": {...}}``.

        Raises :class:`ConnectionNotFound` for what cannot be read; the message does not show it, because it may hold a password.
        """
        from urllib.parse import parse_qsl, unquote, urlsplit

        if uri.lstrip().startswith("{"):
            uri = uri_of_json(conn_id, uri)
        if "://" not in uri:
            return cls(conn_id=conn_id, uri=uri)
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError as error:
            raise ConnectionNotFound(
                f"Connection {conn_id!r} is not a URI: {_without_values(error)}. Write "
                "scheme://login:password@host:port/path?key=value"
            ) from None
        return cls(
            conn_id=conn_id,
            uri=uri,
            scheme=parts.scheme,
            login=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            host=unquote(parts.hostname) if parts.hostname else None,
            port=port,
            path=unquote(parts.path.removeprefix("/")),
            extra=dict(parse_qsl(parts.query, keep_blank_values=True)),
        )

    @property
    def conn_type(self) -> str:
        """The scheme under Airflow's name: ``postgres``, ``http``, ``spark_local``."""
        return {"postgresql": "postgres"}.get(self.scheme, self.scheme.replace("-", "_"))

    @property
    def schema(self) -> str:
        """The path, under Airflow's name."""
        return self.path

    @property
    def extra_dejson(self) -> dict[str, Any]:
        """Returns ``extra``, or the JSON of its ``__extra__`` when values are more than text."""
        nested = json.loads(self.extra[EXTRA]) if EXTRA in self.extra else {}
        return {**{key: value for key, value in self.extra.items() if key != EXTRA}, **nested}

    def get_uri(self) -> str:
        return self.uri


def uri_of_json(conn_id: str, text: str) -> str:
    """Returns the URI of a JSON text. Raises :class:`ConnectionNotFound`, which does not show the text."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ConnectionNotFound(f"Connection {conn_id!r} begins with a brace but is no JSON object. Write a URI, or valid JSON.")
    return uri_of_fields(conn_id, fields)


def uri_of_fields(conn_id: str, fields: Mapping[str, Any]) -> str:
    """Returns the URI of a connection in parts, as Airflow exports it. Raises :class:`ConnectionNotFound`."""
    from urllib.parse import quote, urlencode

    unknown = sorted(set(fields) - {*JSON_FIELDS, "description", "conn_id", "id"})
    if unknown:
        raise ConnectionNotFound(
            f"Connection {conn_id!r} has the unknown field {unknown[0]!r}. There are: {', '.join(JSON_FIELDS)}, description."
        )
    scheme = str(fields.get("conn_type") or "generic").replace("_", "-")
    login, password = fields.get("login"), fields.get("password")
    user = quote(str(login or ""), safe="") + (f":{quote(str(password), safe='')}" if password else "")
    host = quote(str(fields.get("host") or ""), safe="[]:" if str(fields.get("host") or "").startswith("[") else "")
    port = f":{int(fields['port'])}" if fields.get("port") else ""
    extra = fields.get("extra") or {}
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            raise ConnectionNotFound(f"Connection {conn_id!r} has an extra that is no JSON object.") from None
    flat = isinstance(extra, dict) and all(isinstance(value, str) for value in extra.values())
    query = urlencode(extra if flat else {EXTRA: json.dumps(extra)}) if extra else ""
    path = quote(str(fields.get("schema") or ""), safe="/")
    return f"{scheme}://{user + '@' if user else ''}{host}{port}/{path}" + (f"?{query}" if query else "")


def _without_values(error: ValueError) -> str:
    """Returns the error without the part of the URI that the standard library quotes, which may be the end of a password."""
    return str(error).partition(" as ")[0].partition(": ")[0]
