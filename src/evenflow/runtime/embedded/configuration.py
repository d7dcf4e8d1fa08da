"""The settings of the embedded server. Every start writes them anew; a user's own settings come after the include and win."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SETTINGS: dict[str, str] = {
    # Access only through the socket, in a directory that only the server's account may enter.
    "listen_addresses": "''",
    "port": "5432",  # part of the socket's name; nothing listens on the network
    "unix_socket_permissions": "0700",
    "password_encryption": "'scram-sha-256'",
    "max_connections": "100",  # a scheduler takes 5, an API server 11, people the rest
    # Memory: as much as a laptop can spare. The hot tables are a few megabytes.
    "shared_buffers": "128MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    # Durability: an acknowledged commit survives a power cut.
    "fsync": "on",
    "synchronous_commit": "on",
    # WAL: bursts of runs write some 2 kB a task; checkpoints by time, not by volume, halve the full-page images.
    "max_wal_size": "2GB",
    "min_wal_size": "128MB",
    "checkpoint_timeout": "10min",
    # Queue tables are updated all the time: frequent vacuums keep their indexes from growing faster than they are cleaned.
    "autovacuum_naptime": "5s",
    "autovacuum_vacuum_cost_delay": "0",
    # Plans: statements are short and many, so compiling them never pays. The disk is not a spinning one.
    "jit": "off",
    "random_page_cost": "1.1",
    # Text sorts by code point, times are UTC, on every machine alike.
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    "default_text_search_config": "'pg_catalog.simple'",
    "dynamic_shared_memory_type": "posix",
    # Its log: seven files at most, one a weekday, each overwritten after a week.
    "logging_collector": "on",
    "log_filename": "'postgresql-%a.log'",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_line_prefix": "'%m [%p] %a '",
    "log_min_duration_statement": "1s",
    "log_lock_waits": "on",
}

_POSTGRESQL_CONF = """\
include 'evenflow.conf'   # written by Evenflow at every start

# Your own settings go here, and win.
"""

_HBA = """\
# Written by Evenflow at every start: nobody connects without the password, and nobody from the network.
local  all  all  scram-sha-256
"""


def write_configuration(data: Path, *, socket_dir: Path, log_dir: Path, overrides: Mapping[str, str]) -> None:
    """Writes ``evenflow.conf`` and ``pg_hba.conf`` into the data directory, and ``postgresql.conf`` if it is not Evenflow's yet."""
    settings = {**SETTINGS, "unix_socket_directories": _quoted(socket_dir), "log_directory": _quoted(log_dir), **overrides}
    (data / "evenflow.conf").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    (data / "pg_hba.conf").write_text(_HBA)
    main = data / "postgresql.conf"
    if "evenflow.conf" not in main.read_text():
        main.write_text(_POSTGRESQL_CONF)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
