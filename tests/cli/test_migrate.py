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
    assert "from evenflow import DAG  # the DAG\n" in done.text
    assert '    schedule="@daily",  # each day\n' in done.text
    file.write_text(done.text, encoding="utf-8")
    spec = load_file(file, tmp_path).dags["grüße"].to_spec()
    assert [task.task_id for task in spec.tasks] == ["begin", "greet", "told"]
    assert (spec.max_active_tasks, spec.schedule.cron) == (3, "@daily")


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


def test_imports_alone_say_what_is_refused_and_which_providers_are_needed(tmp_path: Path) -> None:
    text = (
        "from airflow.contrib.operators.ssh_operator import SSHOperator\n"
        "from airflow.operators.subdag_operator import SubDagOperator\n"
        "from airflow.sdk import AssetWatcher\n"
        "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator\n"
        "from airflow.utils.email import send_email\n"
    )
    judged = judge(_file(tmp_path, "a.py", text))
    assert not judged.runs
    assert [(remark.line, remark.severity) for remark in judged.remarks] == [(1, "warning"), (2, "error"), (3, "error")]
    assert judged.needs == ["apache-airflow-providers-cncf-kubernetes", "apache-airflow-providers-ssh"]


def test_check_and_rewrite_by_the_command_line(evenflow: Evenflow, tmp_path: Path) -> None:
    moves = _file(tmp_path, "moves.py", MOVES)
    _file(tmp_path, "stays.py", STAYS + "from airflow.operators.subdag import SubDagOperator\n")
    checked = evenflow("migrate", "check", str(tmp_path), "--json")
    assert checked.returncode == 1
    told = json.loads(checked.stdout)
    assert [(Path(file["path"]).name, file["runs"]) for file in told["files"]] == [("moves.py", True), ("stays.py", False)]
    shown = evenflow("migrate", "rewrite", str(tmp_path))
    assert "+from evenflow import DAG" in shown.stdout
    assert shown.returncode == 1
    assert moves.read_text(encoding="utf-8") == MOVES
    assert evenflow("migrate", "rewrite", str(moves), "--write").returncode == 0
    assert "from evenflow import DAG" in moves.read_text(encoding="utf-8")
