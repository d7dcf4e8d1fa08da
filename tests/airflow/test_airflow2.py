"""R-AF1: files that were written for Airflow 2 load, and a warning at each line says what to write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.airflow.airflow2.homes import home_of, is_no_more, provider_of
from tests.airflow.conftest import run_inside

FILES = {
    "classic": """
from airflow import DAG
from airflow.operators.bash_operator import BashOperator
from airflow.operators.dummy_operator import DummyOperator
from airflow.operators.python_operator import PythonOperator
from airflow.models import Variable
from airflow.utils.dates import days_ago
from airflow.utils.helpers import chain
from datetime import timedelta
with DAG("classic", schedule_interval="@daily", start_date=days_ago(2), concurrency=3, default_view="graph", sla_miss_callback=id):
    begin = DummyOperator(task_id="begin", task_concurrency=2, sla=timedelta(hours=1))
    call = PythonOperator(task_id="call", python_callable=print, provide_context=True, trigger_rule="none_failed_or_skipped")
    told = BashOperator(task_id="told", bash_command="echo {{ execution_date }} {{ next_ds }} {{ prev_ds }}", xcom_push=True)
    chain(begin, call, told)
""",
    "datasets": """
from airflow.datasets import Dataset
from airflow.decorators import dag, task

@dag(schedule=[Dataset("s3://a")])
def datasets():
    @task(outlets=[Dataset("s3://b")])
    def make():
        pass
    make()

datasets()
""",
    "query": """
from airflow.models import DAG
from airflow.operators.postgres_operator import PostgresOperator
from airflow.utils.decorators import apply_defaults

with DAG("query"):
    PostgresOperator(task_id="ask", sql="select 1", postgres_conn_id="warehouse", database="d")
""",
    "rules": """
from airflow import DAG
from airflow.operators.empty import EmptyOperator
from airflow.utils.trigger_rule import TriggerRule
from airflow.sdk import TriggerRule as RuleOfSdk

with DAG("rules"):
    EmptyOperator(task_id="a", trigger_rule=TriggerRule.NONE_FAILED_OR_SKIPPED)
    EmptyOperator(task_id="b", trigger_rule=RuleOfSdk.DUMMY)
    EmptyOperator(task_id="c", trigger_rule=TriggerRule.ALL_DONE)
""",
    "dates": """
from airflow import DAG
from airflow.operators.empty import EmptyOperator
from airflow.models.dag import DagStateChangeCallback
from airflow.utils.dates import datetime, days_ago, timedelta
from airflow.utils.file import TemporaryDirectory
from airflow.utils.timezone import make_aware
from airflow.utils.weekday import WeekDay

limit = timedelta(hours=1)
with DAG("recent", start_date=datetime(2021, 1, 1), dagrun_timeout=limit, default_args={"start_date": days_ago(2)}, catchup=False):
    EmptyOperator(task_id="a")
with DAG("of_tasks", schedule="@daily"):
    EmptyOperator(task_id="a", start_date=make_aware(datetime(2022, 1, 1)), end_date=datetime(2023, 1, 1))
    EmptyOperator(task_id="b", start_date=datetime(2021, 1, 1), end_date=datetime(2023, 1, 1))
""",
    "later": """
from datetime import datetime
from airflow import DAG
from airflow.operators.empty import EmptyOperator

with DAG("later", schedule="@daily", start_date=datetime(2021, 1, 1), catchup=True):
    EmptyOperator(task_id="a", start_date=datetime(2022, 1, 1))
    EmptyOperator(task_id="b", end_date=datetime(2022, 1, 1))
""",
    "pods": """
from kubernetes.client import models as k8s
from airflow.sdk import DAG, task

with DAG("pods"):
    container = k8s.V1Container(name="base", resources=k8s.V1ResourceRequirements(limits={"memory": "4Gi"}))

    @task(executor_config={"pod_override": k8s.V1Pod(spec=k8s.V1PodSpec(containers=[container], node_selector={"disk": "ssd"}))})
    def sized():
        pass

    sized()
