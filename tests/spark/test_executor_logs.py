"""What executors of a standalone cluster printed is in the log of a try that failed (R-SP3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.errors import SparkFailed
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.executor_logs import chosen
from evenflow.spark.session import session_for
from tests.spark.servers import standalone_cluster
from tests.spark.test_everywhere import this_python

if TYPE_CHECKING:
    import pandas as pd


def executor(name: str, *, active: bool = True, failed: int = 0, logs: bool = True) -> dict[str, Any]:
    return {"id": name, "isActive": active, "failedTasks": failed, "executorLogs": {"stderr": "http://w/"} if logs else {}}


def test_those_that_died_come_first_and_those_that_did_well_are_silent() -> None:
    every = [
        *(executor(name, failed=failed) for name, failed in (("1", 0), ("2", 1), ("3", 5))),
        executor("4", active=False),
        executor("5", active=False, logs=False),
        executor("6", active=False, failed=2),
    ]
    assert [each["id"] for each in chosen(every)] == ["6", "4", "3"]


@pytest.mark.spark
def test_the_log_of_a_failed_try_has_the_ends_of_what_its_executors_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-SP3: capped, and without values that are called secret."""

    def fails(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import os

        os.write(2, b"x" * 20_000 + b"\nthe last words\npassword=hunter2\n")
        yield from batches
        raise ValueError("no such shop")

    with standalone_cluster(tmp_path) as master:
        uri = f"{master}?python={this_python()}&spark.executor.memory=512m&spark.cores.max=1&spark.task.maxFailures=1"
        conn = Connection.parse("spark_default", uri)
        with (
            pytest.raises(SparkFailed, match="no such shop"),
            session_for(conn, app_name="fails", conf={}, progress=lambda *told: None, keep=lambda *kept: None) as spark,
        ):
            spark.range(2).repartition(1).mapInPandas(fails, "id long").collect()
    log = capsys.readouterr().out
    assert re.search(r"--- stderr of executor 0, the last 16,384 of [\d,]+ bytes", log), log
    assert "the last words" in log
    assert "hunter2" not in log
    assert log.count("x") < 17_000
