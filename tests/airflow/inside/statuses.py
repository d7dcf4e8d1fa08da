"""What the API answers to the SDK's client."""

from __future__ import annotations

from typing import Any

from airflow.sdk.api.client import ServerResponseError


def status_of(call: Any) -> int:
    try:
        call()
    except ServerResponseError as error:
        return error.response.status_code
    return 200
