"""The present places of names that providers of Airflow 2 had elsewhere, or under another name."""

from __future__ import annotations

_AWS, _GOOGLE = "airflow.providers.amazon.aws", "airflow.providers.google.cloud"

SAME = {
    f"{_AWS}.hooks.athena": "AthenaHook",
    f"{_AWS}.hooks.sns": "SnsHook",
    f"{_AWS}.operators.datasync": "DataSyncOperator",
    f"{_AWS}.operators.dms": (
        "DmsCreateTaskOperator DmsDeleteTaskOperator DmsDescribeTasksOperator DmsStartTaskOperator DmsStopTaskOperator"
    ),
    f"{_AWS}.operators.emr": (
        "EmrAddStepsOperator EmrCreateJobFlowOperator EmrModifyClusterOperator EmrTerminateJobFlowOperator EmrContainerOperator"
    ),
    f"{_AWS}.operators.s3": (
        "S3CopyObjectOperator S3CreateBucketOperator S3DeleteBucketOperator S3DeleteBucketTaggingOperator S3DeleteObjectsOperator "
        "S3FileTransformOperator S3GetBucketTaggingOperator S3ListOperator S3ListPrefixesOperator S3PutBucketTaggingOperator"
    ),
    f"{_AWS}.operators.sagemaker": (
        "SageMakerEndpointConfigOperator SageMakerEndpointOperator SageMakerModelOperator SageMakerProcessingOperator "
        "SageMakerTrainingOperator SageMakerTransformOperator SageMakerTuningOperator"
    ),
    f"{_AWS}.operators.sns": "SnsPublishOperator",
    f"{_AWS}.operators.sqs": "SqsPublishOperator",
    f"{_AWS}.sensors.emr": "EmrContainerSensor EmrJobFlowSensor EmrStepSensor",
    f"{_AWS}.sensors.s3": "S3KeySensor S3KeysUnchangedSensor",
    f"{_AWS}.sensors.sagemaker": ("SageMakerEndpointSensor SageMakerTrainingSensor SageMakerTransformSensor SageMakerTuningSensor"),
}

