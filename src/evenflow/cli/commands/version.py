"""``evenflow version``: what is installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from evenflow.cli.output.replies import Reply, replies
from evenflow.runtime.embedded.programs import MAJOR
from evenflow.store.db.migrate import OLDEST_SCHEMA, SCHEMA_VERSION


@replies
def version() -> Reply:
    """Versions of Evenflow and of the software below it."""
    found = {
        "evenflow": installed("evenflow"),
        "schema": str(SCHEMA_VERSION) if OLDEST_SCHEMA == SCHEMA_VERSION else f"{OLDEST_SCHEMA} to {SCHEMA_VERSION}",
        "python": platform.python_version(),
        "postgresql": f"{MAJOR} (embedded)",
        "psycopg": installed("psycopg"),
        "pyspark": _optional("pyspark"),
        "platform": platform.platform(),
    }
    return Reply(found, "\n".join(f"{name:<11} {value or 'not installed'}" for name, value in found.items()))


def _optional(distribution: str) -> str | None:
    try:
        return installed(distribution)
    except PackageNotFoundError:
        return None
