"""Stand-ins for names that the provider of Amazon no longer has."""

from __future__ import annotations

from typing import Any

from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor


class S3PrefixSensor(S3KeySensor):  # type: ignore[misc]
    """Waits for a key below each prefix."""

    def __init__(self, *, bucket_name: str, prefix: str | list[str], delimiter: str = "/", **more: Any) -> None:
        prefixes = [prefix] if isinstance(prefix, str) else prefix
        super().__init__(bucket_name=bucket_name, bucket_key=[f"{each}*" for each in prefixes], wildcard_match=True, **more)
