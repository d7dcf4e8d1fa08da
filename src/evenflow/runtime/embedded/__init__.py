"""The embedded PostgreSQL: a real server in the project's directory, for one machine, with nothing to install.

``server`` starts, shares and stops it; ``account`` decides under which OS account it runs and where its files lie; ``programs``
finds and runs its programs; ``configuration`` has its settings. The reasons: docs/adr/0004-embedded-postgresql.md.
"""

from evenflow.runtime.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
