import os

from airflow.sdk import dag, task


@dag(schedule=None, tags=["nightly"])
def told():
    @task
    def traced() -> str:
        return os.environ["TRACEPARENT"]

    @task
    def fails(_) -> None:
        raise ValueError("no such shop")

    fails(traced())


told()
