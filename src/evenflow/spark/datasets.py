"""What OpenLineage calls the places that Spark reads and writes: a namespace and a name. Credentials in addresses are left out.

What else is said of them, and of runs, are facets.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

PRODUCER = f"pkg:pypi/evenflow@{version('evenflow')}"  # a package URL: OpenLineage wants a URI
EVENTS = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
_FACETS = "https://openlineage.io/spec/facets"

# Of a JDBC address: what OpenLineage calls the database, the port that is meant without one, and the schema that is.
_DATABASES = {
    "postgresql": ("postgres", 5432, "public"),
    "mysql": ("mysql", 3306, None),
    "mariadb": ("mysql", 3306, None),
    "sqlserver": ("sqlserver", 1433, "dbo"),
}


_PARTITIONS = re.compile(r"(?<=[^/])(/[^/=?#]+=[^/?#]*)+/?$")  # at the end of a path


class Dataset(NamedTuple):
    namespace: str
    name: str


def of_path(address: str) -> Dataset:
    """Of files: the address of their folder, as Hadoop writes it. A folder of a partition, as ``day=2026-01-31``, is a part of its
    dataset: a partition that gets no rows is written by itself.
    """
    parts = urlsplit(_PARTITIONS.sub("", address) or address)
    scheme, path = {"s3a": "s3", "s3n": "s3", "": "file"}.get(parts.scheme, parts.scheme), parts.path.rstrip("/") or "/"
    if scheme == "file":
        return Dataset("file", path)
    place = _without_password(parts.netloc) if scheme in ("abfs", "abfss", "wasb", "wasbs") else parts.netloc.rpartition("@")[2]
    return Dataset(f"{scheme}://{place}", path if scheme in ("hdfs", "viewfs", "webhdfs") else path.lstrip("/") or "/")


def of_jdbc(url: str, table: str) -> Dataset | None:
    """Returns None for a query, which is not a table."""
    name = table.strip().replace('"', "").replace("`", "")
    if not name or name.startswith("(") or " " in name:
        return None
    address = _without_login(url.removeprefix("jdbc:"))
    parts = urlsplit(address)
    if not parts.netloc:
        return Dataset(address, name)
    scheme, port, schema = _DATABASES.get(parts.scheme, (parts.scheme, None, None))
    host = parts.netloc
    namespace = f"{scheme}://{host if port is None or re.search(r':[0-9]+$|[(),]', host) else f'{host}:{port}'}"
    if schema is not None and "." not in name:
        name = f"{schema}.{name}"
    database = unquote(parts.path.strip("/"))
    return Dataset(namespace, f"{database}.{name}" if database else name)


def _without_login(address: str) -> str:
    """Without name and password, which drivers take before the host, as ``thin:scott/tiger@``, or among settings, which each of
    them writes in its own way: what follows the first of these is left out.
    """
    bare = re.sub(r"//[^/]*@", "//", address, count=1)
    bare = re.sub(r"^((?:\w+:)++)[^/@:].*(?=@)", r"\1", bare)
    return re.split(r"(?i)[?;]|[,:(&/]?\b\w*(?:user|uid|passw|pwd|secret|token|key)\w*\s*=", bare, maxsplit=1)[0]


def _without_password(netloc: str) -> str:
    """Before the host stands a container."""
    container, at, host = netloc.rpartition("@")
    return f"{container.partition(':')[0]}{at}{host}"


def facet(schema: str, **fields: Any) -> dict[str, Any]:
    """Of an event or a dataset, by the schema's version and name, such as ``1-2-0/ParentRunFacet``."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{schema}.json#/$defs/{schema.partition('/')[2]}", **fields}


def own_facet(**fields: Any) -> dict[str, Any]:
    """Of a run, with what OpenLineage has no facet for."""
    return {"_producer": PRODUCER, "_schemaURL": f"{EVENTS}/RunFacet", **fields}
