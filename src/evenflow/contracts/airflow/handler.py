"""The Task Execution API as one function from requests to answers, without any transport, for one try.

It translates requests into Evenflow's own questions (:mod:`evenflow.wire.questions`); a request without a counterpart is refused by
its name, in the log of its task. Workers mount it without HTTP, where the task is, and the API mounts it for clients elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

from evenflow.contracts.airflow.answers import ExecutionAnswer, refused, unknown
from evenflow.contracts.airflow.dates import NEWEST, SPOKEN, in_form_of, not_spoken
from evenflow.contracts.airflow.kept import AirflowInlets, AssetStateStore, TaskStateStore
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.contracts.airflow.other_runs import OtherRuns
from evenflow.contracts.airflow.people import HumanInput
from evenflow.contracts.airflow.secrets import Secrets
from evenflow.contracts.airflow.states import TaskInstances
from evenflow.contracts.airflow.xcoms import AirflowXComs
from evenflow.errors import ApiRefused, EvenflowError

Answering = Callable[..., ExecutionAnswer]
_XCOM = "xcoms/{dag_id}/{run_id}/{task_id}/{key}"


class ExecutionApi:
    """The API of one try; ``tasks`` then has its outcome."""

    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try
        people = HumanInput(of_try)
        self.tasks = tasks = TaskInstances(of_try, people)
        xcoms = AirflowXComs(of_try)
        secrets, runs = Secrets(of_try), OtherRuns(of_try)
        store, events, of_assets = TaskStateStore(of_try), AirflowInlets(of_try), AssetStateStore(of_try)
        routes: list[tuple[str, str, Answering]] = [
            ("PATCH", "task-instances/{id}/run", tasks.run),
            ("PATCH", "task-instances/{id}/state", tasks.state),
            ("PUT", "task-instances/{id}/heartbeat", tasks.heartbeat),
            ("PUT", "task-instances/{id}/rtif", tasks.rendered),
            ("PATCH", "task-instances/{id}/rendered-map-index", tasks.rendered_map_index),
            ("PATCH", "task-instances/{id}/skip-downstream", tasks.skip_downstream),
            ("GET", "task-instances/{id}/previous-successful-dagrun", tasks.previous_success),
            ("GET", "task-instances/{id}/validate-inlets-and-outlets", tasks.validate_assets),
            ("POST", "hitlDetails/{id}", people.ask),
            ("GET", "task-reschedules/{id}/start_date", tasks.first_look),
            ("GET", "task-instances/count", runs.count_tasks),
            ("GET", "task-instances/states", runs.task_states),
            ("GET", "dag-runs/count", runs.count_runs),
            ("GET", "dag-runs/{dag_id}/{run_id}/state", runs.run_state),
            ("POST", "dag-runs/{dag_id}/{run_id}", runs.trigger),
            ("POST", "dag-runs/{dag_id}/{run_id}/clear", runs.clear),
            ("HEAD", _XCOM, xcoms.count),
            ("GET", _XCOM, xcoms.pull),
            ("POST", _XCOM, xcoms.push),
            ("DELETE", _XCOM, xcoms.delete),
            ("GET", f"{_XCOM}/item/{{offset}}", xcoms.item),
            ("GET", f"{_XCOM}/slice", xcoms.slice),
            ("GET", "connections/{conn_id}", secrets.connection),
            ("GET", "variables/keys", secrets.variable_keys),
            ("GET", "variables/{key}", secrets.variable),
            ("PUT", "variables/{key}", secrets.set_variable),
            ("DELETE", "variables/{key}", secrets.delete_variable),
            ("GET", "store/ti/{id}/{key}", store.get),
            ("PUT", "store/ti/{id}/{key}", store.put),
            ("DELETE", "store/ti/{id}/{key}", store.delete),
            ("DELETE", "store/ti/{id}", store.delete),
            *(
                route
                for named in ("by-name", "by-uri")
                for route in (
                    ("GET", f"store/asset/{named}/value", of_assets.get),
                    ("PUT", f"store/asset/{named}/value", of_assets.put),
                    ("DELETE", f"store/asset/{named}/value", of_assets.delete),
                    ("DELETE", f"store/asset/{named}/clear", of_assets.delete),
                )
            ),
            ("GET", "assets/by-name", events.asset),
            ("GET", "assets/by-uri", events.asset),
            ("GET", "assets/by-alias", events.assets_of_alias),
            ("GET", "asset-events/by-asset", events.by_asset),
            ("GET", "asset-events/by-asset-alias", events.by_alias),
        ]
        self._routes = [(method, _pattern(path), route) for method, path, route in routes]

    def handle(self, method: str, path: str, query: str, body: bytes, date: str = NEWEST) -> ExecutionAnswer:
        """Answers a request to ``path``, which is quoted. It never raises because of one, because the client would repeat it again
        and again.
        """
        if date not in SPOKEN:
            return refused(400, "wrong_version", not_spoken(date))
        path = path.strip("/")
        for wanted, pattern, route in self._routes:
            if wanted == method and (match := pattern.fullmatch(path)) is not None:
                return in_form_of(date, self._answered(route, match.groupdict(), query, body))
        return unknown(f"counterpart of {method} {path.partition('/')[0]}/... of Airflow's Task Execution API")

    def _answered(self, route: Answering, names: dict[str, str], query: str, body: bytes) -> ExecutionAnswer:
        if names.get("id", own := str(self._of_try.id)) != own:
            return refused(403, "forbidden", f"This client speaks for task instance {own} alone.")
        lists = parse_qs(query)
        given: dict[str, Any] = (
            {name: values[0] for name, values in lists.items()} if "lists" not in route.__annotations__ else {"lists": lists}
        )
        try:
            return route(json.loads(body) if body else None, **{name: unquote(value) for name, value in names.items()}, **given)
        except ApiRefused as error:
            return refused(error.status if error.status < 500 else 422, "refused", str(error))
        except EvenflowError as error:
            return refused(400, "refused", str(error))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            return refused(422, "bad_request", f"The request cannot be read: {error!r:.300}")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))
