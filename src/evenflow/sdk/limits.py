"""Every limit on what an author may write, each with its reason."""

from __future__ import annotations

MAX_ID_LENGTH = 250  # as in Airflow; ids stand in log paths (255 bytes a name) and in indexes
MAX_TASKS = 10_000  # a spec of about 2 MB, parsed and compiled in well under a second
MAX_EDGES = 200_000  # the same, for edges: above it, a node between the two sides says the same with m + n edges instead of m * n
MAX_EXPANSION = 100_000  # instances of a task mapped over literals: the list is in the memory of each process that loads the DAG
MAX_RETRIES = 1_000  # try numbers are 16 bits wide
MAX_XCOM_BYTES = 256 * 1024  # a value crosses a socket, HTTP and the database's shared memory; what is larger belongs into storage
MAX_REASON_CHARS = 2_000  # a reason is read by people, in tables
