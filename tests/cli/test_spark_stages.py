"""``evenflow spark explain`` in a terminal of 80 columns (R-SP3)."""

from __future__ import annotations

import io

from rich.console import Console

from evenflow.cli.commands.spark import stages_table
from evenflow.spark.status import ApplicationFigures, StageFigures

MIB = 2**20
FULL = StageFigures(
    stage_id=123,
    name="insertInto at a place with a long name",
    tasks=200,
    done_tasks=200,
    wall_s=1234.5,
    longest_task_s=100.1,
    gc_s=10.5,
    input_bytes=10 * MIB,
    shuffle_read_bytes=20 * MIB,
    spilled_disk_bytes=30 * MIB,
    peak_memory_bytes=200 * 40 * MIB,
)
SMALL = StageFigures(stage_id=1, name="insertInto at a place with a long name", tasks=2, done_tasks=2, wall_s=0.5)


def printed(*stages: StageFigures) -> list[str]:
    text = io.StringIO()
    application = ApplicationFigures(application_id="app-1", is_local=True, cores=2, memory_mib=1024, stages=stages)
    Console(file=text, width=80).print(stages_table(application))
    return text.getvalue().splitlines()


def test_a_stage_is_a_line_in_80_columns() -> None:
    lines = printed(FULL, SMALL)
    *_, full, small = lines
    assert len(lines) == 4, "titles in two lines"
    assert max(map(len, lines)) <= 80
    assert full.endswith("insertI…   200 1234.5 s 100.1 s 10.5 s 10.0 MiB 20.0 MiB 30.0 MiB 40.0 MiB")
    assert small.startswith("    1 insert")


def test_what_no_stage_has_done_has_no_column() -> None:
    lines = printed(SMALL)
    assert lines[0].split() == ["stage", "what", "tasks", "time"]
    assert SMALL.name in lines[1]
