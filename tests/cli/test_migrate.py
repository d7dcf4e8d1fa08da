"""R-AF1: ``evenflow migrate``: which files of Airflow's run here, and which can be written as Evenflow's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenflow.airflow.migration.judging import judge
from evenflow.airflow.migration.rewriting import rewrite
from evenflow.sdk.loading.loader import load_file
from tests.cli.conftest import Evenflow

MOVES = """\
from datetime import datetime

from airflow import DAG  # the DAG
from airflow.operators.bash_operator import BashOperator
from airflow.operators.dummy_operator import DummyOperator
from airflow.operators.python_operator import PythonOperator
from airflow.exceptions import AirflowSkipException


def greet(ds):
    if not ds:
        raise AirflowSkipException


with DAG(
    "grüße",
    default_args={"provide_context": True, "retries": 1, "task_concurrency": 2},
    default_view="graph",
    schedule_interval="@daily",  # each day
    start_date=datetime(2026, 1, 1), concurrency=3,
    orientation="LR",
) as dag:
    begin = DummyOperator(task_id="begin")
    greeted = PythonOperator(task_id="greet", provide_context=True, python_callable=greet)
    begin >> greeted >> BashOperator(task_id="told", bash_command="echo {{ ds }}")
"""
STAYS = "from airflow.providers.amazon.aws.hooks.s3 import S3Hook\nfrom airflow.sdk import DAG\n"


def _file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_file_whose_names_all_have_a_counterpart_is_written_as_evenflows(tmp_path: Path) -> None:
    file = _file(tmp_path, "moves.py", MOVES)
    done = rewrite(file)
    assert done.remarks == []
    assert done.text is not None
    assert "airflow" not in done.text.replace("AirflowSkip", "")
    assert (
        "\nfrom evenflow import DAG, BashOperator, EmptyOperator, PythonOperator  # the DAG\nfrom evenflow.exceptions" in done.text
    )
    assert '    schedule="@daily",  # each day\n' in done.text
    file.write_text(done.text, encoding="utf-8")
    spec = load_file(file, tmp_path).dags["grüße"].to_spec()
    assert [task.task_id for task in spec.tasks] == ["begin", "greet", "told"]
    assert (spec.max_active_tasks, spec.schedule.cron) == (3, "@daily")


OLD = """\
from airflow import DAG
from airflow.models import Variable
from airflow.operators.bash import BashOperator
from airflow.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.utils.trigger_rule import TriggerRule


def own(concurrency):
    return Variable.get("x", default_var=concurrency)


with DAG("old", default_args={"trigger_rule": "none_failed_or_skipped"}, default_view="graph", orientation="LR"):
    first = BashOperator(task_id="dummy", bash_command="true", xcom_push=True, trigger_rule="dummy")
    second = TriggerDagRunOperator(task_id="b", trigger_dag_id="x", execution_date="{{ ds }}", trigger_rule=TriggerRule.DUMMY)
    first.trigger_rule = "dummy"
    first >> second
    print(own(concurrency=1))
