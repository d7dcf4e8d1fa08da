"""The environment that pyspark reads, for as long as a session lives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

# Each of these makes pyspark choose by itself where to run, against the connection.
CHOOSES_FOR_US = ("MASTER", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_REMOTE")


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """``changes`` made and :data:`CHOOSES_FOR_US` hidden; at the end all is as before, also what pyspark has set meanwhile."""

    def ours(name: str) -> bool:
        return name in changes or name == "MASTER" or name.startswith(("SPARK_", "PYSPARK_"))

    before = {name: value for name, value in os.environ.items() if ours(name)}
    for name in CHOOSES_FOR_US:
        os.environ.pop(name, None)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in [name for name in os.environ if ours(name)]:
            del os.environ[name]
        os.environ.update(before)
