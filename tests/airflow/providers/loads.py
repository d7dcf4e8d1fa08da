"""A DAG for each provider, with the operators that are used most; those of clouds are for loading alone."""

from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.providers.databricks.operators.databricks import DatabricksRunNowOperator, DatabricksSubmitRunOperator
from airflow.providers.dbt.cloud.operators.dbt import DbtCloudRunJobOperator
from airflow.providers.dbt.cloud.sensors.dbt import DbtCloudJobRunSensor
from airflow.providers.docker.operators.docker import DockerOperator
from airflow.providers.google.cloud.operators.bigquery import BigQueryInsertJobOperator
from airflow.providers.google.cloud.transfers.gcs_to_bigquery import GCSToBigQueryOperator
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.http.sensors.http import HttpSensor
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.providers.sftp.operators.sftp import SFTPOperator
from airflow.providers.sftp.sensors.sftp import SFTPSensor
from airflow.providers.slack.operators.slack import SlackAPIPostOperator
from airflow.providers.slack.operators.slack_webhook import SlackWebhookOperator
from airflow.providers.snowflake.operators.snowflake import SnowflakeSqlApiOperator
from airflow.providers.ssh.operators.ssh import SSHOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.sdk import DAG, task

QUERY = {"query": {"query": "select 1", "useLegacySql": False}}

with DAG("standard"):
    BashOperator(task_id="bash", bash_command="true") >> TimeDeltaSensor(task_id="soon", delta=1, deferrable=True)
with DAG("http"):
    HttpSensor(task_id="up", endpoint="/", deferrable=True) >> HttpOperator(task_id="ask", endpoint="/", deferrable=True)
with DAG("cncf-kubernetes"):
    KubernetesPodOperator(task_id="pod", image="busybox", cmds=["true"], deferrable=True)
with DAG("apache-spark"):
    SparkSubmitOperator(task_id="submit", application="job.py")
with DAG("postgres"):

    @task
    def rows() -> int:
        return len(PostgresHook("warehouse").get_records("select 1"))

    SQLExecuteQueryOperator(task_id="ask", conn_id="warehouse", sql="select 1") >> rows()
with DAG("amazon"):
    S3KeySensor(task_id="key", bucket_key="s3://bucket/key", deferrable=True) >> GlueJobOperator(task_id="glue", job_name="job")
with DAG("google"):
    BigQueryInsertJobOperator(task_id="ask", configuration=QUERY, deferrable=True) >> GCSToBigQueryOperator(
        task_id="load", bucket="bucket", source_objects=["a.csv"], destination_project_dataset_table="d.t", deferrable=True
    )
with DAG("slack"):
    SlackWebhookOperator(task_id="hook", slack_webhook_conn_id="slack", message="done") >> SlackAPIPostOperator(
        task_id="post", channel="#done", text="done"
    )
with DAG("ssh"):
    SSHOperator(task_id="there", ssh_conn_id="host", command="true")
with DAG("sftp"):
    SFTPSensor(task_id="file", path="/in/file", deferrable=True) >> SFTPOperator(
        task_id="get", local_filepath="/tmp/file", remote_filepath="/in/file", operation="get"
    )
with DAG("docker"):
    DockerOperator(task_id="run", image="busybox", command="true", auto_remove=True)
with DAG("dbt-cloud"):
    DbtCloudRunJobOperator(task_id="job", job_id=1, deferrable=True) >> DbtCloudJobRunSensor(
        task_id="end", run_id=1, deferrable=True
    )
with DAG("snowflake"):
    SnowflakeSqlApiOperator(task_id="ask", sql="select 1", statement_count=1, deferrable=True)
with DAG("databricks"):
    DatabricksSubmitRunOperator(task_id="submit", json={}, deferrable=True) >> DatabricksRunNowOperator(
        task_id="now", job_id=1, deferrable=True
    )