""",
    "rights": """
from kubernetes.client import models as k8s
from airflow.sdk import DAG, task

with DAG("rights"):

    pod = k8s.V1Pod(spec=k8s.V1PodSpec(containers=[], host_network=True))

    @task(executor_config={"pod_override": pod, "pod_template_file": "x"})
    def mighty():
        pass

    mighty()
""",
    "subdag": """
from datetime import datetime
from airflow import DAG
from airflow.operators.dummy_operator import DummyOperator
from airflow.operators.subdag_operator import SubDagOperator

def inner(outer, name, every="@daily"):
    dag = DAG(f"{outer}.{name}", schedule_interval=every, start_date=datetime(2024, 1, 1))
    DummyOperator(task_id="load", dag=dag) >> DummyOperator(task_id="check", dag=dag)
    return dag

dag = DAG("subdag", schedule_interval="@daily", start_date=datetime(2024, 1, 1))
begin = DummyOperator(task_id="begin", dag=dag)
one = SubDagOperator(task_id="one", subdag=inner("subdag", "one"), dag=dag)
two = SubDagOperator(task_id="two", subdag=inner("subdag", "two", dag.schedule_interval), dag=dag, trigger_rule="all_done")
begin >> one >> two >> DummyOperator(task_id="end", dag=dag)
""",
    "smart": "from airflow.sensors.smart_sensor import SmartSensorOperator\n",
    "cleanup": "from airflow.models import DagRun, SlaMiss, TaskFail\n",
    "annotated": """
from airflow.models.dag import ScheduleInterval
from airflow.models.xcom_arg import PlainXComArg
from airflow.operators.weekday import WeekDay

every: ScheduleInterval = "@daily"
""",
    "configuration": """
from airflow.configuration import conf
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("configuration"):
    EmptyOperator(task_id=conf.get("kubernetes", "NAMESPACE"), doc=conf.get("core", "BASE_LOG_FOLDER"))
""",
    "variable": """
from airflow import DAG
from airflow.models import Variable

with DAG("variable", tags=[Variable.get("team", default_var="none"), Variable.get("region")]):
    pass
""",
    "variable_of_sdk": "from airflow.sdk import Variable\n\nREGION = Variable.get('region')\n",
    "connection": "from airflow.hooks.base_hook import BaseHook\n\nHOST = BaseHook.get_connection('warehouse').host\n",
    "lambda": "from airflow.providers.amazon.aws.operators.aws_lambda import AwsLambdaInvokeFunctionOperator\n",
    "dbt": "from airflow.providers.dbt.cloud.operators.dbt import DbtCloudRunJobOperator\n",
    "newer": "from airflow.providers.http.operators.https import HttpsOperator\n",
    "ssh": "from airflow.contrib.operators.ssh_operator import SSHOperator\n",
    "hive": "from airflow.operators.hive_operator import HiveOperator\n",
    "mssql": "from airflow.hooks.mssql_hook import MsSqlHook\n",
    "own": "from airflow.operators.ours import OursOperator\n",
    "bundled": """
from airflow.operators.python import PythonOperator
import airflow.models

