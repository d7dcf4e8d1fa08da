from datetime import datetime

from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.sdk import DAG, Variable, task


def told(context) -> None:
    Variable.set("told", f"{context['dag'].dag_id} {context['dag_run'].state.value}")


with DAG("waits", schedule=None, start_date=datetime(2026, 1, 1), on_success_callback=told):

    @task.branch
    def which() -> str:
        Variable.set("seen", "by waits")
        return "soon"

    @task
    def never() -> None:
        raise AssertionError

    soon = DateTimeSensorAsync(
        task_id="soon", target_time="{{ (macros.datetime.now() + macros.timedelta(seconds=2)).astimezone().isoformat() }}"
    )

    @task(trigger_rule="none_failed_min_one_success")
    def after() -> str:
        return Variable.get("seen")

    which() >> [soon, never()] >> after()