"""


def test_settings_of_which_it_is_certain_get_their_name_of_today(tmp_path: Path) -> None:
    done = rewrite(_file(tmp_path, "old.py", OLD))
    assert done.remarks == []
    assert done.text is not None
    for now in (
        'Variable.get("x", default=concurrency)',
        'with DAG("old", default_args={"trigger_rule": "none_failed_min_one_success"}):',
        'task_id="dummy", bash_command="true", do_xcom_push=True, trigger_rule="always")',
        'logical_date="{{ ds }}", trigger_rule=TriggerRule.ALWAYS)',
        'first.trigger_rule = "always"',
        "own(concurrency=1)",
    ):
        assert now in done.text
    (tmp_path / "old.py").write_text(done.text, encoding="utf-8")
    assert "old" in load_file(tmp_path / "old.py", tmp_path).dags


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("def f(execution_date): ...", "Write logical_date."),
        ("f = lambda next_ds, **_: next_ds", "Write data_interval_end | ds."),
        ("def f(**kwargs): return kwargs['execution_date']", "Write logical_date."),
        ("def f(context): return context['tomorrow_ds']", "Write macros.ds_add(ds, 1)."),
        ("def f(context): return context.get('prev_ds')", "Evenflow's context has no prev_ds."),
        ("def f(ti): return ti.execution_date", "ti.execution_date is of Airflow 2."),
        ("t = 'echo {{ next_ds }}'", "Write data_interval_end | ds."),
        ("t = '{{ dag_run.execution_date }}'", "Write logical_date."),
        ("t = '{{ conf.get(1) }}'", "Evenflow's context has no conf."),
        ("t = f'{{{{ next_ds }}}} {f}'", "Write data_interval_end | ds."),
        ("t = 'old.sql'", "old.sql:2: execution_date is of Airflow 2."),
    ],
)
def test_an_entry_of_the_old_context_is_left_to_people_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "old.sql").write_text("select\n'{{ execution_date }}'\n")
    done = rewrite(_file(tmp_path, "old.py", f"from airflow import DAG\n\n{line}\n"))
    assert done.text is None
    assert [remark.line for remark in done.remarks] == [3]
    assert told in done.remarks[0].message


@pytest.mark.parametrize(
    "line",
    [
        "x = {'start_date': 1}['start_date']",
        "t = '{{ ds }} {% set next_ds = ds %}{{ next_ds }}'",
        "def f(start_date, conf=None): ...",
    ],
)
def test_names_that_only_look_like_old_entries_are_in_nobodys_way(tmp_path: Path, line: str) -> None:
    done = rewrite(_file(tmp_path, "old.py", f"from airflow import DAG\n\n{line}\n"))
    assert done.text == f"from evenflow import DAG\n\n{line}\n"


def test_a_comment_outlives_the_line_of_its_import(tmp_path: Path) -> None:
    text = (
        "from airflow import DAG\nfrom airflow.decorators import task  # of ours\nfrom airflow.utils.task_group import TaskGroup\n"
    )
    assert rewrite(_file(tmp_path, "a.py", text)).text == "from evenflow import DAG, task, TaskGroup\n# of ours\n"


def test_a_name_without_a_counterpart_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    done = rewrite(_file(tmp_path, "stays.py", STAYS))
    assert done.text is None
    assert [(remark.line, "S3Hook" in remark.message) for remark in done.remarks] == [(1, True)]


@pytest.mark.parametrize("text", ["import airflow\n", "from airflow.models import *\n", "def (:\n"])
def test_what_cannot_be_judged_name_by_name_is_refused(tmp_path: Path, text: str) -> None:
    assert rewrite(_file(tmp_path, "a.py", text)).text is None


def test_a_file_without_airflow_stays_as_it_is(tmp_path: Path) -> None:
    text = "def f(concurrency): ...\nf(concurrency=1)\n"
    assert rewrite(_file(tmp_path, "a.py", text)).text == text


def test_names_of_time_zones_are_asked_of_the_module(tmp_path: Path) -> None:
    done = rewrite(_file(tmp_path, "a.py", "from airflow.utils.timezone import utcnow as now\nprint(now())\n"))
    assert done.text == "from evenflow import timezone\nprint(timezone.utcnow())\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from datetime import timezone\nfrom airflow.utils.timezone import utcnow\n", "timezone is something else here, too"),
        ("from airflow.utils.timezone import utcnow\ndef f(utcnow=None): return utcnow\n", "utcnow is something else here"),
        ("if 1: from airflow.sdk import DAG, AirflowSkipException\n", "it would be no Python"),
        ("from airflow.sdk import DAG\nx = " + "-" * 200_000 + "1\n", "It is no Python"),
        (b"# -*- coding: latin-1 -*-\nfrom airflow.sdk import DAG  # \xe9\n", "Save it as UTF-8"),
    ],
)
def test_what_would_be_broken_is_left_alone(tmp_path: Path, text: str | bytes, told: str) -> None:
    (tmp_path / "odd.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = rewrite(tmp_path / "odd.py")
    assert found.text is None
    assert told in found.remarks[0].message
    judge(tmp_path / "odd.py")


def test_the_ends_of_lines_stay(evenflow: Evenflow, tmp_path: Path) -> None:
    moves = tmp_path / "moves.py"
    moves.write_bytes(b"from airflow.sdk import DAG\r\n\r\nwith DAG('a'):\r\n    pass\r\n")
    assert evenflow("migrate", "rewrite", str(moves), "--write").returncode == 0
    assert moves.read_bytes() == b"from evenflow import DAG\r\n\r\nwith DAG('a'):\r\n    pass\r\n"


def test_imports_alone_say_what_is_refused_and_which_providers_are_needed(tmp_path: Path) -> None:
    text = (
        "from airflow.contrib.operators.ssh_operator import SSHOperator\n"
        "from airflow.sensors.smart_sensor import SmartSensorOperator\n"
        "from airflow.sdk import CronPartitionTimetable\n"
        "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator\n"
        "from airflow.utils.email import send_email\n"
    )
    judged = judge(_file(tmp_path, "a.py", text))
    assert any(remark.severity == "error" for remark in judged.remarks)
    assert [(remark.line, remark.severity) for remark in judged.remarks] == [(1, "warning"), (2, "error"), (3, "error")]
    assert judged.needs == ["apache-airflow-providers-cncf-kubernetes", "apache-airflow-providers-ssh"]


def test_check_by_the_command_line(evenflow: Evenflow, tmp_path: Path) -> None:
    _file(tmp_path, "moves.py", MOVES)
    _file(tmp_path, "stays.py", STAYS + "from airflow.sensors.smart_sensor import SmartSensorOperator\n")
    checked = evenflow("migrate", "check", str(tmp_path), "--json")
    assert checked.returncode == 1
    told = json.loads(checked.stdout)
    assert [(Path(file["path"]).name, file["runs"]) for file in told["files"]] == [("moves.py", True), ("stays.py", False)]


def test_rewrite_by_the_command_line(evenflow: Evenflow, tmp_path: Path) -> None:
    moves = _file(tmp_path, "moves.py", MOVES)
    _file(tmp_path, "stays.py", STAYS + "from airflow.operators.subdag import SubDagOperator\n")
    shown = evenflow("migrate", "rewrite", str(tmp_path))
    assert "+from evenflow import DAG" in shown.stdout
    assert shown.returncode == 1
    assert moves.read_text(encoding="utf-8") == MOVES
    assert evenflow("migrate", "rewrite", str(moves), "--write").returncode == 0
    assert "from evenflow import DAG" in moves.read_text(encoding="utf-8")


def test_what_does_not_load_is_as_it_was_with_all_that_imports_it(evenflow: Evenflow, tmp_path: Path) -> None:
    texts = {
        "rule.py": 'from airflow import DAG\nRULE = "none_failed_or_skipped"\nDAG("r", access_control={"a": {"b"}})\n',
        "uses.py": "from airflow import DAG\nfrom rule import RULE\nDAG('u')\n",
        "good.py": "from airflow import DAG\nDAG('g')\n",
    }
    for name, text in texts.items():
        _file(tmp_path, name, text)
    done = evenflow("migrate", "rewrite", str(tmp_path), "--write")
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "rule.py").read_text() == texts["rule.py"]
    assert (tmp_path / "uses.py").read_text() == texts["uses.py"]
    assert (tmp_path / "good.py").read_text() == "from evenflow import DAG\nDAG('g')\n"
    assert "it does not load, so it stays as it was" in done.stdout
    assert "access_control" in done.stdout
    assert "1 of 3 files were rewritten; 2 left alone" in done.stdout
    assert f"evenflow dags check {tmp_path}" in done.stdout
