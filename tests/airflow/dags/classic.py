from airflow import DAG
from airflow.operators.bash_operator import BashOperator
from airflow.operators.python_operator import PythonOperator
from airflow.utils.dates import days_ago


def told(**context) -> str:
    return f"{context['execution_date']:%Y-%m-%d} {context['tomorrow_ds_nodash']}"


with DAG("classic", schedule_interval=None, start_date=days_ago(2), default_view="graph"):
    told_ = PythonOperator(task_id="told", python_callable=told, provide_context=True)
    told_ >> BashOperator(task_id="said", bash_command="echo on={{ execution_date.strftime('%Y') }} {{ ti.xcom_pull('told') }}")
