"""Stand-ins for names that Airflow 3 does not replace, and that files still import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pendulum
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import timezone

from evenflow.sdk.default_timezone import default_timezone


def days_ago(n: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> datetime:
    today: datetime = timezone.coerce_datetime(datetime.now(UTC)).replace(
        hour=hour, minute=minute, second=second, microsecond=microsecond
    )
    return today - timedelta(days=n)


def make_aware(value: datetime, timezone: tzinfo | None = None) -> datetime:
    """Raises :class:`ValueError` for a date that has a time zone already."""
    if value.tzinfo is not None:
        raise ValueError(f"make_aware takes a date without a time zone, and {value.isoformat()} has one.")
    aware: datetime = pendulum.instance(value, tz=timezone or default_timezone())
    return aware


def date_range(start_date: datetime, end_date: datetime | None = None, num: int | None = None, delta: Any = None) -> list[datetime]:
    """``delta`` is a timedelta, or a number of days. Raises :class:`ValueError` for an endless range."""
    if isinstance(delta, str):
        raise ValueError(f"date_range with delta={delta!r}: write the dates, or a timedelta; cron is read by schedule= alone.")
    step = delta if isinstance(delta, timedelta) else timedelta(days=delta or 1)
    if step <= timedelta(0) or (num is not None and num < 0):
        raise ValueError(f"date_range goes forward: delta={delta!r} and num={num!r} do not. Write the dates.")
    dates = [start_date]
    while (len(dates) < num) if num is not None else (dates[-1] + step <= (end_date or datetime.now(UTC))):
        dates.append(dates[-1] + step)
    return dates


DagStateChangeCallback = TaskStateChangeCallback = Callable[[dict[str, Any]], None]  # types of annotations
LazyXComAccess = Sequence[Any]
ScheduleInterval = str | timedelta | None


def apply_defaults(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class _QueryOperator(SQLExecuteQueryOperator):  # type: ignore[misc]
    """An operator for one kind of database, whose argument for the connection has a special name."""

    connected_by: str

    def __init__(self, *, database: str | None = None, schema: str | None = None, conn_id: str | None = None, **more: Any) -> None:
        given = more.pop(self.connected_by, conn_id)
        named = {**({"database": database} if database else {}), **({"schema": schema} if schema else {})}
        if named:
            more["hook_params"] = {**more.get("hook_params", {}), **named}
        super().__init__(conn_id=given or self.connected_by.replace("_conn_id", "_default"), **more)


class PostgresOperator(_QueryOperator):
    connected_by = "postgres_conn_id"

    def __init__(self, *, runtime_parameters: Mapping[str, str] | None = None, **more: Any) -> None:
        if runtime_parameters:
            options = " ".join(f"-c {name}={value}" for name, value in runtime_parameters.items())
            more["hook_params"] = {**more.get("hook_params", {}), "options": options}
        super().__init__(**more)


class MySqlOperator(_QueryOperator):
    connected_by = "mysql_conn_id"


class SqliteOperator(_QueryOperator):
    connected_by = "sqlite_conn_id"


class MsSqlOperator(_QueryOperator):
    connected_by = "mssql_conn_id"


class OracleOperator(_QueryOperator):
    connected_by = "oracle_conn_id"


class JdbcOperator(_QueryOperator):
    connected_by = "jdbc_conn_id"


class SnowflakeOperator(_QueryOperator):
    connected_by = "snowflake_conn_id"
