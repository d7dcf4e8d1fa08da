"""Names that providers no longer have."""

from airflow.contrib.operators.bigquery_operator import BigQueryOperator
from airflow.providers.amazon.aws.operators.emr_add_steps import EmrAddStepsOperator
from airflow.providers.amazon.aws.operators.glue import AwsGlueJobOperator
from airflow.providers.amazon.aws.sensors.s3_prefix import S3PrefixSensor
from airflow.providers.google.cloud.operators.bigquery import BigQueryCreateEmptyTableOperator
from airflow.providers.snowflake.transfers.s3_to_snowflake import S3ToSnowflakeOperator
from airflow.sdk import DAG

with DAG("old_names"):
    ask = BigQueryOperator(
        task_id="ask",
        sql="select 1",
        use_legacy_sql=False,
        destination_dataset_table="p.d.t_{{ ds }}",
        bigquery_conn_id="warehouse",
    )
    assert ask.configuration == {
        "query": {
            "query": "select 1",
            "useLegacySql": False,
            "destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "t_{{ ds }}"},
        }
    }
    assert ask.gcp_conn_id == "warehouse"
    table = BigQueryCreateEmptyTableOperator(task_id="table", dataset_id="d", table_id="t", schema_fields=[{"name": "a"}])
    assert table.table_resource == {"schema": {"fields": [{"name": "a"}]}}
    prefix = S3PrefixSensor(task_id="prefix", bucket_name="b", prefix="in/")
    assert (prefix.bucket_key, prefix.wildcard_match) == (["in/*"], True)
    assert S3ToSnowflakeOperator(task_id="copy", s3_keys=["a"], table="t", stage="s", file_format="csv").files == ["a"]
    EmrAddStepsOperator(task_id="steps", job_flow_id="j") >> AwsGlueJobOperator(task_id="glue", job_name="job")
