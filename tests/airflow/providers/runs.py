"""A DAG for each provider whose other side can be played here."""

from importlib.util import find_spec
from pathlib import Path

from airflow.providers.amazon.aws.operators.s3 import S3CreateBucketOperator, S3CreateObjectOperator
from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.providers.dbt.cloud.operators.dbt import DbtCloudRunJobOperator
from airflow.providers.docker.operators.docker import DockerOperator
from airflow.providers.google.cloud.operators.bigquery import BigQueryInsertJobOperator
from airflow.providers.google.cloud.operators.gcs import GCSCreateBucketOperator, GCSListObjectsOperator
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.sftp.operators.sftp import SFTPOperator
from airflow.providers.sftp.sensors.sftp import SFTPSensor
from airflow.providers.slack.operators.slack_webhook import SlackWebhookOperator
from airflow.providers.snowflake.operators.snowflake import SnowflakeSqlApiOperator
from airflow.providers.ssh.operators.ssh import SSHOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PI = Path(find_spec("pyspark").origin).parent / "examples" / "src" / "main" / "python" / "pi.py"

with DAG("run_standard"):
    BashOperator(task_id="bash", bash_command="echo {{ ds_nodash | default('none') }}")
with DAG("run_http"):
    HttpOperator(task_id="ask", http_conn_id="web", endpoint="/", method="GET", deferrable=True)
with DAG("run_postgres"):
    SQLExecuteQueryOperator(task_id="ask", conn_id="warehouse", sql="select 1")
with DAG("run_amazon"):
    key = {"aws_conn_id": "aws"}
    make = S3CreateBucketOperator(task_id="make", bucket_name="bucket", **key)
    put = S3CreateObjectOperator(task_id="put", s3_bucket="bucket", s3_key="in/a", data="a", **key)
    make >> put >> S3KeySensor(task_id="there", bucket_key="s3://bucket/in/a", poke_interval=1, **key)
with DAG("run_slack"):
    SlackWebhookOperator(task_id="hook", slack_webhook_conn_id="slack", message="done")
with DAG("run_ssh"):
    SSHOperator(task_id="there", ssh_conn_id="host", command="echo there")
with DAG("run_sftp"):
    SFTPOperator(
        task_id="put", ssh_conn_id="host", local_filepath=__file__, remote_filepath="/put.py", operation="put"
    ) >> SFTPSensor(task_id="there", sftp_conn_id="files", path="/put.py", poke_interval=1)
with DAG("run_apache-spark"):
    SparkSubmitOperator(task_id="pi", conn_id="spark", application=str(PI), application_args=["2"])
with DAG("run_cncf-kubernetes"):
    pod = {"kubernetes_conn_id": "cluster", "image": "any", "cmds": ["sh", "-c"], "poll_interval": 1}
    wait = {"deferrable": True, "arguments": ["echo begins; sleep 3; echo {{ run_id }} ends"]}
    KubernetesPodOperator(task_id="pod", arguments=["echo {{ run_id }}"], **pod) >> [
        KubernetesPodOperator(task_id="deferred", **pod, **wait),
        KubernetesPodOperator(task_id="logged", logging_interval=1, **pod, **wait),
    ]
with DAG("run_docker"):
    DockerOperator(task_id="run", image="any", command=["echo", "there"], auto_remove="force")
with DAG("run_dbt-cloud"):
    DbtCloudRunJobOperator(task_id="job", dbt_cloud_conn_id="dbt", job_id=5, check_interval=1, deferrable=True)
with DAG("run_databricks"):
    new = {"run_name": "one", "tasks": [{"task_key": "a", "notebook_task": {"notebook_path": "/a"}}]}
    DatabricksSubmitRunOperator(
        task_id="submit", databricks_conn_id="databricks", json=new, polling_period_seconds=1, deferrable=True
    )
with DAG("run_snowflake"):
    SnowflakeSqlApiOperator(task_id="ask", snowflake_conn_id="snowflake", sql="select 1", statement_count=1, poll_interval=1)
with DAG("run_google"):
    google = {"gcp_conn_id": "google"}
    query = {"query": {"query": "select 1", "useLegacySql": False}}
    [
        GCSCreateBucketOperator(task_id="make", bucket_name="bucket", project_id="p", **google)
        >> GCSListObjectsOperator(task_id="list", bucket="bucket", **google),
        BigQueryInsertJobOperator(task_id="ask", configuration=query, project_id="p", location="US", **google),
    ]
