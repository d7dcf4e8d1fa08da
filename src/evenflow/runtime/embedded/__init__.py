"""The embedded PostgreSQL: a real server in the project's directory, for one machine, with nothing to install.

``server`` starts, shares and stops it; ``account`` says which OS account it runs as and where its files lie; ``programs`` finds and
runs what it consists of; ``configuration`` is what it is told. Why it is built this way: docs/adr/0004-embedded-postgresql.md.
"""

from evenflow.runtime.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
