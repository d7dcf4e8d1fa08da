from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag, task


@dag(schedule=None, start_date=datetime(2026, 1, 1), catchup=False, tags=["moved"])
def taskflow():
    @task
    def names() -> list[str]:
        return ["a", "bc", "def"]

    @task
    def length(name: str) -> int:
        print("looking at", name)
        return len(name)

    @task(retries=1, retry_delay=timedelta(seconds=1))
    def total(lengths, ti=None) -> int:
        if ti.try_number == 1:
            raise ValueError("once more")
        return sum(lengths)

    told = BashOperator(task_id="told", bash_command="echo total={{ ti.xcom_pull(task_ids='total') }}")
    total(length.expand(name=names())) >> told


taskflow()
