"""Connections: the systems that a task's code talks to, chosen outside the code.

A connection is a URI. It is searched in the environment of the task (``EVENFLOW_CONN_<ID>``, the id in upper case with ``_`` for
every character that is neither letter nor digit; the worker sets these from ``[connections]`` in ``evenflow.toml``), then in the
directory of secret files, then in the database. :mod:`evenflow.sdk.secrets.lookup` does the search.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.object_names import CONNECTION
from evenflow.errors import ConnectionNotFound
from evenflow.sdk.logged import Logged
from evenflow.sdk.secrets import lookup
from evenflow.sdk.secrets.uris import ConnectionUri


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(ConnectionUri):
    """The address of a system, and the login there."""

    @classmethod
    def get(cls, conn_id: str) -> Connection:
        """Works like :func:`get_connection`."""
        return get_connection(conn_id)


class BaseHook(Logged):
    """Airflow's base of hooks, with the part that authors use to get a connection."""

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """Works like :func:`get_connection`."""
        return get_connection(conn_id)


def env_name(conn_id: str) -> str:
    """Returns the environment variable of the connection."""
    return lookup.env_name(CONNECTION, conn_id)


def get_connection(conn_id: str) -> Connection:
    """Returns the connection of this id, if the running task's DAG may use it.

    Raises :class:`ConnectionNotFound`, which says what to type.
    """
    uri = lookup.find(CONNECTION, conn_id)
    if uri is None:
        raise ConnectionNotFound(
            f'{lookup.not_defined(CONNECTION, conn_id)} Add {conn_id} = "scheme://host:port" under '
            f"[connections] in evenflow.toml, or type: export {env_name(conn_id)}=scheme://host:port"
            f"{lookup.where_else(CONNECTION, conn_id)}"
        )
    return Connection.parse(conn_id, uri)
