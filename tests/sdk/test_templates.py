"""Templates: what an author wrote, and what the operator gets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evenflow import DAG, BaseOperator, Context, task
from evenflow.core.ending import Ending
from evenflow.sdk.trying.runner import run_try

from .recording import Recorder, context

DATE = datetime(2026, 3, 4, tzinfo=UTC)


class Show(BaseOperator):
    template_fields: ClassVar = ("value", "other")
    template_ext: ClassVar = (".sql",)

    def __init__(self, *, value: Any, other: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.value, self.other = value, other

    def execute(self, context: Context) -> Any:
        return self.value


def run(dag: DAG, task_id: str = "t", recorder: Recorder | None = None, **fields: Any) -> Ending:
    return run_try(dag, context(task_id, logical_date=DATE, **fields), recorder or Recorder())


def rendered(dag: DAG, value: Any, recorder: Recorder | None = None, **fields: Any) -> Any:
    import json

    Show(task_id="t", value=value)
    result = run(dag, "t", recorder, **fields)
    assert result.outcome == "success", result.reason
    return json.loads(result.result or b"null")


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("plain {text}", "plain {text}"),
        ("{{ ds }} {{ ds_nodash }} {{ ts_nodash_with_tz }}", "2026-03-04 20260304 20260304T000000+0000"),
        ("{{ macros.ds_add(ds, -4) }} {{ macros.ds_format(ds, '%Y-%m-%d', '%d.%m.%y') }}", "2026-02-28 04.03.26"),
        ("{{ ti.task_id }} {{ task.task_id }} {{ dag.dag_id }} {{ run_id }} {{ dag_run.conf['n'] }}", "t t d r 7"),
        ("{{ params.n + 1 }}{% if params.n > 5 %} many{% endif %}", "8 many"),
        (
            "{{ logical_date | ds_nodash }} {{ (logical_date + macros.timedelta(days=1)) | ts }}",
            "20260304 2026-03-05T00:00:00+00:00",
        ),
        ("{{ var.value.region }} {{ var.json.limits.rows }} {{ var.value.get('none', 'x') }}", "eu 3 x"),
        ("{{ conn.db.host }}:{{ conn.db.port }} {{ conn.db.extra_dejson.mode }}", "host:5 fast"),
        (["{{ ds }}", {"k": ("{{ ds }}", 1)}], ["2026-03-04", {"k": {"__type__": "tuple", "value": ["2026-03-04", 1]}}]),
    ],
)
def test_the_names_of_airflow(dag: DAG, monkeypatch: pytest.MonkeyPatch, text: Any, becomes: Any) -> None:
    monkeypatch.setenv("EVENFLOW_VAR_REGION", "eu")
    monkeypatch.setenv("EVENFLOW_VAR_LIMITS", '{"rows": 3}')
    monkeypatch.setenv("EVENFLOW_CONN_DB", "x://host:5/?mode=fast")
    assert rendered(dag, text, params={"n": 7}) == becomes


def test_what_comes_from_outside_is_never_a_template(dag: DAG) -> None:
    """A value that a task returned, that a person gave to the run, or that a task is mapped over is data."""
    attack = "{{ var.value.secret }}"
    recorder = Recorder({("make", "return_value", -1): [attack]})
    made = task(task_id="make")(lambda: None)()
    Show(task_id="t", value=[made, made[0], "{{ params.given }} {{ ti.task_id }}"])
    assert attack.encode() in (run(dag, "t", recorder, params={"given": attack}).result or b"")
    Show.partial(task_id="mapped", other="{{ ds }}").expand(value=made)
    result = run(dag, "mapped", recorder, map_index=0, map_length=1)
    assert result.result == f'"{attack}"'.encode()
    Show.partial(task_id="literal").expand(value=["{{ ds }}"])
    assert run(dag, "literal", map_index=0, map_length=1).result == b'"2026-03-04"'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{{ dss }}",
            "cannot be rendered, line 1 ({{ dss }}): 'dss' is undefined. Did you mean 'ds'? A template knows: conn, ",
        ),
        ("{{ execution_date }}", "'execution_date' is undefined. It is logical_date, as in Airflow 3. A template knows: conn, "),
        ("{{ ti.nothing }}", "has no attribute 'nothing'"),
        ("{% if %}", "the field value is not a valid template: "),
        ("{{ var.value.nowhere }}", "VariableNotFound: Variable 'nowhere' is not defined"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% include 'nowhere.txt' %}", "includes 'nowhere.txt', which is not in"),
        ("query.sql", "names the file 'query.sql', which is not in"),
    ],
)
def test_what_is_wrong_names_the_field(dag: DAG, text: str, reason: str) -> None:
    Show(task_id="t", value=text)
    result = run(dag)
    assert result.outcome == "failed"
    assert reason in (result.reason or "")


def test_files_macros_and_filters(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "query.sql").write_text("select {% include 'columns.txt' %} from {{ table | twice }} where d = '{{ ds }}'")
    (tmp_path / "sql" / "columns.txt").write_text("a, b")
    with DAG(
        "d",
        template_searchpath=str(tmp_path / "sql"),
        user_defined_macros={"table": "t"},
        user_defined_filters={"twice": lambda text: text * 2},
    ) as dag:
        assert rendered(dag, "query.sql") == "select a, b from tt where d = '2026-03-04'"


def test_native_objects() -> None:
    with DAG("d", render_template_as_native_obj=True, params={"rows": [1]}) as dag:
        assert rendered(dag, "{{ params.rows }}", params={"rows": [1, 2]}) == [1, 2]


def test_people_see_what_became_of_them_only_when_there_was_a_template(dag: DAG) -> None:
    recorder = Recorder()
    assert rendered(dag, "{{ ds }}" + "x" * 5000, recorder).startswith("2026-03-04x")
    (arguments,) = [arguments for question, arguments in recorder.asked if question == "rendered"]
    assert arguments["fields"]["other"] == "None"
    assert arguments["fields"]["value"].endswith("x... (5,010 characters)")
    Show(task_id="plain", value="text")
    recorder = Recorder()
    run(dag, "plain", recorder)
    assert "rendered" not in [question for question, _ in recorder.asked]


def test_the_run_before_is_asked_for_once(dag: DAG) -> None:
    recorder = Recorder()
    recorder.answers["previous_run"] = {"data_interval_start": "2026-03-03T00:00:00+00:00", "end_date": None}
    text = "{{ prev_data_interval_start_success | ds }} {{ prev_end_date_success }}"
    assert rendered(dag, text, recorder) == "2026-03-03 None"
    assert [question for question, _ in recorder.asked].count("previous_run") == 1


def test_filters_leave_none_alone(dag: DAG) -> None:
    """A run by hand has no interval."""
    names = ("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz")
    Show(task_id="t", value=" ".join(f"{{{{ data_interval_end | {name} }}}}" for name in names))
    assert run_try(dag, context("t"), Recorder()).result == b'"None None None None None"'


def test_without_a_logical_date_ds_is_the_day_of_the_run(dag: DAG) -> None:
    Show(task_id="t", value="{{ ds }} {{ logical_date }}")
    assert run_try(dag, context("t"), Recorder()).result == b'"2026-03-04 None"'


@pytest.mark.usefixtures("_fresh_modules")
def test_jinja_is_loaded_for_templates_only(write: Callable[[str, str], Path]) -> None:
    import subprocess

    file = write("d.py", "from evenflow import DAG, task\nwith DAG('d') as d:\n    task(task_id='t')(lambda x: x)('no template')\n")
    program = f"import runpy, sys; runpy.run_path({str(file)!r})['d'].test(); sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


class Composed(Show):
    """Makes a new string of what it is given, as operators do."""

    def __init__(self, *, value: str, **options: Any) -> None:
        super().__init__(value=value.strip() if isinstance(value, str) else value, **options)


def test_data_that_an_operator_has_changed_is_no_template_either(dag: DAG) -> None:
    """Whoever triggers a run could read connections with it: the string that is rendered is another object than the one given."""
    made = task(task_id="make")(lambda: None)()
    Composed.partial(task_id="mapped", other="{{ ds }}").expand(value=made)
    for attack in (" {{ conn.db.password }}", "{{ conn.db.password }} ", "{% include '/etc/passwd' %} "):
        recorder = Recorder({("make", "return_value", -1): [attack]})
        result = run(dag, "mapped", recorder, map_index=0, map_length=1)
        assert result.result == f'"{attack.strip()}"'.encode()
