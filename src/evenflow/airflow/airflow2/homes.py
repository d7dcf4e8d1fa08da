"""The present places of Airflow 2's names. Nothing here imports Airflow, so a file can be judged without an installation.

A name alone is enough, whichever of its old places a file imports it from: operators moved several times, and few share a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenflow.airflow.airflow2 import provider_homes

STAND_INS = "evenflow.airflow.airflow2.stand_ins"
STAND_INS_ELSEWHERE = {  # by name; most of these modules import a provider
    "BigQueryCreateEmptyTableOperator": "evenflow.airflow.airflow2.stand_ins_of_google",
    "BigQueryExecuteQueryOperator": "evenflow.airflow.airflow2.stand_ins_of_google",
    "BigQueryOperator": "evenflow.airflow.airflow2.stand_ins_of_google",
    "S3PrefixSensor": "evenflow.airflow.airflow2.stand_ins_of_amazon",
    "SubDagOperator": "evenflow.airflow.airflow2.subdags",
    "S3ToSnowflakeOperator": "evenflow.airflow.airflow2.stand_ins_of_snowflake",
}

_STANDARD, _SDK = "airflow.providers.standard", "airflow.sdk"
_AWS, _GOOGLE, _SQL = "airflow.providers.amazon.aws", "airflow.providers.google.cloud", "airflow.providers.common.sql"
_POD = "airflow.providers.cncf.kubernetes"

_SAME = {
    f"{_STANDARD}.operators.bash": "BashOperator",
    f"{_STANDARD}.operators.python": "PythonOperator BranchPythonOperator ShortCircuitOperator PythonVirtualenvOperator",
    f"{_STANDARD}.operators.empty": "EmptyOperator",
    f"{_STANDARD}.operators.trigger_dagrun": "TriggerDagRunOperator",
    f"{_STANDARD}.operators.latest_only": "LatestOnlyOperator",
    f"{_STANDARD}.operators.branch": "BaseBranchOperator",
    f"{_STANDARD}.operators.datetime": "BranchDateTimeOperator",
    f"{_STANDARD}.operators.weekday": "BranchDayOfWeekOperator",
    f"{_STANDARD}.sensors.external_task": "ExternalTaskSensor ExternalTaskMarker",
    f"{_STANDARD}.sensors.filesystem": "FileSensor",
    f"{_STANDARD}.sensors.python": "PythonSensor",
    f"{_STANDARD}.sensors.bash": "BashSensor",
    f"{_STANDARD}.sensors.date_time": "DateTimeSensor DateTimeSensorAsync",
    f"{_STANDARD}.sensors.time": "TimeSensor",
    f"{_STANDARD}.sensors.time_delta": "TimeDeltaSensor",
    f"{_STANDARD}.sensors.weekday": "DayOfWeekSensor",
    f"{_STANDARD}.hooks.filesystem": "FSHook",
    f"{_STANDARD}.utils.weekday": "WeekDay",
    "airflow.providers.smtp.operators.smtp": "EmailOperator",
    f"{_SDK}": (
        "BaseHook BaseOperator BaseOperatorLink BaseSensorOperator Connection Context DAG Metadata ObjectStoragePath Param "
        "ParamsDict TaskGroup Variable XComArg chain cross_downstream dag get_parsing_context literal setup task task_group "
        "teardown"
    ),
    f"{_SDK}.bases.decorator": "DecoratedOperator task_decorator_factory",
    f"{_SDK}.bases.skipmixin": "SkipMixin",
    f"{_SDK}.definitions.context": "get_current_context",
    f"{_SDK}.definitions.mappedoperator": "MappedOperator",
    f"{_SDK}.definitions.xcom_arg": "PlainXComArg",
    f"{_SDK}.log": "mask_secret",
    f"{_SDK}.module_loading": "import_string",
    f"{_SDK}.timezone": "coerce_datetime parse utcnow",
    f"{_SDK}.exceptions": "AirflowException AirflowSkipException AirflowFailException AirflowSensorTimeout AirflowTaskTimeout",
    "airflow.utils.session": "create_session provide_session",
    "airflow.triggers.base": "BaseTrigger TriggerEvent",
    "datetime": "datetime timedelta",  # modules of Airflow had imported them
    "functools": "cached_property cache",
    "tempfile": "TemporaryDirectory",
    f"{_SQL}.hooks.sql": "DbApiHook",
    f"{_SQL}.operators.sql": (
        "SQLCheckOperator SQLValueCheckOperator SQLIntervalCheckOperator SQLThresholdCheckOperator BranchSQLOperator "
        "SQLColumnCheckOperator SQLTableCheckOperator SQLExecuteQueryOperator"
    ),
    f"{_SQL}.sensors.sql": "SqlSensor",
    f"{_SQL}.operators.generic_transfer": "GenericTransfer",
    "airflow.providers.http.hooks.http": "HttpHook",
    "airflow.providers.http.sensors.http": "HttpSensor",
    "airflow.providers.postgres.hooks.postgres": "PostgresHook",
    "airflow.providers.mysql.hooks.mysql": "MySqlHook",
    "airflow.providers.sqlite.hooks.sqlite": "SqliteHook",
    "airflow.providers.microsoft.mssql.hooks.mssql": "MsSqlHook",
    "airflow.providers.microsoft.azure.hooks.wasb": "WasbHook",
    "airflow.providers.oracle.hooks.oracle": "OracleHook",
    "airflow.providers.jdbc.hooks.jdbc": "JdbcHook",
    "airflow.providers.snowflake.hooks.snowflake": "SnowflakeHook",
    "airflow.providers.slack.hooks.slack": "SlackHook",
    "airflow.providers.slack.hooks.slack_webhook": "SlackWebhookHook",
    "airflow.providers.slack.operators.slack": "SlackAPIOperator SlackAPIPostOperator",
    "airflow.providers.slack.operators.slack_webhook": "SlackWebhookOperator",
    "airflow.providers.ssh.hooks.ssh": "SSHHook",
    "airflow.providers.ssh.operators.ssh": "SSHOperator",
    "airflow.providers.sftp.hooks.sftp": "SFTPHook",
    "airflow.providers.sftp.operators.sftp": "SFTPOperator",
    "airflow.providers.sftp.sensors.sftp": "SFTPSensor",
    "airflow.providers.ftp.hooks.ftp": "FTPHook FTPSHook",
    "airflow.providers.ftp.sensors.ftp": "FTPSensor FTPSSensor",
    "airflow.providers.docker.hooks.docker": "DockerHook",
    "airflow.providers.docker.operators.docker": "DockerOperator",
    "airflow.providers.docker.operators.docker_swarm": "DockerSwarmOperator",
    "airflow.providers.mongo.hooks.mongo": "MongoHook",
    "airflow.providers.redis.hooks.redis": "RedisHook",
    "airflow.providers.databricks.hooks.databricks": "DatabricksHook",
    "airflow.providers.databricks.operators.databricks": "DatabricksSubmitRunOperator DatabricksRunNowOperator",
    "airflow.providers.apache.spark.hooks.spark_submit": "SparkSubmitHook",
    "airflow.providers.apache.spark.operators.spark_submit": "SparkSubmitOperator",
    "airflow.providers.apache.spark.operators.spark_sql": "SparkSqlOperator",
    "airflow.providers.apache.spark.operators.spark_jdbc": "SparkJDBCOperator",
    "airflow.providers.apache.livy.operators.livy": "LivyOperator",
    "airflow.providers.apache.hive.hooks.hive": "HiveCliHook HiveServer2Hook HiveMetastoreHook",
    "airflow.providers.apache.hive.operators.hive": "HiveOperator",
    "airflow.providers.apache.hive.sensors.hive_partition": "HivePartitionSensor",
    "airflow.providers.apache.hdfs.hooks.webhdfs": "WebHDFSHook",
    "airflow.providers.apache.hdfs.sensors.web_hdfs": "WebHdfsSensor",
    "airflow.providers.apache.druid.operators.druid": "DruidOperator",
    f"{_POD}.operators.pod": "KubernetesPodOperator",
    f"{_POD}.secret": "Secret",
    f"{_POD}.pod_generator": "PodGenerator",
    f"{_POD}.hooks.kubernetes": "KubernetesHook",
    f"{_AWS}.hooks.s3": "S3Hook",
    f"{_AWS}.hooks.base_aws": "AwsBaseHook",
    f"{_AWS}.hooks.emr": "EmrHook",
    f"{_AWS}.hooks.redshift_cluster": "RedshiftHook",
    f"{_AWS}.operators.athena": "AthenaOperator",
    f"{_AWS}.operators.ecs": "EcsRunTaskOperator",
    f"{_AWS}.operators.batch": "BatchOperator",
    f"{_AWS}.transfers.s3_to_redshift": "S3ToRedshiftOperator",
    f"{_GOOGLE}.hooks.bigquery": "BigQueryHook",
    f"{_GOOGLE}.hooks.gcs": "GCSHook",
    f"{_GOOGLE}.operators.bigquery": (
        "BigQueryCheckOperator BigQueryValueCheckOperator BigQueryIntervalCheckOperator BigQueryGetDataOperator "
        "BigQueryCreateEmptyDatasetOperator BigQueryDeleteDatasetOperator BigQueryInsertJobOperator"
    ),
    f"{_GOOGLE}.operators.dataproc": "DataprocCreateClusterOperator DataprocDeleteClusterOperator DataprocSubmitJobOperator",
    f"{_GOOGLE}.operators.gcs": "GCSCreateBucketOperator GCSDeleteObjectsOperator GCSListObjectsOperator",
    f"{_GOOGLE}.sensors.bigquery": "BigQueryTableExistenceSensor",
    f"{_GOOGLE}.sensors.gcs": "GCSObjectExistenceSensor GCSObjectsWithPrefixExistenceSensor",
    f"{_GOOGLE}.transfers.bigquery_to_bigquery": "BigQueryToBigQueryOperator",
    f"{_GOOGLE}.transfers.bigquery_to_gcs": "BigQueryToGCSOperator",
    f"{_GOOGLE}.transfers.gcs_to_bigquery": "GCSToBigQueryOperator",
    f"{_GOOGLE}.transfers.gcs_to_gcs": "GCSToGCSOperator",
    f"{_GOOGLE}.transfers.local_to_gcs": "LocalFilesystemToGCSOperator",
    f"{_GOOGLE}.transfers.postgres_to_gcs": "PostgresToGCSOperator",
    f"{_GOOGLE}.transfers.mysql_to_gcs": "MySQLToGCSOperator",
    f"{_GOOGLE}.transfers.s3_to_gcs": "S3ToGCSOperator",
}

_RENAMED = {
    "DummyOperator": f"{_STANDARD}.operators.empty:EmptyOperator",
    "TimeDeltaSensorAsync": f"{_STANDARD}.sensors.time_delta:TimeDeltaSensor",
    "Dataset": f"{_SDK}:Asset",
    "DatasetAlias": f"{_SDK}:AssetAlias",
    "DatasetAll": f"{_SDK}:AssetAll",
    "DatasetAny": f"{_SDK}:AssetAny",
    "DatasetOrTimeSchedule": f"{_SDK}:AssetOrTimeSchedule",
    "TaskStateTrigger": f"{_STANDARD}.triggers.external_task:WorkflowTrigger",
    "SimpleHttpOperator": "airflow.providers.http.operators.http:HttpOperator",
    "CheckOperator": f"{_SQL}.operators.sql:SQLCheckOperator",
    "ValueCheckOperator": f"{_SQL}.operators.sql:SQLValueCheckOperator",
    "IntervalCheckOperator": f"{_SQL}.operators.sql:SQLIntervalCheckOperator",
    "BranchSqlOperator": f"{_SQL}.operators.sql:BranchSQLOperator",
}

_QUERY = "from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator, and name the connection by conn_id="
_JOB = f"from {_GOOGLE}.operators.bigquery import BigQueryInsertJobOperator, whose configuration= says the query"
_STOOD_IN_FOR = {
    "days_ago": "a fixed date, such as start_date=datetime(2026, 1, 1): one that moves is another version of the DAG every day",
    "apply_defaults": "nothing in its place: operators do so by themselves",
    "date_range": "a list of dates of your own",
    "PostgresOperator": _QUERY,
    "MySqlOperator": _QUERY,
    "SqliteOperator": _QUERY,
    "MsSqlOperator": _QUERY,
    "OracleOperator": _QUERY,
    "JdbcOperator": _QUERY,
    "SnowflakeOperator": _QUERY,
    "DagStateChangeCallback": "an annotation of your own, or none",
    "LazyXComAccess": "an annotation of your own, or none",
    "ScheduleInterval": "an annotation of your own, or none",
    "SubDagOperator": "a TaskGroup with the tasks of the inner DAG",
    "TaskStateChangeCallback": "an annotation of your own, or none",
    "make_aware": "dates with a time zone, such as pendulum.datetime(2026, 1, 1, tz='UTC')",
    "BigQueryCreateEmptyTableOperator": f"from {_GOOGLE}.operators.bigquery import BigQueryCreateTableOperator",
    "BigQueryExecuteQueryOperator": _JOB,
    "BigQueryOperator": _JOB,
    "S3PrefixSensor": f"from {_AWS}.sensors.s3 import S3KeySensor, with wildcard_match=True",
    "S3ToSnowflakeOperator": (
        "from airflow.providers.snowflake.transfers.copy_into_snowflake import CopyFromExternalStageToSnowflakeOperator"
    ),
}

_NO_DATABASE = (
    "It is a table of Airflow's database, which is not used here. History is deleted by itself: see the settings of retention."
)
_GONE = {
    "SlaMiss": "Use a DeadlineAlert for what is late.",
    "TaskFail": _NO_DATABASE,
    "ImportError": _NO_DATABASE,
    "BaseJob": _NO_DATABASE,
    "SmartSensorOperator": "Make the sensor deferrable.",
    "Volume": "Use V1Volume of kubernetes.client.models.",
    "VolumeMount": "Use V1VolumeMount of kubernetes.client.models.",
    "Port": "Use V1ContainerPort of kubernetes.client.models.",
    "Resources": "Use V1ResourceRequirements of kubernetes.client.models.",
    "DataProcPySparkOperator": "Use DataprocSubmitJobOperator.",
    "DataProcSparkOperator": "Use DataprocSubmitJobOperator.",
    "trigger_dag": "Use TriggerDagRunOperator.",
}

# Modules that no longer exist, including all below them; and existing modules that have lost names.
NO_MORE = (
    "airflow.api.common.experimental",
    "airflow.compat",
    "airflow.contrib",
    "airflow.datasets",
    "airflow.decorators.task_group",
    "airflow.jobs.base_job",
    "airflow.kubernetes",
    "airflow.lineage.entities",
    "airflow.models.dagparam",
    "airflow.models.mappedoperator",
    "airflow.providers.cncf.kubernetes.operators.kubernetes_pod",
    "airflow.providers.microsoft.mssql.operators",
    "airflow.providers.mysql.operators",
    "airflow.providers.oracle.operators.oracle",
    "airflow.providers.postgres.operators",
    "airflow.providers.sqlite.operators",
    "airflow.timetables.datasets",
    "airflow.utils.dag_parsing_context",
    "airflow.utils.log.secrets_masker",
    "airflow.utils.module_loading",
    "airflow.utils.weekday",
    *provider_homes.NO_MORE,
)
FLAT = ("airflow.hooks", "airflow.operators", "airflow.sensors")  # below these, any module once had operators
LACKING = (
    *FLAT,
    "airflow.jobs",
    "airflow.models",
    "airflow.models.abstractoperator",
    "airflow.models.baseoperator",
    "airflow.models.dag",
    "airflow.models.taskinstance",
    "airflow.models.xcom",
    "airflow.models.xcom_arg",
    "airflow.operators.python",
    "airflow.operators.weekday",
    "airflow.providers.http.operators.http",
    "airflow.providers.snowflake.operators.snowflake",
    "airflow.triggers.external_task",
    "airflow.utils.dates",
    "airflow.utils.db",
    "airflow.utils.decorators",
    "airflow.utils.file",
    "airflow.utils.helpers",
    "airflow.utils.task_group",
    "airflow.utils.timezone",
    *provider_homes.LACKING,
)

_BY_NAME = {
    **{name: f"{module}:{name}" for module, names in {**_SAME, **provider_homes.SAME}.items() for name in names.split()},
    **_RENAMED,
    **provider_homes.RENAMED,
}


@dataclass(frozen=True, slots=True)
class Home:
    """``kind``: the name has moved, has a stand-in, or is gone; ``instead`` is what to write, or to do."""

    kind: Literal["moved", "stood_in_for", "gone"]
    module: str
    name: str
    instead: str


def home_of(name: str) -> Home | None:
    """Returns the present place of a name; None for an unknown one."""
    if (target := _BY_NAME.get(name)) is not None:
        module, _, now = target.partition(":")
        return Home("moved", module, now, f"from {module} import {now}")
    if name in _STOOD_IN_FOR:
        return Home("stood_in_for", STAND_INS_ELSEWHERE.get(name, STAND_INS), name, _STOOD_IN_FOR[name])
    if name in _GONE:
        return Home("gone", "", "", _GONE[name])
    return None


def is_no_more(module: str) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in NO_MORE)


def was_flat(module: str) -> bool:
    """Returns whether it is named like modules of Airflow 1.10: ``airflow.operators.bash_operator``."""
    return module.rpartition(".")[0] in FLAT


def provider_of(module: str) -> str | None:
    """Returns the package to install for a module of a provider, such as ``apache-airflow-providers-cncf-kubernetes``."""
    parts = module.split(".")
    if parts[:2] != ["airflow", "providers"] or len(parts) < 3:
        return None
    grouped = {"apache", "cncf", "common", "dbt", "microsoft", "atlassian"}
    named = parts[2:4] if parts[2] in grouped else parts[2:3]
    return "apache-airflow-providers-" + "-".join(named).replace("_", "-")