assert not hasattr(airflow.models, "ours")
""",
}


@pytest.fixture(scope="module")
def loaded(airflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("airflow2")
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    found: dict[str, Any] = json.loads(run_inside(airflow_python, "load_files.py", str(folder)).splitlines()[-1])
    return found


inside = [pytest.mark.system, pytest.mark.xdist_group("airflow")]


def _at(warnings: list[str], line: int) -> str:
    return "\n".join(warning for warning in warnings if warning.split(":")[1] == str(line))


class TestInside:
    pytestmark = inside

    def test_imports_and_settings_mean_what_has_taken_their_place(self, loaded: dict[str, Any]) -> None:
        assert loaded["classic"]["error"] == ""
        (spec,) = loaded["classic"]["dags"].values()
        assert (spec["schedule"]["cron"], spec["max_active_tasks"]) == ("0 0 * * *", 3)
        begin, call, told = spec["tasks"]
        assert (begin["operator"], begin["max_active_tis_per_dag"]) == ("EmptyOperator", 2)
        assert call["trigger_rule"] == "none_failed_min_one_success"
        assert told["upstream"] == [1]

    def test_each_line_is_told_what_to_write(self, loaded: dict[str, Any]) -> None:
        warnings = loaded["classic"]["warnings"]
        assert "Write from airflow.providers.standard.operators.empty import EmptyOperator" in _at(warnings, 4)
        assert "start_date=datetime(2026, 1, 1)" in _at(warnings, 7)
        assert "Write from airflow.sdk import chain" in _at(warnings, 8)
        assert {"schedule_interval=", "concurrency=", "default_view="} <= set(_at(warnings, 10).replace(" ", "\n").split("\n"))
        assert "sla_miss_callback= does nothing since Airflow 3" in _at(warnings, 10)
        assert "sla= does nothing since Airflow 3. Write deadline=DeadlineAlert(...) of the DAG." in _at(warnings, 11)
        assert "Leave it out" in _at(warnings, 12)
        assert [int(warning.split(":")[1]) for warning in warnings] == sorted(int(warning.split(":")[1]) for warning in warnings)
        assert "Write logical_date" in _at(warnings, 13)
        assert "prev_ds is of Airflow 2: a task that asks for it fails." in _at(warnings, 13)

    def test_members_of_the_enum_of_rules_that_there_are_no_more(self, loaded: dict[str, Any]) -> None:
        assert loaded["rules"]["error"] == ""
        rules = [task["trigger_rule"] for task in loaded["rules"]["dags"]["rules"]["tasks"]]
        assert rules == ["none_failed_min_one_success", "always", "all_done"]
        warnings = loaded["rules"]["warnings"]
        assert "Write TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS" in _at(warnings, 8)
        assert "Write TriggerRule.ALWAYS" in _at(warnings, 9)
        assert "trigger_rule" not in _at(warnings, 10)

    def test_dates_of_tasks_that_hold_no_run_back(self, loaded: dict[str, Any]) -> None:
        assert loaded["dates"]["error"] == ""
        dags = loaded["dates"]["dags"]
        assert dags["recent"]["start_date"].startswith("2021-01-01")
        assert (dags["of_tasks"]["start_date"][:10], dags["of_tasks"]["end_date"][:10]) == ("2021-01-01", "2023-01-01")

    def test_dates_of_tasks_that_would_hold_runs_back_are_refused(self, loaded: dict[str, Any]) -> None:
        assert "task 'a': Evenflow has no start_date of a task that is later" in loaded["later"]["error"]
        assert "task 'b': Evenflow has no end_date of a task that is earlier" in loaded["later"]["error"]

    def test_the_pod_of_an_executor_config_is_a_pod_override(self, loaded: dict[str, Any]) -> None:
        assert loaded["pods"]["error"] == ""
        assert loaded["pods"]["dags"]["pods"]["tasks"][0]["pod_override"] == {
            "spec": {
                "containers": [{"name": "try", "resources": {"limits": {"memory": "4Gi"}}}],
                "nodeSelector": {"disk": "ssd"},
            }
        }

    def test_an_executor_config_grants_no_rights(self, loaded: dict[str, Any]) -> None:
        assert "'hostNetwork', which only the template of the executor may say" in loaded["rights"]["error"]
        assert "executor_config with 'pod_template_file'" in loaded["rights"]["error"]

    def test_datasets_are_assets(self, loaded: dict[str, Any]) -> None:
        (spec,) = loaded["datasets"]["dags"].values()
        assert [asset["name"] for asset in spec["assets"]] == ["s3://a", "s3://b"]

    def test_an_operator_of_one_kind_of_database_is_one_that_asks_any(self, loaded: dict[str, Any]) -> None:
        assert loaded["query"]["error"] == ""
        assert loaded["query"]["dags"]["query"]["tasks"][0]["operator"] == "PostgresOperator"

    def test_a_dag_inside_of_a_dag_is_a_group_of_it(self, loaded: dict[str, Any]) -> None:
        assert loaded["subdag"]["error"] == ""
        assert "The attribute schedule_interval of a DAG is of Airflow 2. Write schedule." in _at(loaded["subdag"]["warnings"], 15)
        (spec,) = loaded["subdag"]["dags"].values()
        tasks = {task["task_id"]: task for task in spec["tasks"]}
        ids = [task["task_id"] for task in spec["tasks"]]
        assert set(ids) == {"begin", "load", "check", "two.load", "two.check", "end"}
        upstream = {name: [ids[index] for index in task.get("upstream", ())] for name, task in tasks.items()}
        assert upstream["load"] == ["begin"]
        assert upstream["two.load"] == ["check"]
        assert upstream["end"] == ["two.check"]
        assert tasks["two.load"]["trigger_rule"] == "all_done"
        assert [group["group_id"] for group in spec["groups"]] == ["one", "two"]

    def test_names_of_annotations(self, loaded: dict[str, Any]) -> None:
        assert loaded["annotated"]["error"] == ""

    def test_options_of_the_configuration_under_their_old_names(self, loaded: dict[str, Any]) -> None:
        assert loaded["configuration"]["error"] == ""
        assert loaded["configuration"]["dags"]["configuration"]["tasks"][0]["task_id"] == "default"

    def test_a_value_that_no_environment_has_is_told_with_where_it_may_stand(self, loaded: dict[str, Any]) -> None:
        for name in ("variable", "variable_of_sdk"):
            told = loaded[name]["error"].partition("\n")[0]
            assert "Variable 'region' is not known where the file is loaded" in told
            assert "{{ var.value.region }}" in told
            assert "AIRFLOW_VAR_REGION" in told
        assert "AIRFLOW_CONN_WAREHOUSE" in loaded["connection"]["error"].partition("\n")[0]

    def test_what_nothing_has_taken_the_place_of_is_refused_with_what_to_do(self, loaded: dict[str, Any]) -> None:
        assert "Make the sensor deferrable" in loaded["smart"]["error"]
        assert "Use a DeadlineAlert" in loaded["cleanup"]["error"]
        assert "pip install apache-airflow-providers-ssh" in loaded["ssh"]["error"]
        assert "pip install apache-airflow-providers-amazon\n" in f"{loaded['lambda']['error']}\n"
        assert "pip install apache-airflow-providers-dbt-cloud" in loaded["dbt"]["error"]
        assert "apache-airflow-providers-http 6." in loaded["newer"]["error"]
        assert "pip install apache-airflow-providers-apache-hive\n" in loaded["hive"]["error"]
        assert "pip install apache-airflow-providers-microsoft-mssql\n" in loaded["mssql"]["error"]
        assert "OursOperator" in loaded["own"]["error"]

    def test_what_airflow_redirects_by_itself_stays_its_own(self, loaded: dict[str, Any]) -> None:
        assert loaded["bundled"]["error"] == ""
        assert "Please use" in _at(loaded["bundled"]["warnings"], 2)


def test_names_are_known_without_airflow() -> None:
    moved, gone = home_of("SSHOperator"), home_of("SmartSensorOperator")
    assert moved is not None
    assert provider_of(moved.module) == "apache-airflow-providers-ssh"
    assert gone is not None
    assert gone.kind == "gone"
    assert home_of("Nonesuch") is None
    assert provider_of("airflow.providers.cncf.kubernetes.operators.pod") == "apache-airflow-providers-cncf-kubernetes"
    assert is_no_more("airflow.contrib.hooks.x")
    assert not is_no_more("airflow.models")
