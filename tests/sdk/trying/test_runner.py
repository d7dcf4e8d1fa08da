"""One try: what a function gets, and what becomes of what it does."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from evenflow import DAG, BashOperator, Context, PythonOperator, TaskFailedForGood, TaskSkipped, get_current_context, task
from evenflow.core.ending import Ending
from evenflow.errors import NoContext, SparkServerLost
from evenflow.sdk.trying.runner import TryContext, run_try
from tests.sdk.recording import RUN_AFTER, Recorder, context


def run(dag: DAG, task_id: str, recorder: Recorder | None = None, **fields: Any) -> Ending:
    return run_try(dag, context(task_id, **fields), recorder or Recorder())


def value_of(result: Ending) -> Any:
    assert result.outcome == "success", result.reason
    return None if result.result is None else json.loads(result.result)


def test_a_result_is_json(dag: DAG) -> None:
    task(task_id="t")(lambda: {"a": [1, None]})()
    assert run(dag, "t") == Ending(outcome="success", result=b'{"a":[1,null]}')


def test_nothing_returned_is_nothing_stored(dag: DAG) -> None:
    task(task_id="t")(lambda: None)()
    assert run(dag, "t") == Ending(outcome="success")


def test_results_of_others_are_pulled_once_and_put_in_place(dag: DAG) -> None:
    @task
    def make() -> dict[str, Any]:
        return {}

    @task
    def use(first: Any, nested: Any, item: Any, absent: Any) -> Any:
        return [first, nested, item, absent]

    made = make()
    use(made, {"x": (made["n"], [made])}, made["rows"][0], make())
    recorder = Recorder({("make", "return_value", -1): {"n": 1, "rows": ["r"]}})
    made_value = {"n": 1, "rows": ["r"]}
    tagged = {"__type__": "tuple", "value": [1, [made_value]]}
    assert value_of(run(dag, "use", recorder)) == [made_value, {"x": tagged}, "r", None]
    assert sorted(recorder.pulls) == [("make", "return_value", -1), ("make__1", "return_value", -1)]


def test_an_item_that_is_not_there_names_both_tasks(dag: DAG) -> None:
    @task
    def make() -> dict[str, int]:
        return {}

    task(task_id="use")(lambda value: value)(make()["n"])
    result = run(dag, "use", Recorder({("make", "return_value", -1): {"m": 1}}))
    assert result.outcome == "failed"
    assert result.reason == (
        "XComError: Task 'use' wants <result of task 'make'>['n'], but {'m': 1} has no item 'n' (KeyError). "
        "Check what task 'make' returns."
    )


def test_the_context_comes_as_parameters_as_kwargs_and_by_call(dag: DAG) -> None:
    @task
    def by_name(x: int, ds: str, ti: Any, params: Any, run_id: str, logical_date: Any = None) -> Any:
        return [x, ds, ti.task_id, ti.map_index, ti.try_number, params.n, params["n"], run_id, logical_date]

    @task
    def by_kwargs(**everything: Any) -> Any:
        return sorted(everything)

    @task
    def by_call() -> Any:
        found = get_current_context()
        return [
            found["ds_nodash"],
            found["ts"],
            found["ts_nodash"],
            found["dag_run"].run_type,
            found["dag"].dag_id,
            found["task"].task_id,
        ]

    by_name(7)
    by_kwargs()
    by_call()
    date = datetime(2026, 1, 2, 23, 30, tzinfo=UTC)
    assert value_of(run(dag, "by_name", params={"n": 5}, try_number=2)) == [7, "2026-03-04", "by_name", -1, 2, 5, 5, "r", None]
    assert "data_interval_start" in value_of(run(dag, "by_kwargs"))
    assert value_of(run(dag, "by_call", logical_date=date)) == [
        "20260102",
        "2026-01-02T23:30:00+00:00",
        "20260102T233000",
        "manual",
        "d",
        "by_call",
    ]


def test_what_is_given_wins_over_the_context(dag: DAG) -> None:
    task(task_id="t")(lambda ds, **rest: [ds, "ds" in rest])(ds="mine")
    assert value_of(run(dag, "t")) == ["mine", False]


def test_there_is_no_context_outside(dag: DAG) -> None:
    with pytest.raises(NoContext, match="where no task is running"):
        get_current_context()


def test_an_unknown_entry_or_param_names_those_there_are(dag: DAG) -> None:
    task(task_id="t")(lambda: get_current_context()["execution_date"])()
    task(task_id="u")(lambda params: params.m)()
    assert "The context has no 'execution_date'; it has: conn, dag, dag_run," in (run(dag, "t").reason or "")
    assert "The DAG has no parameter 'm'; it has: n. Declare it in params of the DAG." in (
        run(dag, "u", params={"n": 1}).reason or ""
    )


def test_pushing_and_pulling(dag: DAG) -> None:
    @task
    def mapped(x: int) -> int:
        return x

    @task
    def use(ti: Any) -> Any:
        ti.xcom_push("mine", {"when": datetime(2026, 1, 1)})
        return [
            ti.xcom_pull("mapped"),
            ti.xcom_pull("mapped", map_indexes=1),
            ti.xcom_pull(task_ids=["mapped", "use"], key="k", default="none"),
            ti.xcom_pull(key="own"),
        ]

    mapped.expand(x=[1, 2])
    use()
    recorder = Recorder(
        {
            ("mapped", "return_value", None): [1, 2],
            ("mapped", "return_value", 1): 2,
            ("use", "own", -1): "o",
            ("mapped", "k", None): [],
        }
    )
    assert value_of(run(dag, "use", recorder)) == [[1, 2], 2, [[], "none"], "o"]
    assert recorder.pushed == {"mine": {"when": {"__type__": "datetime", "value": "2026-01-01T00:00:00"}}}


@pytest.mark.parametrize("key", ["return_value", "return_value.x", "", 5])
def test_some_keys_are_not_for_pushing(dag: DAG, key: Any) -> None:
    task(task_id="t")(lambda ti: ti.xcom_push(key, 1))()
    recorder = Recorder()
    assert "cannot push under the key" in (run(dag, "t", recorder).reason or "")
    assert recorder.pushed == {}


def test_progress_is_passed_on(dag: DAG) -> None:
    task(task_id="t")(lambda ti: ti.progress("rows", 3, 10, table="a"))()
    recorder = Recorder()
    run(dag, "t", recorder)
    assert recorder.reported == [("rows", 3, 10, {"table": "a"})]


class OddError(ValueError):
    pass


def test_an_exception_is_a_failure_with_its_classes(dag: DAG, capsys: pytest.CaptureFixture[str]) -> None:
    @task
    def fail() -> None:
        raise OddError("bad value\nsecond line")

    fail()
    assert run(dag, "fail") == Ending(
        outcome="failed",
        reason="OddError: bad value\nsecond line",
        error_types=[f"{__name__}.OddError", "ValueError", "Exception", "BaseException"],
    )
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback (most recent call last):\n  File")
    assert "evenflow/sdk" not in printed


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (TaskSkipped("not today"), "skipped", "not today"),
        (TaskSkipped(), "skipped", "The task raised TaskSkipped."),
        (TaskFailedForGood("never"), "failed_for_good", "TaskFailedForGood: never"),
        (SparkServerLost("it is gone"), "lost", "SparkServerLost: it is gone"),
        (TaskFailedForGood("KeyError: elsewhere", names_cause=True), "failed_for_good", "KeyError: elsewhere"),
        (ValueError(), "failed", "ValueError"),
        (ValueError("x" * 5000), "failed", "ValueError: " + "x" * 1985 + "..."),
        (ValueError("a\0b\ud800"), "failed", "ValueError: a\\0b\\ud800"),
        (KeyboardInterrupt(), "failed", "KeyboardInterrupt"),
        (SystemExit(3), "failed", "SystemExit: the task called sys.exit(3)."),
        (SystemExit("stop"), "failed", "SystemExit: the task called sys.exit('stop')."),
        (SystemExit(0), "success", None),
        (SystemExit(), "success", None),
    ],
)
def test_outcomes(dag: DAG, error: BaseException, outcome: str, reason: str | None) -> None:
    def fail() -> None:
        raise error

    task(fail)()
    result = run(dag, "fail")
    assert (result.outcome, result.reason) == (outcome, reason)


def test_an_exception_without_a_text_is_no_trouble(dag: DAG) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        raise Mute

    task(fail)()
    assert run(dag, "fail").reason == "Mute: (its text cannot be made)"


def test_a_task_that_is_gone_is_a_failure(dag: DAG) -> None:
    BashOperator(task_id="there", bash_command="true")
    assert run(dag, "gone").reason == "BadArgument: DAG 'd' has no task 'gone'. It has: there."


def test_params_given_to_the_dag_function_reach_the_task() -> None:
    from evenflow import dag as dag_decorator

    @dag_decorator
    def made(n: int = 3) -> None:
        task(task_id="t")(lambda value, n: [value, n])(n, n=[n])

    dag = made()
    assert value_of(run(dag, "t", params={"n": 9})) == [9, [9]]
    assert dag.test(params={"n": 4}, print_logs=False).result("t") == [4, [4]]


def test_what_a_class_would_get(dag: DAG) -> None:
    """A callable without a readable signature gets its arguments as they are."""
    PythonOperator(task_id="t", python_callable=dict, op_args=[[("a", 1)]])
    PythonOperator(task_id="u", python_callable=print, op_args=["x"])
    assert value_of(run(dag, "t")) == {"a": 1}
    assert value_of(run(dag, "u")) is None


def test_positional_only_and_variadic_functions(dag: DAG) -> None:
    def only(a: int, /, b: int, *more: int, ds: str) -> Any:
        return [a, b, more, ds]

    task(only)(1, 2, 3, 4)
    assert value_of(run(dag, "only")) == [1, 2, {"__type__": "tuple", "value": [3, 4]}, "2026-03-04"]


def test_the_operator_is_not_changed_by_a_try(dag: DAG) -> None:
    made = task(task_id="make")(lambda: [1])()
    task(task_id="use")(lambda values: values.append(2) or values)(made)
    recorder = Recorder({("make", "return_value", -1): [1]})
    for _ in range(2):
        recorder.stored["make", "return_value", -1] = [1]
        assert value_of(run(dag, "use", recorder)) == [1, 2]


def test_a_context_from_the_wire() -> None:
    assert TryContext.from_assignment(
        {
            "epoch": 1,
            "dag_id": "d",
            "run_id": "r",
            "task_id": "t",
            "map_index": 2,
            "map_length": 3,
            "params": {"n": 1},
            "run_after": "2026-03-04T05:06:07+00:00",
            "logical_date": "2026-03-04T00:00:00+00:00",
            "data_interval_start": None,
        }
    ) == context(
        "t", epoch=1, map_index=2, map_length=3, params={"n": 1}, logical_date=datetime(2026, 3, 4, tzinfo=UTC), run_after=RUN_AFTER
    )


def test_output_is_flushed_before_the_outcome_is_known(dag: DAG, capfd: pytest.CaptureFixture[str]) -> None:
    task(task_id="t")(lambda: sys.stdout.write("no newline"))()
    run(dag, "t")
    assert capfd.readouterr().out == "no newline"


class TestBash:
    """BashOperator and @task.bash."""

    @staticmethod
    def bash(dag: DAG, command: Any, **arguments: Any) -> Ending:
        BashOperator(task_id="b", bash_command=command, **arguments)
        return run(dag, "b")

    @pytest.mark.parametrize(
        ("command", "line"),
        [
            ("echo one; echo two", "two"),
            ("printf 'one\\ntwo'", "two"),
            ("echo one; echo", ""),
            ("true", ""),
            ("printf '\\xff'", "\N{REPLACEMENT CHARACTER}"),
            ("head -c 200000 /dev/zero | tr '\\0' x; echo; echo end", "end"),
        ],
    )
    def test_the_last_line_is_the_result(self, dag: DAG, command: str, line: str) -> None:
        assert value_of(self.bash(dag, command)) == line

    def test_the_output_is_in_the_log(self, dag: DAG, capsys: pytest.CaptureFixture[str]) -> None:
        self.bash(dag, "echo one; echo two")
        assert capsys.readouterr().out == "one\ntwo\n"

    def test_a_line_that_is_too_long_is_refused_not_cut(self, dag: DAG) -> None:
        result = self.bash(dag, "head -c 300000 /dev/zero | tr '\\0' x")
        assert "above the limit of 262,144" in (result.reason or "")

    @pytest.mark.parametrize(
        ("command", "outcome", "reason"),
        [
            ("exit 3", "failed", "CommandFailed: The command of task 'b' ended with exit code 3. Its output is in the task's log."),
            ("exit 99", "skipped", "The command of task 'b' ended with exit code 99, which means: skip."),
            (
                "kill -9 $$",
                "failed",
                "CommandFailed: The command of task 'b' was ended by signal 9. Its output is in the task's log.",
            ),
        ],
    )
    def test_exit_codes(self, dag: DAG, command: str, outcome: str, reason: str) -> None:
        result = self.bash(dag, command)
        assert (result.outcome, result.reason) == (outcome, reason)

    def test_other_codes_can_mean_skip(self, dag: DAG) -> None:
        assert self.bash(dag, "exit 4", skip_on_exit_code=[3, 4]).outcome == "skipped"

    def test_none_can(self, dag: DAG) -> None:
        assert self.bash(dag, "exit 99", skip_on_exit_code=None).outcome == "failed"

    def test_the_environment(self, dag: DAG, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
        monkeypatch.setenv("OUTSIDE", "out")
        BashOperator(task_id="b", bash_command="echo $A-$OUTSIDE-$EVENFLOW_TASK_ID-$EVENFLOW_DS", env={"A": "a"})
        BashOperator(task_id="c", bash_command="echo $A-$OUTSIDE; pwd", env={"A": "a"}, append_env=True, cwd=tmp_path)
        assert value_of(run(dag, "b")) == "a--b-2026-03-04"
        assert value_of(run(dag, "c")) == str(tmp_path)

    def test_a_function_can_make_the_command(self, dag: DAG) -> None:
        @task.bash(skip_on_exit_code=7)
        def command(code: int, ti: Any) -> str:
            return f"echo {ti.task_id}; exit {code}"

        command(0)
        command(7)
        assert value_of(run(dag, "command")) == "command"
        assert run(dag, "command__1").outcome == "skipped"

    def test_the_command_is_in_the_process_group_of_the_task(self, dag: DAG) -> None:
        import os

        assert value_of(self.bash(dag, "ps -o pgid= $$ | tr -d ' '")) == str(os.getpgid(0))


class Greeter:
    """A callable object as a task."""

    def __call__(self, name: str, context: Context | None = None) -> str:
        return f"hello {name}"


def test_a_callable_object(dag: DAG) -> None:
    PythonOperator(task_id="t", python_callable=Greeter(), op_kwargs={"name": "you"})
    task(Greeter())("me")
    assert value_of(run(dag, "t")) == "hello you"
    assert value_of(run(dag, "Greeter")) == "hello me"
