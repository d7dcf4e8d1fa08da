"""R-AF1: plugins of a home of Airflow bring timetables, macros, listeners and links; none hears of what warms a template."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.membership.environments import Environments
from evenflow.processor.checking import CheckedFile, check_files
from evenflow.processor.parsing import ParseLimits
from evenflow.processor.service import AIRFLOW_MODULE
from tests.airflow.conftest import run_inside
from tests.running import running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.xdist_group("airflow")]

PLUGIN = """
from pathlib import Path

from airflow.plugins_manager import AirflowPlugin
from airflow.listeners import hookimpl
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import BaseOperatorLink
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable

HEARD = Path(__file__).parents[1] / "heard"

class Weekly(Timetable):
    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        start = restriction.earliest if last_automated_data_interval is None else last_automated_data_interval.end
        return DagRunInfo.interval(start, start.add(days=7))

    def infer_manual_data_interval(self, *, run_after):
        if run_after.year == 2020:
            raise ValueError("no shop yet")
        if run_after.year == 2021:
            return super().infer_manual_data_interval(run_after=run_after)
        if run_after.year == 2019:
            return DataInterval(run_after, run_after.subtract(days=7))
        monday = run_after.start_of("week")
        return DataInterval(monday.subtract(days=7), monday)

def price(pieces):
    return 3 * pieces

class Listener:
    @hookimpl
    def on_task_instance_running(self, previous_state, task_instance):
        with HEARD.open("a") as heard:
            heard.write(f"{task_instance.dag_id}.{task_instance.task_id} runs\\n")

    @hookimpl
    def on_task_instance_success(self, previous_state, task_instance):
        with HEARD.open("a") as heard:
            heard.write(f"{task_instance.dag_id}.{task_instance.task_id} is done\\n")

class Shelf(BaseOperatorLink):
    name = "The shelf"
    operators = [BashOperator]

    def get_link(self, operator, *, ti_key):
        return f"https://shop.example/{ti_key.run_id}/{operator.task_id}"

class Till(BaseOperatorLink):
    name = "The till"
    operators = [PythonOperator]

    def get_link(self, operator, *, ti_key):
        return "https://shop.example/till"

class Script(BaseOperatorLink):
    name = "A script"

    def get_link(self, operator, *, ti_key):
        return "javascript:alert(1)"

class Broken(BaseOperatorLink):
    name = "Broken"

    def get_link(self, operator, *, ti_key):
        raise ValueError("no link")

class Nameless(BaseOperatorLink):
    @property
    def name(self):
        raise ValueError("no name")

    @property
    def operators(self):
        raise ImportError("its provider is gone")

    def get_link(self, operator, *, ti_key):
        return "https://shop.example/nameless"

class Shop(AirflowPlugin):
    name = "shop"
    fastapi_apps = [{"app": object(), "url_prefix": "/shop", "name": "Shop"}]
    external_views = [{"name": "Till", "href": "https://shop.example", "destination": "nav"}]

    @classmethod
    def on_load(cls, *args, **kwargs):
        with HEARD.with_name("loaded").open("a") as loaded:
            loaded.write("once\\n")

    macros = [price]
    listeners = [Listener()]
    timetables = [Weekly]
    operator_extra_links = [Nameless(), Shelf(), Till()]
    global_operator_extra_links = [Broken(), Nameless(), Script()]
"""
FILE = """
from shop_plugin import Weekly
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
import pendulum

with DAG("shop", schedule=Weekly(), start_date=pendulum.datetime(2026, 1, 1), catchup=True):
    BashOperator(task_id="told", bash_command="echo it costs {{ macros.shop.price(2) }}")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    files = (("plugins", "shop_plugin.py", PLUGIN), ("plugins", "torn_plugin.py", "import no_such_till"), ("dags", "shop.py", FILE))
    for folder, name, text in files:
        (home / folder).mkdir(exist_ok=True)
        (home / folder / name).write_text(text)
    return home


@pytest.fixture(scope="module")
def plugged(airflow_python: Path, home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_inside(airflow_python, "plugged.py", str(home), str(home / "dags")).splitlines()[-1])
    return found


def test_a_timetable_of_a_plugin_makes_runs(plugged: dict[str, Any]) -> None:
    assert plugged["said"]["tell"] == "parsed", plugged["said"]
    (forecast,) = plugged["defined"]["forecasts"].values()
    assert len(json.loads(forecast)["runs"]) > 1


