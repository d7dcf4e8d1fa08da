"""How the history pipeline of this machine gets its database and its folder."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, urlencode

from psycopg import conninfo

from evenflow.errors import SettingsError
from evenflow.insights.returning import CONNECTION, LAKE
from evenflow.runtime.settings import Settings
from evenflow.sdk.secrets.connections import env_name
from evenflow.store.db.connect import connect
from evenflow.store.serving.reporting import grant_returning

ROLE = "evenflow_history"  # of PostgreSQL


def with_history(settings: Settings, database_url: str, *, by: str) -> Settings:
    """Returns these settings with the connection of the pipeline, unless it is defined already. Its role gets a new password each
    time, so no person has to keep it.
    """
    if CONNECTION in settings.connections or env_name(CONNECTION) in os.environ:
        return settings
    assert settings.history is not None
    if settings.sandbox != "none" and not settings.own_database_url:
        raise SettingsError(
            "The history pipeline reads the embedded database, which EVENFLOW_SANDBOX=landlock keeps tasks away from. Use a "
            "PostgreSQL of yours (EVENFLOW_DATABASE_URL), or set EVENFLOW_SANDBOX=none."
        )
    with connect(database_url, name="history") as conn:
        granted = grant_returning(conn, ROLE, by=by)
    assert granted.password is not None
    uri = connection_uri(database_url, ROLE, granted.password, settings.history)
    return settings.model_copy(update={"connections": {**settings.connections, CONNECTION: uri}})


def connection_uri(database_url: str, role: str, password: str, lake: Path) -> str:
    """Returns the database's connection for another role; all parts but the database's name are extras."""
    parts = {name: str(value) for name, value in conninfo.conninfo_to_dict(database_url).items() if value is not None}
    extra = {name: value for name, value in parts.items() if name not in ("user", "password", "passfile", "dbname")}
    query = urlencode({**extra, LAKE: str(lake)})
    return f"postgresql://{role}:{quote(password, safe='')}@/{quote(parts.get('dbname', ''), safe='')}?{query}"
