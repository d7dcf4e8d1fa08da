"""DAGs of which all runs are past, around changes of summer time in many zones, for hosts in different zones to decide alike."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from evenflow import DAG, CronDataIntervalTimetable, DeadlineAlert, DeadlineReference, EventsTimetable, task

COUNT = 13


def told(subject: object = None) -> None:
    """A callback."""


@task
def tell(
    dag_run: Any = None, ds: str = "", ts: str = "", data_interval_start: Any = None, data_interval_end: Any = None
) -> list[str]:
    times = (dag_run.logical_date, data_interval_start, data_interval_end, dag_run.run_after)
    return [ds, ts, *(time.isoformat() for time in times)]


@task(retries=2, retry_delay=timedelta(seconds=1), retry_exponential_backoff=2)
def stumble(ti: Any = None) -> int:
    if ti.try_number < 2:
        raise ValueError("at first")
    return int(ti.try_number)


def make(name: str, schedule: Any, zone: str | None, begin: tuple[int, ...], end: tuple[int, ...], **options: Any) -> DAG:
    zoned = {"tzinfo": ZoneInfo(zone)} if zone else {}
    start, stop = datetime(*begin, **zoned), datetime(*end, **zoned)
    with DAG(name, schedule=schedule, start_date=start, end_date=stop, catchup=True, max_active_runs=1, **options) as dag:
        tell()
    return dag


# A tick that does not exist, one that is there twice, half an hour of summer time, a zone that moved for good.
make("berlin_spring", "30 2 * * *", "Europe/Berlin", (2025, 3, 29), (2025, 4, 1))
make("berlin_autumn", "30 2 * * *", "Europe/Berlin", (2025, 10, 25), (2025, 10, 28))
make("berlin_hours", "0 * * * *", "Europe/Berlin", (2025, 10, 26), (2025, 10, 26, 4))
make("st_johns_spring", "15 1,2,3 * * *", "America/St_Johns", (2025, 3, 9), (2025, 3, 10))
make("st_johns_autumn", "0 0-4 * * *", "America/St_Johns", (2025, 11, 2), (2025, 11, 2, 5))
make("lord_howe", "45 1,2 * * *", "Australia/Lord_Howe", (2025, 4, 5), (2025, 4, 7))
make("kathmandu", "@daily", "Asia/Kathmandu", (1985, 12, 31), (1986, 1, 3))
make(
    "new_york_interval",
    CronDataIntervalTimetable("0 6 * * *", "America/New_York"),
    "America/New_York",
    (2025, 11, 1),
    (2025, 11, 4),
)
make("new_york_delta", timedelta(hours=12), "America/New_York", (2025, 3, 8), (2025, 3, 10))
make(
    "events",
    EventsTimetable([datetime(2025, 3, 30, 2, 30), datetime(2025, 10, 26, 2, 30)]),
    "Europe/Berlin",
    (2025, 1, 1),
    (2025, 12, 31),
)
make("no_zone", "0 2 * * *", None, (2025, 3, 29), (2025, 4, 1))
make(
    "deadlines",
    "0 22 * * *",
    "America/St_Johns",
    (2025, 3, 8),
    (2025, 3, 10),
    deadline=[
        DeadlineAlert(DeadlineReference.TIME_OF_DAY("02:30", "America/St_Johns"), callback=told),
        DeadlineAlert(DeadlineReference.TIME_OF_DAY("03:00"), timedelta(hours=1), callback=told),
    ],
)

with DAG("stumbles", schedule="@daily", start_date=datetime(2025, 3, 8, tzinfo=ZoneInfo("America/New_York")),
         end_date=datetime(2025, 3, 10, tzinfo=ZoneInfo("America/New_York")), catchup=True, max_active_runs=1):  # fmt: skip
    stumble() >> tell()

with DAG("next_year", schedule="30 2 29 3 *", start_date=datetime(2025, 3, 1, tzinfo=ZoneInfo("Europe/Berlin"))):
    tell()
