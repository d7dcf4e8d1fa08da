"""R-AF1: timetables and weight strategies of authors are asked where their file is loaded, and only there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.limits import FORECAST_RUNS
from tests.airflow.conftest import run_inside

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("airflow")]

BEGIN = """
from datetime import datetime, timedelta, timezone
import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, AsyncCallback, CronPartitionTimetable, CronTriggerTimetable
from airflow.sdk import DeadlineAlert, DeadlineReference
from airflow.sdk.definitions.deadline import BaseDeadlineReference, VariableInterval
from airflow.task.priority_strategy import PriorityWeightStrategy
from airflow.timetables import interval, trigger
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from dateutil.relativedelta import relativedelta

FIRST = pendulum.datetime(2025, 1, 31)

class EverySecondDay(Timetable):
    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        start = restriction.earliest if last_automated_data_interval is None else last_automated_data_interval.end
        return DagRunInfo.interval(start, start.add(days=2))

def make(dag_id, schedule, start_date=FIRST, **settings):
    with DAG(dag_id, schedule=schedule, start_date=start_date, catchup=True):
        EmptyOperator(task_id="a", **settings)
"""
FILES = {
    "times": """
make("own", EverySecondDay())
make("with_assets", AssetOrTimeSchedule(timetable=EverySecondDay(), assets=[Asset("x")]))
make("months", relativedelta(months=1))
make("days", relativedelta(days=2))
make("at_once", CronTriggerTimetable("0 6 * * *", timezone="UTC", run_immediately=timedelta(hours=1)))
make("of_core", trigger.CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin"))
make("several_of_core", trigger.MultipleCronTriggerTimetable("0 6 * * *", "0 7 * * *", timezone="UTC"))
make("delta_of_core", interval.DeltaDataIntervalTimetable(timedelta(hours=3)))
make("offset", "0 6 * * *", datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))))
""",
    "raises": """
class Raises(Timetable):
    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        return 1 / 0

make("raises", Raises())
""",
    "stands_still": """
class StandsStill(Timetable):
    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        return DagRunInfo.exact(FIRST)

make("stands_still", StandsStill())
""",
    "partitioned": 'make("partitioned", CronPartitionTimetable("0 6 * * *", timezone="UTC"))',
    "weights": """
class ByLength(PriorityWeightStrategy):
    def get_weight(self, ti):
        return 10 * len(ti.task_id) + ti.try_number

with DAG("weights", schedule=None):
    own = EmptyOperator(task_id="own", weight_rule=ByLength(), priority_weight=5)
    EmptyOperator(task_id="above") >> own
    path = "airflow.example_dags.plugins.decreasing_priority_weight_strategy.DecreasingPriorityStrategy"
    EmptyOperator(task_id="named", weight_rule=path)
    EmptyOperator.partial(task_id="mapped", weight_rule=ByLength()).expand(doc=["1", "2"])
""",
    "no_weight": """
class Asks(PriorityWeightStrategy):
    def get_weight(self, ti):
        return ti.dag_run.conf["weight"]

make("no_weight", None, weight_rule=Asks())
""",
    "no_number": """
class Says(PriorityWeightStrategy):
    def get_weight(self, ti):
        return "high"

make("no_number", None, weight_rule=Says())
""",
    "deadlines": """
async def late(text):
    pass

def alert(reference, **settings):
    return DeadlineAlert(reference=reference, **{"interval": timedelta(hours=1), "callback": AsyncCallback(late), **settings})

references = [
    DeadlineReference.DAGRUN_QUEUED_AT,
    DeadlineReference.DAGRUN_LOGICAL_DATE,
    DeadlineReference.FIXED_DATETIME(datetime(2030, 5, 4)),
    DeadlineReference.AVERAGE_RUNTIME(5, 2),
]
with DAG("deadlines", schedule=None, deadline=[alert(reference) for reference in references]):
    EmptyOperator(task_id="a")
""",
    "no_deadline": """
class Own(BaseDeadlineReference):
    pass

async def late(text):
    pass

with DAG("no_deadline", schedule=None, deadline=DeadlineAlert(Own(), VariableInterval("late_s"), AsyncCallback(late))):
    EmptyOperator(task_id="a")
""",
    "unknown": 'make("unknown", None, weight_rule="no.such.Rule")',
    "harmless": """
from airflow.sdk.api.datamodels._generated import DagRunType

with DAG("harmless", schedule=None, allowed_run_types=list(DagRunType), access_control={}):
    EmptyOperator(task_id="a", wait_for_past_depends_before_skipping=True)
""",
    "limited": """
from airflow.sdk.api.datamodels._generated import DagRunType

rules = {"a": {"can_read"}}
with DAG("limited", schedule="@daily", start_date=FIRST, allowed_run_types=DagRunType.SCHEDULED, access_control=rules):
    EmptyOperator(task_id="a", wait_for_past_depends_before_skipping=True, depends_on_past=True)
