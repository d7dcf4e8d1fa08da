"""Sensors that look at other systems: at the answer of an HTTP service, or of a database.

``evenflow.triggers`` has the looks, for the process of a task and for a triggerer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from evenflow.errors import BadSetting, LookRefused
from evenflow.sdk.context import Context
from evenflow.sdk.operators.built_in_triggers import HTTP, SHORTEST_PAUSE_S, SQL, built_in, checked, look
from evenflow.sdk.operators.sensors import BaseSensorOperator
from evenflow.sdk.signature import Signature
from evenflow.sdk.triggers import BaseTrigger


class HttpSensor(BaseSensorOperator):
    """Waits until a request has an answer with a status below 400 and the expected content. With ``field``, a path into the JSON of
    the answer such as ``job.state``, its value must be one of ``values``, or true when there are none; one of ``failed_values``
    fails the try. ``response_check(response)`` decides by a function, from ``response.json()``, ``.text`` and ``.status_code``; it
    may take entries of the context, too.

    A status in ``response_error_codes_allowlist`` means: not yet. ``request_params`` are those of the URL; for methods other than
    GET and HEAD they are the JSON body. The connection is ``https://login:password@host/base``, with headers in its extras. With
    ``deferrable`` a triggerer waits instead; it calls no user function, so this excludes ``response_check``.
    """

    operator_name = "sensor"
    preloaded_to_defer = ("evenflow.triggers.http", "aiohttp")
    template_fields: ClassVar[Sequence[str]] = ("path", "request_params", "headers")

    def __init__(
        self,
        *,
        task_id: str,
        endpoint: str,
        http_conn_id: str = "http_default",
        method: str = "GET",
        request_params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        response_error_codes_allowlist: Collection[str | int] = ("404",),
        response_check: Callable[..., bool] | None = None,
        field: str | None = None,
        values: Sequence[Any] = (),
        failed_values: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        if response_check is not None and (field is not None or self.deferrable):
            raise BadSetting(
                f"Task {task_id!r}: response_check excludes field and deferrable=True: a triggerer runs no function of a DAG file. "
                "Say what is waited for by field= and values=, or leave deferrable out and write mode='reschedule'."
            )
        if field is None and (values or failed_values):
            raise BadSetting(
                f"Task {task_id!r}: values and failed_values say what a field may be. Say which, for example: field='state'"
            )
        if wrong := [status for status in response_error_codes_allowlist if not str(status).isdecimal()]:
            raise BadSetting(
                f"Task {task_id!r}: response_error_codes_allowlist has {wrong[0]!r}, which is no HTTP status such as 404."
            )
        self.path, self.http_conn_id, self.method = endpoint, http_conn_id, method.upper()
        self.request_params, self.headers = request_params, headers
        self.response_error_codes_allowlist = [int(status) for status in response_error_codes_allowlist]
        self.response_check = response_check
        self.field, self.values, self.failed_values = field, values, failed_values

    def poke(self, context: Context) -> bool:
        if self.response_check is None:
            event = look(self.trigger(context), context)
            return event is not None and bool(checked(event))
        response = look(self.trigger(context), context, "answer")
        if response is None:
            return False
        arguments = Signature.of(self.response_check).fill((response,), {}, context)
        return bool(self.response_check(response, **arguments))

    def trigger(self, context: Context) -> BaseTrigger:
        in_url = self.method in ("GET", "HEAD")
        return built_in(
            HTTP,
            endpoint=self.path,
            http_conn_id=self.http_conn_id,
            method=self.method,
            params=self.request_params if in_url else None,
            body=None if in_url else self.request_params,
            headers=self.headers,
            wait_statuses=self.response_error_codes_allowlist,
            field=self.field,
            values=self.values,
            failed_values=self.failed_values,
            poll_interval=max(self.poke_interval, SHORTEST_PAUSE_S),
        )

    def found(self, context: Context, event: Any) -> None:
        checked(event)


class SqlSensor(BaseSensorOperator):
    """Waits until ``sql`` returns a row whose first column is true.

    ``selector(row)`` selects from the row, ``success(value)`` decides whether the wait is over, and ``failure(value)`` whether to
    fail the try. With ``fail_on_empty`` a missing row fails it, too. ``parameters`` are in the style of the driver, which the
    scheme of the connection selects. With ``deferrable`` a triggerer waits instead; it calls no user function, so put the condition
    into the statement.
    """

    operator_name = "sensor"
    preloaded_to_defer = ("evenflow.triggers.sql",)
    template_fields: ClassVar[Sequence[str]] = ("sql", "parameters")
    template_ext: ClassVar[Sequence[str]] = (".sql", ".hql")

    def __init__(
        self,
        *,
        task_id: str,
        conn_id: str,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        success: Callable[[Any], Any] | None = None,
        failure: Callable[[Any], Any] | None = None,
        selector: Callable[[Any], Any] | None = None,
        fail_on_empty: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(task_id=task_id, **options)
        if self.deferrable and (success or failure or selector):
            raise BadSetting(
                f"Task {task_id!r}: success, failure and selector exclude deferrable=True: a triggerer runs no function of a DAG "
                "file. Say in the statement what is waited for, as in: select count(*) > 9 ... Or leave deferrable out and write "
                "mode='reschedule'."
            )
        self.conn_id, self.sql, self.parameters = conn_id, sql, parameters
        self.success, self.failure, self.selector, self.fail_on_empty = success, failure, selector, fail_on_empty

    def poke(self, context: Context) -> bool:
        row = look(self.trigger(context), context, "row")
        if row is None:
            if self.fail_on_empty:
                raise LookRefused(f"The statement of task {self.task_id!r} answers no row, which means: fail (fail_on_empty).")
            return False
        value = row[0] if self.selector is None else self.selector(row)
        if self.failure is not None and self.failure(value):
            raise LookRefused(f"What the statement of task {self.task_id!r} answers means failure: {value!r:.200}.")
        return bool(value if self.success is None else self.success(value))

    def trigger(self, context: Context) -> BaseTrigger:
        return built_in(
            SQL,
            conn_id=self.conn_id,
            sql=self.sql,
            parameters=self.parameters,
            fail_on_empty=self.fail_on_empty,
            poll_interval=max(self.poke_interval, SHORTEST_PAUSE_S),
        )

    def found(self, context: Context, event: Any) -> None:
        checked(event)
