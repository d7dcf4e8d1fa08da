"""A column of a list is written twice: in the statement that reads it, and in the record that REST answers with. The API, its
description, the client, `--json` and the table of the command line follow.
"""

from __future__ import annotations

import re

import pytest
from psycopg import Connection
from pydantic import BaseModel, Field

from evenflow.cli.output.replies import print_records, titles
from evenflow.contracts.rest import assets, backfills, dags, runs, settings, tasks
from evenflow.store.db.sql import sql

LISTS: dict[str, tuple[type[BaseModel], set[str]]] = {  # columns that only the API needs, beside the place of cursors
    "views/list_runs": (runs.RunSummary, {"run_key"}),
    "views/list_runs_in_scope": (runs.RunSummary, {"run_key"}),
    "views/list_tasks": (tasks.InstanceSummary, set()),
    "views/list_run_events": (runs.RunHistoryEntry, set()),
    "views/list_task_events": (tasks.TaskHistoryEntry, set()),
    "views/list_versions": (dags.DagVersion, set()),
    "backfills/list_all": (backfills.Backfill, set()),
    "assets/list_assets": (assets.AssetSummary, set()),
    "triggers/list_waiting": (tasks.WaitingTrigger, set()),
    "settings/list_changes": (settings.SettingVersion, set()),
}


@pytest.mark.parametrize("statement", LISTS)
def test_a_statement_reads_what_its_record_has(statement: str, db: Connection) -> None:
    record, hidden = LISTS[statement]
    text = sql(statement)
    found = db.execute(text, dict.fromkeys(re.findall(r"%\((\w+)\)s", str(text))), prepare=False)
    assert found.description is not None
    assert {column.name for column in found.description} - hidden - {"place"} == set(record.model_fields) - {"unset"}


class Coloured(runs.RunName):
    """As a record is after somebody has added a column to it."""

    colour: str = Field(title="colour", description="Of the run.")
    wheels: int | None = Field(title="wheels")
    unseen: str


def test_a_field_with_a_title_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    named = {"dag_id": "d", "run_id": "r", "state": "running"}
    items = [Coloured(**named, colour=colour, wheels=None, unseen="hidden") for colour in ("red", "blue")]
    assert titles(Coloured) == {"colour": "colour", "wheels": "#wheels"}
    print_records(items, Coloured, empty="None.")
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["colour", "red", "blue"]


@pytest.mark.parametrize("record", [record for record, _ in LISTS.values()], ids=lambda record: record.__name__)
def test_titles_of_a_list_differ(record: type[BaseModel]) -> None:
    assert len(titles(record)) == len(set(titles(record).values())) >= 3
