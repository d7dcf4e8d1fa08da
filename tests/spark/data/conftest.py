"""A JVM takes 10 s of CPU: all tests of this package share one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    local = Connection.parse("spark_default", "spark-local://?cores=2")
    with session_for(local, app_name="data", conf={}, progress=lambda *_: None) as session:
        yield session