def test_a_timetable_of_a_plugin_says_which_interval_a_run_by_hand_has(plugged: dict[str, Any]) -> None:
    """That of its tasks; a run of the schedule keeps its own, and one that it knows none for is of its date alone."""
    assert plugged["intervals"] == {
        "manual 2026-01-08": ["2025-12-29", "2026-01-05"],
        "scheduled 2026-01-08": ["2026-01-08", "2026-01-08"],
        "manual 2021-01-08": ["2021-01-08", "2021-01-08"],
        "manual 2020-01-08": "The timetable of DAG 'shop' does not say which interval a run of 2020-01-08T00:00:00+00:00 has: "
        "ValueError: no shop yet",
        "manual 2019-01-08": "The timetable of DAG 'shop' does not say which interval a run of 2019-01-08T00:00:00+00:00 has: "
        "BadSchedule: its end, 2019-01-01T00:00:00+00:00, is before its start, 2019-01-08T00:00:00+00:00",
    }


def test_a_macro_of_a_plugin_is_in_templates(plugged: dict[str, Any]) -> None:
    assert "it costs 6" in plugged["log"]


def test_a_plugin_is_loaded_once(plugged: dict[str, Any], home: Path) -> None:
    assert plugged["log"]
    assert (home / "loaded").read_text() == "once\n"


def test_links_of_a_plugin_are_told_for_their_operators(plugged: dict[str, Any]) -> None:
    assert plugged["links"] == [{"The shelf": "https://shop.example/r/told"}]
    assert plugged["log"].count("A link cannot be made") == 3, "and what listens hears of the end all the same"


def test_a_listener_of_a_plugin_hears_of_tasks_and_of_no_others(plugged: dict[str, Any], home: Path) -> None:
    assert plugged["log"]
    assert (home / "heard").read_text().splitlines() == ["shop.told runs", "shop.told is done"]


def _warnings(python: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("AIRFLOW_HOME", str(home))
    (home / "plugins").mkdir(exist_ok=True)
    checked = asyncio.run(
        check_files(
            [CheckedFile(home / "dags", "shop.py")] if (home / "dags").is_dir() else [],
            ParseLimits(timeout_s=60, memory_mib=2000),
            environment="a",
            environments=Environments(AIRFLOW_MODULE, {"a": str(python)}),
        )
    )
    assert checked.findings == []
    return list(checked.plugins)


def test_pages_of_a_plugin_are_told_and_all_else_of_it_works(
    airflow_python: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin that cannot be loaded is told, too; the file that uses the other one loads."""
    pages, torn = _warnings(airflow_python, home, monkeypatch)
    assert pages.startswith(
        "The plugin 'shop' ($PLUGINS_FOLDER/shop_plugin.py) has external_views and fastapi_apps, which Evenflow"
    )
    assert torn == (
        f"The plugin {home / 'plugins' / 'torn_plugin.py'} cannot be loaded: No module named 'no_such_till'. No task has its "
        "macros, listeners and links. Mend it, or remove it."
    )


def test_a_plugin_that_ends_its_process_is_told(airflow_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "ends.py").write_text("import os\nos._exit(3)\n")
    (warning,) = _warnings(airflow_python, tmp_path, monkeypatch)
    assert warning.startswith("A plugin of environment 'a' cannot be loaded: ")


def test_commands_tell_of_pages_of_plugins(airflow_python: Path, home: Path) -> None:
    """By the processor, which looks at them in a process of its own."""
    environments = {"EVENFLOW_ENVIRONMENTS": json.dumps({"a": str(airflow_python)}), "EVENFLOW_DAGS_ENVIRONMENT": "a"}
    with running_evenflow(**environments, AIRFLOW_HOME=str(home)) as running:
        (running.dags / "shop.py").write_text(FILE.replace("catchup=True", "catchup=False"))

        def told(*command: str) -> str:
            return " ".join(running.evenflow(*command).stdout.split())

        page = ": The plugin 'shop' ($PLUGINS_FOLDER/shop_plugin.py) has external_views and fastapi_apps"
        wait_until(lambda: page in told("dags", "list"), "the warning", within_s=400)
        wait_until(lambda: "Weekly" in told("dags", "list", "--json"), "the DAG with the plugin's timetable", within_s=400)
        assert page in told("dags", "sources")
        assert "2 warnings about plugins of environments" in told("status")