""",
}


@pytest.fixture(scope="module")
def loaded(airflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("own_code")
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(BEGIN + text)
    found: dict[str, Any] = json.loads(run_inside(airflow_python, "load_files.py", str(folder)).splitlines()[-1])
    return found


def test_what_a_schedule_cannot_say_is_computed_ahead(loaded: dict[str, Any]) -> None:
    assert loaded["times"]["error"] == ""
    forecasts, dags = loaded["times"]["forecasts"], loaded["times"]["dags"]
    assert {dag_id for dag_id, spec in dags.items() if spec["schedule"]["kind"] == "code"} == set(forecasts)
    assert set(forecasts) == {"own", "with_assets", "months", "at_once"}
    begins = {dag_id: [start[:10] for start, _, _ in found["runs"]] for dag_id, found in forecasts.items()}
    assert {len(found) for found in begins.values()} == {FORECAST_RUNS}
    assert begins["own"][:3] == begins["with_assets"][:3] == ["2025-01-31", "2025-02-02", "2025-02-04"]
    assert begins["months"][:3] == ["2025-01-31", "2025-02-28", "2025-03-28"]
    assert dags["own"]["schedule"] == {"kind": "code", "code": "EverySecondDay"}
    assert dags["with_assets"]["schedule"]["assets"] == {"all": ["x"]}


def test_timetables_of_core_and_offsets_are_schedules(loaded: dict[str, Any]) -> None:
    found = {dag_id: spec["schedule"] for dag_id, spec in loaded["times"]["dags"].items()}
    assert found["of_core"] == {"kind": "cron", "cron": "0 6 * * *", "timezone": "Europe/Berlin", "trigger": True}
    assert found["several_of_core"] == {"kind": "cron", "cron": "0 6 * * *", "also": ["0 7 * * *"], "trigger": True}
    assert found["delta_of_core"] == {"kind": "delta", "every_s": 10800.0}
    assert found["days"] == {"kind": "delta", "every_s": 172800.0, "trigger": True}
    assert found["offset"]["timezone"] == "+05:30"


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("raises", "The timetable of DAG 'raises' has raised ZeroDivisionError: division by zero"),
        ("stands_still", "DAG 'stands_still': The timetable made a run for 2025-01-31"),
        ("partitioned", "Evenflow has no timetable airflow.sdk.definitions.timetables.trigger.CronPartitionTimetable"),
        ("no_weight", "strategy Asks of task 'a' of DAG 'no_weight' has raised AttributeError: 'FirstTry' object has no attribute"),
        ("no_number", "task 'a': Evenflow has no weight 'high', as Says says. Return an integer"),
        ("no_deadline", "Evenflow has no deadline by Own. Say DeadlineReference.DAGRUN_QUEUED_AT"),
        ("no_deadline", "Evenflow has no deadline with an interval of type VariableInterval. Say interval=timedelta(...)"),
        ("limited", "DAG 'limited': Evenflow has no allowed_run_types without backfill, manual"),
        ("limited", "Evenflow has no access_control. Roles say what a person may do, and scopes in which DAGs: evenflow users"),
        ("limited", "task 'a': Evenflow has no wait_for_past_depends_before_skipping. Leave it out"),
        ("unknown", "task 'a': Evenflow has no weight rule 'no.such.Rule'. There are: absolute, downstream, upstream, and each"),
    ],
)
def test_what_such_code_does_wrong_is_the_error_of_its_file(loaded: dict[str, Any], file: str, error: str) -> None:
    assert error in loaded[file]["error"]
    assert loaded[file]["dags"] == {}


def test_settings_that_change_nothing_are_not_refused(loaded: dict[str, Any]) -> None:
    """All types of runs are allowed, there is no rule of access, and the task does not depend on its past."""
    assert loaded["harmless"]["error"] == ""


def test_a_strategy_gives_each_task_its_weight(loaded: dict[str, Any]) -> None:
    """The sums of other tasks are of what those say by themselves."""
    (spec,) = loaded["weights"]["dags"].values()
    weights = {task["task_id"]: task.get("priority_weight") for task in spec["tasks"]}
    assert weights == {"own": 30, "above": 6, "named": 4, "mapped": 60}


def test_deadlines_are_evenflows_own(loaded: dict[str, Any]) -> None:
    (spec,) = loaded["deadlines"]["dags"].values()
    references = [{name: value for name, value in each.items() if name != "name"} for each in spec["deadlines"]]
    assert references == [
        {"reference": "queued_at", "interval": 3600.0, "callbacks": 1},
        {"reference": "logical_date", "interval": 3600.0, "callbacks": 1},
        {"reference": "fixed_datetime", "at": "2030-05-04T00:00:00+00:00", "interval": 3600.0, "callbacks": 1},
        {"reference": "average_runtime", "runs": 5, "least": 2, "interval": 3600.0, "callbacks": 1},
    ]
