"""A DAG as it is written for Airflow 3. `tests/house/test_coming_from_airflow.py` changes its import lines, and runs it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.sdk import (
    DAG,
    Asset,
    BaseOperator,
    Param,
    TaskGroup,
    TriggerRule,
    Variable,
    chain,
    get_current_context,
    setup,
    task,
    task_group,
    teardown,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

REPORT = Asset(name="report", uri="file:///reports/today.csv")


class StockTrigger(BaseTrigger):
    def __init__(self, shop: str, poll: float = 30.0):
        super().__init__()
        self.shop = shop
        self.poll = poll

    def serialize(self):
        return f"{self.__class__.__module__}.{self.__class__.__qualname__}", {"shop": self.shop, "poll": self.poll}

    async def run(self):
        await asyncio.sleep(self.poll)
        yield TriggerEvent({"status": "success", "shop": self.shop})


class AwaitStock(BaseOperator):
    template_fields = ("shop",)

    def __init__(self, *, shop: str, **kwargs):
        super().__init__(**kwargs)
        self.shop = shop

    def execute(self, context):
        self.defer(trigger=StockTrigger(self.shop), method_name="execute_complete", timeout=timedelta(minutes=10))

    def execute_complete(self, context, event=None):
        if event["status"] != "success":
            raise AirflowFailException(event)
        return event["shop"]


with DAG(
    dag_id="orders",
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={
        "owner": "sales",
        "depends_on_past": False,
        "email_on_failure": False,
        "email_on_retry": False,
        "retries": 2,
        "retry_delay": timedelta(minutes=5),
    },
    params={"shops": Param(3, type="integer", minimum=1, maximum=10)},
    tags=["sales"],
    doc_md="Counts the orders of all shops.",
) as dag:
    begin = EmptyOperator(task_id="begin")
    announce = BashOperator(task_id="announce", bash_command="echo {{ ds }} {{ params.shops }} {{ macros.ds_add(ds, 1) }}")
    stocked = AwaitStock(task_id="stocked", shop="shop-{{ params.shops }}")
    opened = PythonSensor(task_id="opened", python_callable=lambda: True, mode="reschedule", poke_interval=60)

    @setup
    def make_scratch() -> str:
        return "/scratch/" + Variable.get("region", default="eu")

    @teardown
    def remove_scratch(scratch: str) -> None:
        print("removing", scratch)

    @task
    def find_shops(params: dict | None = None) -> list[str]:
        return [f"shop-{number}" for number in range(params["shops"])]

    @task_group(group_id="of_shop")
    def of_shop(shop: str):
        @task
        def fetch(shop: str) -> int:
            ti = get_current_context()["ti"]
            ti.xcom_push(key="source", value=f"{shop}.csv")
            if shop == "shop-1" and ti.try_number == 1:
                raise ConnectionError("the shop does not answer")
            return len(shop)

        @task
        def check(count: int, **context) -> int:
            if context["ti"].xcom_pull(task_ids="of_shop.fetch", key="source") == "shop-2.csv":
                raise AirflowSkipException("closed today")
            return count

        return check(fetch(shop))

    @task.branch
    def how_many(counts: list[int]) -> str:
        if not counts:
            raise AirflowFailException("no shop answered")
        return "reports.small" if len(list(counts)) < 5 else "reports.large"

    scratch = make_scratch()
    counts = of_shop.expand(shop=find_shops())
    chosen = how_many.override(trigger_rule=TriggerRule.NONE_FAILED)(counts)
    with TaskGroup("reports") as reports:
        small = EmptyOperator(task_id="small")
        large = BashOperator(task_id="large", bash_command="exit 1")
    publish = EmptyOperator(task_id="publish", outlets=[REPORT], trigger_rule="none_failed_min_one_success")
    chain(begin, [announce, opened], [scratch, chosen])
    begin >> stocked
    chosen >> reports >> publish >> remove_scratch(scratch)
