"""Stand-ins for names that the provider of Snowflake no longer has."""

from __future__ import annotations

from typing import Any

from airflow.providers.snowflake.transfers.copy_into_snowflake import CopyFromExternalStageToSnowflakeOperator


class S3ToSnowflakeOperator(CopyFromExternalStageToSnowflakeOperator):  # type: ignore[misc]
    def __init__(self, *, s3_keys: list[str] | None = None, **more: Any) -> None:
        super().__init__(files=s3_keys or more.pop("files", None), **more)
