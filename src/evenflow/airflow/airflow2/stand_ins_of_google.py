"""Stand-ins for names that the provider of Google no longer has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow.providers.google.cloud.operators.bigquery import BigQueryCreateTableOperator, BigQueryInsertJobOperator

_PART = re.compile(r"(?:\{\{.*?\}\}|[^.:{]|\{(?!\{))+")  # of the name of a table; dots within a template are not between parts
_OF_QUERY = {  # arguments of the operator, as the API names them
    "allow_large_results": "allowLargeResults",
    "create_disposition": "createDisposition",
    "encryption_configuration": "destinationEncryptionConfiguration",
    "flatten_results": "flattenResults",
    "maximum_billing_tier": "maximumBillingTier",
    "maximum_bytes_billed": "maximumBytesBilled",
    "priority": "priority",
    "query_params": "queryParameters",
    "schema_update_options": "schemaUpdateOptions",
    "time_partitioning": "timePartitioning",
    "udf_config": "userDefinedFunctionResources",
    "write_disposition": "writeDisposition",
}


class BigQueryExecuteQueryOperator(BigQueryInsertJobOperator):  # type: ignore[misc]
    """Runs a query as a job. Its SQL is legacy SQL unless it says otherwise, as it was."""

    def __init__(self, *, sql: str | list[str] | None = None, use_legacy_sql: bool = True, **more: Any) -> None:
        text = sql if sql is not None else more.pop("bql", None)
        query = {"query": text if isinstance(text, str) else ";\n".join(text or []), "useLegacySql": use_legacy_sql}
        query |= {now: value for old, now in _OF_QUERY.items() if (value := more.pop(old, None)) is not None}
        if (table := more.pop("destination_dataset_table", None)) is not None:
            query["destinationTable"] = _table(table)
        if (fields := more.pop("cluster_fields", None)) is not None:
            query["clustering"] = {"fields": fields}
        configuration = {"query": {**query, **(more.pop("api_resource_configs", None) or {}).get("query", {})}}
        if (labels := more.pop("labels", None)) is not None:
            configuration["labels"] = labels
        if (connection := more.pop("bigquery_conn_id", None)) is not None:
            more.setdefault("gcp_conn_id", connection)
        super().__init__(configuration=configuration, **more)


BigQueryOperator = BigQueryExecuteQueryOperator


class BigQueryCreateEmptyTableOperator(BigQueryCreateTableOperator):  # type: ignore[misc]
    def __init__(self, *, table_resource: Mapping[str, Any] | None = None, **more: Any) -> None:
        table: dict[str, Any] = dict(table_resource or {})
        if (fields := more.pop("schema_fields", None)) is not None:
            table["schema"] = {"fields": fields}
        if (partitioning := more.pop("time_partitioning", None)) is not None:
            table["timePartitioning"] = partitioning
        if (clustered := more.pop("cluster_fields", None)) is not None:
            table["clustering"] = {"fields": clustered}
        for old, now in (("labels", "labels"), ("view", "view"), ("materialized_view", "materializedView")):
            if (value := more.pop(old, None)) is not None:
                table[now] = value
        if (connection := more.pop("bigquery_conn_id", None)) is not None:
            more.setdefault("gcp_conn_id", connection)
        if (exists_ok := more.pop("exists_ok", None)) is not None:
            more.setdefault("if_exists", "ignore" if exists_ok else "fail")
        super().__init__(table_resource=table, **more)


def _table(name: str) -> dict[str, str]:
    """Raises :class:`ValueError` for a name whose parts only a run knows."""
    parts = _PART.findall(name)
    if len(parts) not in (2, 3):
        raise ValueError(f"destination_dataset_table={name!r} has no parts here. Write '[project.]dataset.table', each a template.")
    return dict(zip(("projectId", "datasetId", "tableId")[-len(parts) :], parts, strict=True))
