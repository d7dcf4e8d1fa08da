"""What a file from Airflow asks of tasks means the same here, or is refused (R-CS10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, cast

import pendulum
import pytest

from evenflow import (
    DAG,
    Asset,
    BaseHook,
    BaseNotifier,
    BaseSensorOperator,
    BaseTrigger,
    BashOperator,
    Context,
    CronTriggerTimetable,
    EmailNotifier,
    EmptyOperator,
    Param,
    PythonOperator,
    PythonVirtualenvOperator,
    task,
)
from evenflow.errors import BadArgument, BadSetting


class Row(TypedDict):
    x: int


def returns_bare() -> dict:  # type: ignore[type-arg]
    return {"x": 1}


def returns_typed() -> dict[str, int]:
    return {"x": 1}


def returns_mapping() -> Mapping[str, int]:
    return {"x": 1}


def returns_row() -> Row:
    return {"x": 1}


def returns_any() -> Any:
    return {"x": 1}


def returns_maybe() -> dict[str, int] | None:
    return {"x": 1}


@pytest.mark.parametrize("function", [returns_bare, returns_typed, returns_mapping, returns_row])
def test_a_function_that_returns_a_dict_has_multiple_outputs(dag: DAG, function: Any) -> None:
    """R-CS10"""
    made = task(function)()

    @task
    def pull(x: int, ti: Any = None) -> list[Any]:
        return [x, ti.xcom_pull(task_ids=function.__name__, key="x"), ti.xcom_pull(task_ids=function.__name__, key="y")]

    shown = BashOperator(task_id="shown", bash_command=f"echo {{{{ ti.xcom_pull(task_ids='{function.__name__}', key='x') }}}}")
    made >> shown
    pull(made["x"])
    outcome = dag.test(print_logs=False)
    outcome.raise_on_failure()
    assert (outcome.result("pull"), outcome.result("shown")) == ([1, 1, None], "1")


@pytest.mark.parametrize("function", [returns_any, returns_maybe])
def test_any_other_function_has_one(dag: DAG, function: Any) -> None:
    made = task(function)()
    made >> task(task_id="pull")(lambda ti: ti.xcom_pull(task_ids=function.__name__, key="x"))()
    assert dag.test(print_logs=False).result("pull") is None


def test_multiple_outputs_can_be_said_and_denied(dag: DAG) -> None:
    said = task(multiple_outputs=True)(returns_any)()
    denied = task(multiple_outputs=False, task_id="denied")(returns_typed)()
    classic = PythonOperator(task_id="classic", python_callable=returns_any, multiple_outputs=True)

    @task
    def pull(ti: Any) -> list[Any]:
        return [ti.xcom_pull(task_ids=each, key="x") for each in ("returns_any", "denied", "classic")]

    [said, denied, classic] >> pull()
    assert dag.test(print_logs=False).result("pull") == [1, None, 1]


def test_what_was_pushed_goes_before_the_item(dag: DAG) -> None:
    @task
    def make(ti: Any) -> dict[str, int]:
        ti.xcom_push("x", 5)
        return {"x": 1}

    make() >> task(task_id="pull")(lambda ti: ti.xcom_pull("make", key="x"))()
    assert dag.test(print_logs=False).result("pull") == 5


def test_multiple_outputs_of_a_mapped_task(dag: DAG) -> None:
    @task
    def make(n: int) -> dict[str, int]:
        return {"x": n}

    made = make.expand(n=[1, 2, 3])
    made >> task(task_id="pull")(lambda ti: [ti.xcom_pull("make", key="x"), ti.xcom_pull("make", key="x", map_indexes=1)])()
    assert dag.test(print_logs=False).result("pull") == [[1, 2, 3], 2]


def test_multiple_outputs_of_what_is_no_dict_fail(dag: DAG) -> None:
    task(multiple_outputs=True, task_id="t")(lambda: [1])()
    outcome = dag.test(print_logs=False)
    assert outcome.states == {"t": "failed"}
    assert "must be a dict with strings as keys, for multiple_outputs is set; it is [1]" in (outcome.tasks[0].reason or "")


@pytest.mark.parametrize("name", ["conf", "task_state_store", "asset_state_store", "execution_date", "task_reschedule_count"])
def test_an_entry_of_the_context_that_is_missing_is_refused(dag: DAG, name: str) -> None:
    """R-CS10"""
    namespace: dict[str, Any] = {}
    exec(f"def f({name}=None): ...\ndef g({name}): ...", namespace)
    with pytest.raises(BadArgument, match=rf"f\(\) has the parameter '{name}', which Airflow would fill in .* give it a value or"):
        task(namespace["f"])()
    with pytest.raises(BadArgument, match=rf"g\(\) needs the argument '{name}'. The context has no '{name}'."):
        task(namespace["g"])()
    with pytest.raises(BadArgument, match="which Airflow would fill in"):
        PythonOperator(task_id="f", python_callable=namespace["f"])
    task(namespace["f"])(**{name: 1})  # its own
    task(task_id="mapped")(namespace["f"]).expand(**{name: [1]})


def test_inlets_and_outlets_are_in_the_context(dag: DAG) -> None:
    @task(inlets=[Asset("a")], outlets=[Asset("b")])
    def look(inlets: Any = None, outlets: Any = None) -> list[str]:
        return [each.name for each in (*inlets, *outlets)]

    look()
    assert dag.test(print_logs=False).result("look") == ["a", "b"]


def test_events_of_assets_by_name_and_uri(dag: DAG) -> None:
    """R-CS10: ``inlet_events.for_asset`` is no inlet."""

    @task(inlets=[Asset("a", "s3://a/1")], outlets=[Asset("b")])
    def look(inlet_events: Any, outlet_events: Any) -> int:
        outlet_events.for_asset(name="b").extra = {"rows": 3}
        return len(inlet_events.for_asset(uri="s3://a/1")) + len(inlet_events.for_asset(name="a"))

    @task(inlets=[Asset("a", "s3://a/1")])
    def other(inlet_events: Any) -> None:
        inlet_events.for_asset(uri="s3://a/2")

    look()
    other()
    outcome = dag.test(print_logs=False)
    assert outcome.result("look") == 0
    reason = next(each.reason for each in outcome.tasks if each.task_id == "other") or ""
    assert "Asset(uri='s3://a/2') is no inlet of this task. Add it: inlets=[Asset(uri='s3://a/2')]" in reason


@pytest.mark.parametrize("options", [{}, {"email_on_failure": False}, {"email_on_retry": False}, {"email_on_failure": None}])
def test_an_address_without_a_notifier_is_refused(options: dict[str, Any]) -> None:
    """R-CS10: Airflow would send mail."""
    with pytest.raises(
        BadSetting, match=r"default_args: Evenflow has no email as Airflow has. Mail is sent by a callback: on_failure"
    ):
        DAG("d", default_args={"email": ["oncall@example.com"], **options})


def test_an_address_to_which_nothing_would_be_sent_may_stay(dag: DAG) -> None:
    off: dict[str, Any] = {"email": ["me@example.com"], "email_on_failure": False, "email_on_retry": False}
    told: dict[str, Any] = {"email": ["me@example.com"], "on_failure_callback": EmailNotifier(to=["me@example.com"])}
    for options in (off, told, {"email": []}, {"email": None}):
        DAG("e", default_args=options)
    EmptyOperator(task_id="t", **off).email = []  # type: ignore[attr-defined]
    with pytest.raises(BadSetting, match="Evenflow has no email"):
        EmptyOperator(task_id="u").email = ["me@example.com"]  # type: ignore[attr-defined]


def test_params_of_a_task(dag: DAG) -> None:
    @task(params={"city": "Oslo", "n": Param(3, "how many", type="integer")})
    def look(params: Any) -> list[Any]:
        return [params["city"], params.n]

    look() >> BashOperator(task_id="shown", bash_command="echo {{ params.word }}", params={"word": "hi"})
    outcome = dag.test(print_logs=False)
    assert (outcome.result("look"), outcome.result("shown")) == (["Oslo", 3], "hi")


def test_params_of_a_task_stand_for_defaults_of_the_dag() -> None:
    with DAG("d", params={"city": "Rome"}) as dag:
        task(params={"city": "Oslo"}, task_id="t")(lambda params: params["city"])()
        task(task_id="u")(lambda params: params["city"])()
    outcome = dag.test(print_logs=False)
    assert (outcome.result("t"), outcome.result("u")) == ("Oslo", "Rome")
    assert dag.test(print_logs=False, params={"city": "Bern"}).result("t") == "Bern"


def test_params_that_a_task_cannot_have() -> None:
    with DAG("d"):
        with pytest.raises(BadSetting, match="and 'n' has none: declare it for the DAG"):
            EmptyOperator(task_id="u", params={"n": Param(type="integer")})
        with pytest.raises(BadSetting, match="params must be values without errors"):
            EmptyOperator(task_id="v", params={"n": Param("x", type="integer")})


def test_endings_of_template_files(dag: DAG, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("select '{{ run_id }}'", encoding="utf-8")
    dag.template_searchpath = str(tmp_path)  # type: ignore[assignment]

    def query(templates_dict: Any) -> Any:
        return templates_dict["query"]

    task(templates_dict={"query": "q.sql"}, templates_exts=[".sql"])(query)()
    PythonOperator(task_id="classic", python_callable=query, templates_dict={"query": "q.sql"}, templates_exts=[".sql"])
    task(task_id="plain", templates_dict={"query": "q.sql"})(query)()

    @task(templates_exts=[".sql"])
    def mapped(n: int, file: str) -> str:
        return f"{n} {file}"

    mapped.partial(file="q.sql").expand(n=[1])
    outcome = dag.test(print_logs=False, run_id="r1")
    assert [outcome.result(each) for each in ("query", "classic", "plain")] == ["select 'r1'", "select 'r1'", "q.sql"]
    assert outcome.result("mapped") == ["1 select 'r1'"]
    with pytest.raises(BadSetting, match="Say templates_exts= for a function"):
        task(template_ext=[".sql"])(query)()


def test_the_output_of_a_command_is_processed(dag: DAG) -> None:
    BashOperator(task_id="t", bash_command="""echo '{"n": 1}'""", output_processor=json.loads)
    task.bash(task_id="u", output_processor=str.upper)(lambda: "echo hi")()
    outcome = dag.test(print_logs=False)
    assert (outcome.result("t"), outcome.result("u")) == ({"n": 1}, "HI")


def test_a_serializer_is_refused(dag: DAG) -> None:
    with pytest.raises(BadSetting, match=r"Evenflow has no serializer as Airflow has. Arguments and results are data"):
        PythonVirtualenvOperator(task_id="t", python_callable=returns_typed, serializer="dill")
    PythonVirtualenvOperator(task_id="u", python_callable=returns_typed, serializer="pickle", expect_airflow=False)


def test_times_of_pendulum_stand_where_those_of_python_do() -> None:
    """R-CS10: most DAG files of Airflow import it, and make setup installs it."""
    start = pendulum.datetime(2026, 1, 1, tz="Europe/Amsterdam")
    options: dict[str, Any] = {
        "dagrun_timeout": pendulum.duration(hours=2),
        "default_args": {"retry_delay": pendulum.duration(minutes=3)},
    }
    with DAG("d", schedule="0 6 * * *", start_date=start, **options) as dag:
        task(task_id="t")(lambda: [start, pendulum.duration(minutes=1)])()
    spec = dag.to_spec()
    assert (spec.start_date, spec.schedule.timezone, spec.dagrun_timeout) == ("2026-01-01T00:00:00+01:00", "Europe/Amsterdam", 7200)
    assert spec.tasks[0].retry_delay == 180
    assert dag.test(print_logs=False).result("t") == [start, timedelta(minutes=1)]
    tokyo = CronTriggerTimetable("0 0 * * *", timezone=pendulum.timezone("Asia/Tokyo"))
    assert DAG("e", schedule=tokyo).to_spec().schedule.timezone == "Asia/Tokyo"


def test_operators_hooks_triggers_and_notifiers_have_a_log(caplog: pytest.LogCaptureFixture) -> None:
    class Shop(BaseHook):
        def ask(self) -> None:
            self.log.info("asks the shop")

    class Look(BaseSensorOperator):
        def poke(self, context: Context) -> bool:
            self.log.info("looks for %s of %s", self.task_id, self.dag_id)
            Shop().ask()
            return True

    class Tell(BaseNotifier):
        def notify(self, context: Context) -> None:
            self.log.info("tells")

    class Wait(BaseTrigger):
        def __init__(self, log: str) -> None:
            self.log = log  # type: ignore[assignment]  # an attribute of one's own goes before it

    with DAG("d") as dag:
        Look(task_id="look")
    caplog.set_level("INFO")
    dag.test(print_logs=False).raise_on_failure()
    Tell()(cast(Context, {}))
    assert caplog.messages == ["looks for look of d", "asks the shop", "tells"]
    assert caplog.records[0].name.endswith("Look")
    assert Wait("mine").log == "mine"


def test_the_id_of_its_dag_belongs_to_a_task(dag: DAG) -> None:
    empty = EmptyOperator(task_id="a")
    assert empty.dag_id == dag.dag_id
    with pytest.raises(BadSetting, match="dag_id cannot be changed"):
        empty.dag_id = "other"  # type: ignore[misc]
