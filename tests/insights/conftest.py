"""One Spark for all tests of marts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.classic import end_jvm
from evenflow.spark.session import session_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = Connection.parse("spark_default", "spark-local://?cores=1")
# Plans that see a few thousand rows are interpreted: to compile them takes far longer.
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Its JVM ends with it: others in this process are to have theirs, with their own options."""
    with session_for(LOCAL, app_name="marts", conf=FEW_ROWS, progress=lambda *_: None) as session:
        yield session
    end_jvm()
