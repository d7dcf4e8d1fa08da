"""What figures of stages mean, as tables: which sentence, which setting with which value (R-SP3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.spark.advice import advise, compare, slowest
from evenflow.spark.status import ApplicationFigures, Query, StageFigures, figures_of, keys_of_plan

MIB = 2**20
PLAIN = StageFigures(
    stage_id=3, name="count", tasks=8, wall_s=10.0, run_s=40.0, median_task_s=5.0, longest_task_s=6.0, median_read_bytes=MIB
)
APPLICATION = ApplicationFigures(application_id="app-1", is_local=False, cores=4, memory_mib=1024, stages=(PLAIN,))


def of(**figures: object) -> ApplicationFigures:
    return replace(APPLICATION, stages=(replace(PLAIN, **figures),))  # type: ignore[arg-type]


SKEW = {"longest_task_s": 40.0, "most_read_bytes": 800 * MIB, "median_read_bytes": 20 * MIB, "keys": ("customer",)}
THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
MERGING = "spark.sql.adaptive.coalescePartitions.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
SPILL = {"spilled_bytes": 300 * MIB, "spilled_disk_bytes": 90 * MIB, "peak_memory_bytes": 100 * MIB}


@pytest.mark.parametrize(
    ("application", "says", "conf"),
    [
        (of(**SKEW), ["task took 40.0 s, the median one 5.0 s", "800.0 MiB instead of 20", "by customer"], {THRESHOLD: "41943040"}),
        (
            of(**{**SKEW, "most_read_bytes": 80 * MIB}),  # less than what is split by itself, in size and against the median
            ["80.0 MiB instead of 20"],
            {THRESHOLD: "41943040", ADVISORY: "41943040", FACTOR: "2"},
        ),
        (of(longest_task_s=40.0, most_read_bytes=MIB), ["Some rows cost more", "No setting helps"], {}),
        (of(**SPILL, shuffle_read_bytes=3200 * MIB), ["300.0 MiB did not fit", "90.0 MiB were"], {PARTITIONS: "32"}),
        (of(**SPILL, shuffle_read_bytes=320 * MIB), ["Spill"], {PARTITIONS: "32", ADVISORY: str(10 * MIB)}),  # else merged again
        (of(**SPILL, input_bytes=MIB), ["Spill"], {"spark.sql.files.maxPartitionBytes": "32m"}),
        (of(gc_s=10.0), ["garbage for 10.0 s, 25 %"], {"spark.executor.memory": "2048m"}),
        (replace(of(gc_s=10.0), is_local=True), ["garbage"], {"spark.driver.memory": "2048m"}),
        (of(tasks=1, shuffle_read_bytes=MIB), ["1 of 4 cores at work for 10.0 s"], {PARTITIONS: "8", MERGING: "false"}),
        (of(tasks=1, input_bytes=MIB), ["Split its input, or call repartition(8)"], {}),
        (
            of(tasks=400, median_task_s=0.01, longest_task_s=0.05, shuffle_read_bytes=640 * MIB),
            ["400 tasks of 10 ms"],
            {PARTITIONS: "10"},
        ),
        (of(failed_tasks=2), ["2 of its tasks failed"], {}),
    ],
)  # fmt: skip
def test_each_figure_has_its_sentence_and_its_setting(
    application: ApplicationFigures, says: list[str], conf: dict[str, str]
) -> None:
    (advice,) = advise(application)
    assert advice.stage_id == 3
    assert advice.conf == conf
    for words in says:
        assert words in advice.text


@pytest.mark.parametrize(
    "application",
    [
        APPLICATION,
        of(longest_task_s=1.9, median_task_s=0.1),  # too short
        of(tasks=1, longest_task_s=5.0, wall_s=1.0),
        of(gc_s=3.9),
        of(spilled_bytes=MIB),  # in memory alone
        replace(APPLICATION, stages=()),
    ],
)
def test_what_is_well_gets_no_advice(application: ApplicationFigures) -> None:
    assert advise(application) == []


def test_the_slowest_stage_comes_first() -> None:
    quick = replace(PLAIN, stage_id=1, wall_s=1.0, failed_tasks=1)
    slow = replace(PLAIN, stage_id=2, wall_s=99.0, failed_tasks=1)
    both = replace(APPLICATION, stages=(quick, slow))
    assert slowest(both) == slow
    assert [each.stage_id for each in advise(both)] == [2, 1]


def test_two_tries_are_compared_by_what_has_changed_much() -> None:
    before = replace(APPLICATION, stages=(PLAIN, replace(PLAIN, stage_id=4, spilled_disk_bytes=MIB)))
    after = replace(APPLICATION, stages=(replace(PLAIN, wall_s=30.0), replace(PLAIN, stage_id=9)))
    assert compare(before, after) == [
        "All stages: 20.0 s, then 40.0 s.",
        "What was spilled to disk: 1.0 MiB, then 0 B.",
        "Stage 3 (count): 10.0 s, then 30.0 s.",
    ]
    assert compare(before, before) == ["Both tries cost the same, as far as their stages tell."]


def test_a_stage_is_read_as_sparks_rest_api_tells_it() -> None:
    told = {
        "status": "COMPLETE",
        "stageId": 7,
        "name": "count at /dags/etl.py:12",
        "numTasks": 2,
        "numCompleteTasks": 1,
        "numActiveTasks": 1,
        "submissionTime": "2026-11-24T08:00:00.500GMT",
        "completionTime": "2026-11-24T08:00:03.000GMT",
        "executorRunTime": 4000,
        "jvmGcTime": 250,
        "shuffleReadBytes": 30,
        "taskMetricsDistributions": {
            "executorRunTime": [1000.0, 3000.0],
            "shuffleReadMetrics": {"readBytes": [10.0, 20.0]},
            "inputMetrics": {"bytesRead": [1.0, 2.0]},
        },
    }
    assert figures_of(told, {7: Query("sum", ("k",))}) == StageFigures(
        stage_id=7,
        name="count at etl.py:12",
        tasks=2,
        done_tasks=1,
        active_tasks=1,
        wall_s=2.5,
        run_s=4.0,
        gc_s=0.25,
        shuffle_read_bytes=30,
        median_task_s=1.0,
        longest_task_s=3.0,
        median_read_bytes=11,
        most_read_bytes=22,
        keys=("k",),
    )
    inner = figures_of({**told, "name": "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768"}, {7: Query("sum", ())})
    assert inner.name == "sum"


def test_keys_are_the_columns_that_a_plan_spreads_rows_by() -> None:
    plan = """
    +- Exchange hashpartitioning(customer#12L, coalesce(day#3, 0), 200), ENSURE_REQUIREMENTS
    +- Exchange hashpartitioning(customer#12L, 200)
    +- Exchange SinglePartition
    """
    assert keys_of_plan(plan) == ("customer", "day")
