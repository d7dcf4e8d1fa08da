"""Stage progress as people see it (R-SP3, first step)."""

from __future__ import annotations

from typing import Any

from evenflow.spark.limits import PROGRESS_STAGES
from evenflow.spark.progress import Stage, StageTeller
from evenflow.spark.served.jobs import name_of
from evenflow.spark.status import short_name


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int, int]] = []
        self.detail: dict[str, Any] = {}

    def __call__(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        self.lines.append((label, done, total))
        self.detail = detail


def test_the_sum_of_all_stages_under_the_name_of_the_one_at_work() -> None:
    told = Told()
    StageTeller(told).tell([Stage(5, "collect", 0, 10), Stage(4, "parquet", 3, 8, active=2), Stage(3, "scan", 6, 6)])
    assert told.lines == [("stage 4: parquet", 9, 24)]
    assert [stage["stage_id"] for stage in told.detail["stages"]] == [4, 5]


def test_nothing_new_and_nothing_at_all_are_not_told() -> None:
    told = Told()
    teller = StageTeller(told)
    teller.tell([Stage(0, "", 1, 2)])
    teller.tell([Stage(0, "", 1, 2)])
    teller.tell([])
    teller.tell([Stage(0, "", 2, 2)])
    assert told.lines == [("stage 0", 1, 2), ("stage 0", 2, 2)]


def test_a_message_stays_small() -> None:
    told = Told()
    StageTeller(told).tell(Stage(n, "", 0, 1) for n in range(1000))
    assert told.lines == [("stage 0", 0, 1000)]
    assert len(told.detail["stages"]) == PROGRESS_STAGES


def test_names_of_stages_are_for_people() -> None:
    assert short_name("parquet at NativeMethodAccessorImpl.java:0") == "parquet"
    assert short_name("$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768") == ""
    assert short_name("count at /dags/etl.py:12") == "count at etl.py:12"


def test_a_query_of_connect_is_called_by_the_kind_of_its_command() -> None:
    """R-SP3: Spark describes it by the whole request, plan and all, as far as it has room."""
    request = 'Spark Connect - session_id: "s"\nuser_context {\n  user_id: "evenflow"\n}\nplan {\n  '
    assert name_of(f"{request}command {{\n    write_operat...") == "write"
    assert name_of(f"{request}root {{\n    common {{\n") == "query"
    assert name_of("count at /dags/sales.py:7") == "count at sales.py:7"
