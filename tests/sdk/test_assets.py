"""Assets as authors write them: schedules, outlets, events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evenflow import DAG, Asset, AssetAlias, AssetAll, AssetAny, AssetOrTimeSchedule, EmptyOperator, asset, task
from evenflow.core.assets import Leaf, leaves, satisfied
from evenflow.core.ending import AssetChange
from evenflow.core.model import AssetSpec, DagSpec
from evenflow.core.partitions import Partitions
from evenflow.errors import BadArgument, BadSetting
from evenflow.sdk.asset_events import OutletEvents
from evenflow.sdk.spec import compile_spec
from evenflow.sdk.trying.runner import TryContext, run_try
from tests.sdk.recording import Recorder

RUN_AFTER = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = Asset("a"), Asset("b", "s3://shop/b", extra={"owner": "shop"}), AssetAlias("c")


@pytest.mark.parametrize(
    ("schedule", "condition"),
    [
        (A, "a"),
        ([A, B], {"all": ["a", "b"]}),
        (A | B, {"any": ["a", "b"]}),
        (A & (B | C), {"all": ["a", {"any": ["b", {"alias": "c"}]}]}),
        (AssetAll(A, AssetAny(B)), {"all": ["a", {"any": ["b"]}]}),
    ],
)
def test_schedule(schedule: Any, condition: Any) -> None:
    spec = DAG("d", schedule=schedule).to_spec()
    assert (spec.schedule.kind, spec.schedule.assets) == ("assets", condition)
    assert DagSpec.from_json(spec.to_json()) == spec


def test_schedule_of_assets_or_times() -> None:
    schedule = DAG("d", schedule=AssetOrTimeSchedule(timetable="@daily", assets=A | B)).to_spec().schedule
    assert (schedule.kind, schedule.assets) == ("cron", {"any": ["a", "b"]})
    with pytest.raises(BadSetting, match="must be assets"):
        AssetOrTimeSchedule(timetable="@daily", assets="a")


def test_conditions() -> None:
    condition = {"all": ["a", {"any": ["b", {"alias": "c"}]}]}
    assert list(leaves(condition)) == [Leaf("a"), Leaf("b"), Leaf("c", is_alias=True)]
    assert satisfied(condition, {Leaf("a"), Leaf("c", is_alias=True)})
    assert not satisfied(condition, {Leaf("a"), Leaf("c")})
    assert not satisfied(condition, {Leaf("b")})


def test_spec_of_tasks() -> None:
    with DAG("d", schedule=A) as dag:
        EmptyOperator(task_id="made", outlets=[B, C])
        EmptyOperator(task_id="read", inlets=[A])
    spec = dag.to_spec()
    made, read = spec.tasks
    assert (made.outlets, made.outlet_aliases, made.empty) == (("b",), ("c",), False)
    assert (read.inlets, read.empty) == (("a",), True)
    assert spec.assets == (
        AssetSpec(name="a", uri="a"),
        AssetSpec(name="b", uri="s3://shop/b", extra={"owner": "shop"}),
    )
    with DAG("e"), pytest.raises(BadSetting, match="outlets must be a list of Asset"):
        EmptyOperator(task_id="wrong", outlets=["a"])


def test_names() -> None:
    assert Asset(uri="s3://x").name == "s3://x" == Asset("s3://x").uri
    assert Asset("a", "s3://x") == Asset("a")
    for wrong in ("", "a\nb", "x" * 1501, 7):
        with pytest.raises(BadArgument):
            Asset(wrong)


def told(body: Any) -> Any:
    with DAG("d") as dag:
        task(outlets=[A, B, C], task_id="t")(body)()
    context = TryContext(dag_id="d", run_id="r", task_id="t", run_after=RUN_AFTER)
    return run_try(dag, context, Recorder())


def test_what_a_task_says_of_its_outlets() -> None:
    def body(outlet_events: Any = None) -> None:
        outlet_events[A].extra["rows"] = 3
        outlet_events[C].add(Asset("s3://shop/new"), extra={"day": 1})

    result = told(body)
    assert result.outcome == "success", result.reason
    assert result.produced == [
        AssetChange(asset="a", uri="a", extra={"rows": 3}),
        AssetChange(asset="s3://shop/new", uri="s3://shop/new", extra={"day": 1}, alias="c"),
    ]


def test_what_it_may_not_say() -> None:
    def unknown(outlet_events: Any = None) -> None:
        outlet_events[Asset("z")].extra["n"] = 1

    def no_json(outlet_events: Any = None) -> None:
        outlet_events[A].extra["n"] = object()

    def large(outlet_events: Any = None) -> None:
        outlet_events[A].extra["n"] = "x" * 20_000

    def long_number(outlet_events: Any = None) -> None:
        outlet_events[A].extra["n"] = -(2**64)

    def no_unicode(outlet_events: Any = None) -> None:
        outlet_events[A].extra["n"] = "caf\udce9.csv"

    for body, words in (
        (unknown, "is no outlet"),
        (no_json, "cannot be stored as JSON: Object of type object"),
        (long_number, "has more than 64 bits; make it a string"),
        (no_unicode, "holds half a character"),
        (large, "above the limit"),
    ):
        result = told(body)
        assert result.outcome == "failed"
        assert words in result.reason


def test_asset_function() -> None:
    seen: list[Any] = []
    with DAG("outer"):
        pass

    @asset(schedule="@daily", uri="s3://shop/orders")
    def orders(self: Asset, context: Any, customers: Asset) -> int:
        """All orders."""
        seen.append((self.name, customers.name, context["ti"].task_id))
        return 1

    assert orders == Asset("orders")
    from evenflow.sdk.dag import observed

    made: list[DAG] = []
    with observed(made.append):

        @asset
        def report(self: Asset) -> None: ...

    spec = made[0].to_spec()
    assert (spec.dag_id, spec.tasks[0].task_id, spec.tasks[0].outlets) == ("report", "report", ("report",))


def test_all_events_of_a_try_fit_into_one_message() -> None:
    """Each may be as large as one may be; together they are one head of a frame."""
    alias = AssetAlias("daily")
    events = OutletEvents((alias,))
    for number in range(100):
        events[alias].add(Asset(f"a{number}"), extra={"x": "y" * 10_000})
    with pytest.raises(
        BadArgument, match=r"The 100 asset events of this try are 1,0\d\d,\d\d\d bytes as JSON, above the limit of 786,432"
    ):
        events.told()


def test_partitions_are_declared_where_the_asset_is_made() -> None:
    """R-SP1: by time or by keys; a DAG that names the asset twice need say it once."""
    days = Asset("orders", partitions="day")
    with DAG("d", schedule=Asset("orders")) as dag:
        task(outlets=[days], task_id="t")(lambda: None)()
    (spec,) = compile_spec(dag).assets
    assert spec.partitions == Partitions(every="day")
    assert Asset("sales", partitions={"country": ["de", "fr"]}).partitions == Partitions(param="country", keys=("de", "fr"))


@pytest.mark.parametrize("wrong", ["week", {"a": ["x"], "b": ["y"]}, {"a": []}, {"a": ["x", "x"]}, {"a": "de"}, {"a": [1]}, 3, {}])
def test_what_are_no_partitions_is_refused_with_what_to_write(wrong: Any) -> None:
    with pytest.raises(BadArgument, match=r"'orders'.*(must be 'hour', 'day', 'month'|names a partition twice)"):
        Asset("orders", partitions=wrong)


def test_a_task_may_name_the_partitions_that_it_has_made() -> None:
    days = Asset("orders", partitions="day")

    def said(partitions: Any, outlet: Asset = days) -> Any:
        def body(outlet_events: Any = None) -> None:
            outlet_events[outlet].partitions = partitions

        with DAG("d") as dag:
            task(outlets=[outlet], task_id="t")(body)()
        return run_try(dag, TryContext(dag_id="d", run_id="r", task_id="t", run_after=RUN_AFTER), Recorder())

    made = said(["2026-01-02", "2026-01-01", "2026-01-02"]).produced
    assert [(change.asset, change.partition) for change in made] == [("orders", "2026-01-02"), ("orders", "2026-01-01")]
    assert "is no day. Write it as 2026-01-31" in said(["2026-1-2"]).reason
    assert "must be a list of texts" in said("2026-01-02").reason
    assert "is none: say partitions= where the asset is made" in said(["2026-01-02"], Asset("plain")).reason
