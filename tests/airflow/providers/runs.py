"""A DAG for each provider whose other side can be played here."""

from importlib.util import find_spec
from pathlib import Path

from airflow.providers.amazon.aws.operators.s3 import S3CreateBucketOperator, S3CreateObjectOperator
from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.sftp.operators.sftp import SFTPOperator
from airflow.providers.sftp.sensors.sftp import SFTPSensor
from airflow.providers.slack.operators.slack_webhook import SlackWebhookOperator
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