RENAMED = {
    "ElasticsearchHook": "airflow.providers.elasticsearch.hooks.elasticsearch:ElasticsearchSQLHook",
    "AWSAthenaHook": f"{_AWS}.hooks.athena:AthenaHook",
    "AWSAthenaOperator": f"{_AWS}.operators.athena:AthenaOperator",
    "AWSBatchOperator": f"{_AWS}.operators.batch:BatchOperator",
    "AWSDataSyncHook": f"{_AWS}.hooks.datasync:DataSyncHook",
    "AWSDataSyncOperator": f"{_AWS}.operators.datasync:DataSyncOperator",
    "AwsBatchClientHook": f"{_AWS}.hooks.batch_client:BatchClientHook",
    "AwsBatchOperator": f"{_AWS}.operators.batch:BatchOperator",
    "AwsDynamoDBHook": f"{_AWS}.hooks.dynamodb:DynamoDBHook",
    "AwsFirehoseHook": f"{_AWS}.hooks.firehose:FirehoseHook",
    "AwsGlueCrawlerHook": f"{_AWS}.hooks.glue_crawler:GlueCrawlerHook",
    "AwsGlueCrawlerOperator": f"{_AWS}.operators.glue_crawler:GlueCrawlerOperator",
    "AwsGlueCrawlerSensor": f"{_AWS}.sensors.glue_crawler:GlueCrawlerSensor",
    "AwsGlueJobHook": f"{_AWS}.hooks.glue:GlueJobHook",
    "AwsGlueJobOperator": f"{_AWS}.operators.glue:GlueJobOperator",
    "AwsGlueJobSensor": f"{_AWS}.sensors.glue:GlueJobSensor",
    "AwsHook": f"{_AWS}.hooks.base_aws:AwsBaseHook",
    "AwsLambdaHook": f"{_AWS}.hooks.lambda_function:LambdaHook",
    "AwsLambdaInvokeFunctionOperator": f"{_AWS}.operators.lambda_function:LambdaInvokeFunctionOperator",
    "AwsRedshiftClusterSensor": f"{_AWS}.sensors.redshift_cluster:RedshiftClusterSensor",
    "AwsSnsHook": f"{_AWS}.hooks.sns:SnsHook",
    "ECSOperator": f"{_AWS}.operators.ecs:EcsRunTaskOperator",
    "EKSCreateClusterOperator": f"{_AWS}.operators.eks:EksCreateClusterOperator",
    "EKSCreateNodegroupOperator": f"{_AWS}.operators.eks:EksCreateNodegroupOperator",
    "EKSDeleteClusterOperator": f"{_AWS}.operators.eks:EksDeleteClusterOperator",
    "EKSDeleteNodegroupOperator": f"{_AWS}.operators.eks:EksDeleteNodegroupOperator",
    "EKSHook": f"{_AWS}.hooks.eks:EksHook",
    "EKSPodOperator": f"{_AWS}.operators.eks:EksPodOperator",
    "EMRContainerHook": f"{_AWS}.hooks.emr:EmrContainerHook",
    "EMRContainerOperator": f"{_AWS}.operators.emr:EmrContainerOperator",
    "EMRContainerSensor": f"{_AWS}.sensors.emr:EmrContainerSensor",
    "EcsOperator": f"{_AWS}.operators.ecs:EcsRunTaskOperator",
    "S3ToRedshiftTransfer": f"{_AWS}.transfers.s3_to_redshift:S3ToRedshiftOperator",
    "SESHook": f"{_AWS}.hooks.ses:SesHook",
    "SQSHook": f"{_AWS}.hooks.sqs:SqsHook",
    "SQSPublishOperator": f"{_AWS}.operators.sqs:SqsPublishOperator",
    "SQSSensor": f"{_AWS}.sensors.sqs:SqsSensor",
    "BigQueryTableSensor": f"{_GOOGLE}.sensors.bigquery:BigQueryTableExistenceSensor",
    "BigQueryToCloudStorageOperator": f"{_GOOGLE}.transfers.bigquery_to_gcs:BigQueryToGCSOperator",
    "DataprocClusterCreateOperator": f"{_GOOGLE}.operators.dataproc:DataprocCreateClusterOperator",
    "DataprocClusterDeleteOperator": f"{_GOOGLE}.operators.dataproc:DataprocDeleteClusterOperator",
    "FileToGoogleCloudStorageOperator": f"{_GOOGLE}.transfers.local_to_gcs:LocalFilesystemToGCSOperator",
    "GCSObjectExistenceAsyncSensor": f"{_GOOGLE}.sensors.gcs:GCSObjectExistenceSensor",
    "GCSObjectsWtihPrefixExistenceSensor": f"{_GOOGLE}.sensors.gcs:GCSObjectsWithPrefixExistenceSensor",
    "GoogleCloudStorageHook": f"{_GOOGLE}.hooks.gcs:GCSHook",
    "GoogleCloudStorageObjectSensor": f"{_GOOGLE}.sensors.gcs:GCSObjectExistenceSensor",
    "GoogleCloudStoragePrefixSensor": f"{_GOOGLE}.sensors.gcs:GCSObjectsWithPrefixExistenceSensor",
    "GoogleCloudStorageToBigQueryOperator": f"{_GOOGLE}.transfers.gcs_to_bigquery:GCSToBigQueryOperator",
    "GoogleCloudStorageToGoogleCloudStorageOperator": f"{_GOOGLE}.transfers.gcs_to_gcs:GCSToGCSOperator",
}

# Modules that providers no longer have, and modules of theirs that have lost names.
_MODULES_NO_MORE = {
    "hooks": "aws_dynamodb batch emr_containers redshift",
    "operators": (
        "aws_lambda dms_create_task dms_delete_task dms_describe_tasks dms_start_task dms_stop_task emr_add_steps "
        "emr_containers emr_create_job_flow emr_modify_cluster emr_terminate_job_flow s3_bucket s3_bucket_tagging s3_copy_object "
        "s3_delete_objects s3_file_transform s3_list s3_list_prefixes sagemaker_base sagemaker_endpoint "
        "sagemaker_endpoint_config sagemaker_model sagemaker_processing sagemaker_training sagemaker_transform sagemaker_tuning"
    ),
    "sensors": (
        "emr_base emr_containers emr_job_flow emr_step redshift s3_key s3_keys_unchanged s3_prefix sagemaker_base "
        "sagemaker_endpoint sagemaker_training sagemaker_transform sagemaker_tuning"
    ),
}
_MODULES_LACKING = {
    "hooks": "athena batch_client datasync dynamodb eks glue glue_crawler kinesis lambda_function ses sns sqs",
    "operators": "athena batch datasync ecs eks glue glue_crawler lambda_function sqs",
    "sensors": "glue glue_crawler s3 sqs",
}
NO_MORE = (
    *(f"{_AWS}.{kind}.{name}" for kind, names in _MODULES_NO_MORE.items() for name in names.split()),
    "airflow.providers.snowflake.transfers.s3_to_snowflake",
)
LACKING = (
    *(f"{_AWS}.{kind}.{name}" for kind, names in _MODULES_LACKING.items() for name in names.split()),
    f"{_GOOGLE}.operators.bigquery",
    f"{_GOOGLE}.sensors.gcs",
    "airflow.providers.elasticsearch.hooks.elasticsearch",
)
