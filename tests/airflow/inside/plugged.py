"""Prints what a plugin of a home of Airflow brings into a file and a try: its timetable, its macros, its listener."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LINKS = os.open(os.path.join(sys.argv[1], "links"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
HOME, ROOT = Path(sys.argv[1]), Path(sys.argv[2])
os.environ["AIRFLOW_HOME"] = str(HOME)

from evenflow.airflow.installed import configure  # noqa: E402

configure()
from evenflow.airflow.running import task_process  # noqa: E402

task_process.ahead()
from evenflow.airflow.loading.reader import MixedReader, load_mixed  # noqa: E402
from evenflow.airflow.running.manual_intervals import with_interval  # noqa: E402
from evenflow.airflow.running.supervision import supervise  # noqa: E402
from evenflow.contracts.airflow.of_try import AirflowTry  # noqa: E402
from evenflow.errors import BadSchedule  # noqa: E402
from evenflow.processor.parse_process import answer  # noqa: E402
from evenflow.sdk.trying.runner import TryContext  # noqa: E402


class Nowhere:
    """A channel that leads nowhere, but prints the links that it is told."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if question == "record" and arguments["kind"] == "links":
            os.write(LINKS, json.dumps(arguments["value"]).encode() + b"\n")
        return {}

    def xcom_pull(self, *what: Any) -> tuple[bool, Any]:
        return False, None

    def xcom_push(self, key: str, value: Any) -> None:
        """Does nothing."""


def defined() -> dict[str, Any]:
    job = {"root": str(ROOT), "file": "shop.py", "default_timezone": "UTC", "environment": "a", "memory_mib": 900, "pasts": {}}
    said, body = answer(MixedReader("airflow"), job)
    return {"said": said, "defined": json.loads(body or b"{}")}


def intervals() -> dict[str, Any]:
    dag = load_mixed(ROOT / "shop.py", ROOT).foreign["shop"]
    found: dict[str, Any] = {}
    for run_type, year in (("manual", 2026), ("scheduled", 2026), ("manual", 2021), ("manual", 2020), ("manual", 2019)):
        date = datetime(year, 1, 8, tzinfo=UTC)
        dates = {"logical_date": date, "data_interval_start": date, "data_interval_end": date, "run_after": date}
        try:
            told = with_interval(dag, TryContext(dag_id="shop", run_id="r", task_id="told", run_type=run_type, **dates))
            found[f"{run_type} {date:%Y-%m-%d}"] = [f"{told.data_interval_start:%Y-%m-%d}", f"{told.data_interval_end:%Y-%m-%d}"]
        except BadSchedule as error:
            found[f"{run_type} {date:%Y-%m-%d}"] = str(error)
    return found


def tried() -> str:
    dags = load_mixed(ROOT / "shop.py", ROOT).foreign
    context = TryContext(dag_id="shop", run_id="r", task_id="told", run_after=datetime.now(UTC))
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(writing, 1)
        supervise(AirflowTry(context, Nowhere(), {"told": 0}), dags, ROOT, "shop.py")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        log = pipe.read()
    os.wait()
    return log


print(
    json.dumps(
        {
            **defined(),
            "intervals": intervals(),
            "log": tried(),
            "links": [json.loads(line) for line in (HOME / "links").read_text().splitlines()],
        }
    )
)
