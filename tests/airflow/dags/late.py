from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, AsyncCallback, DeadlineAlert, DeadlineReference, SyncCallback, Variable


def tell(name, context):
    Variable.set(name, f"too late in {context['dag_run']['dag_run_id']}")


async def tell_later(name):
    Variable.set(name, "told later")


def missed(callback):
    return DeadlineAlert(reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(seconds=-1), callback=callback)


told = [SyncCallback(tell, {"name": "late"}), AsyncCallback(tell_later, {"name": "later"})]
with DAG("late", schedule=None, deadline=[missed(callback) for callback in told]):
    BashOperator(task_id="a", bash_command="true")
