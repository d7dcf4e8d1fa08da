"""What a task of Airflow's asks people, as a question of Evenflow's own, and the answer in the form that its operator reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evenflow.contracts.airflow.answers import ExecutionAnswer, found, refused
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.core.deferral import Purpose
from evenflow.core.ending import Defer
from evenflow.core.model import RunParamSpec
from evenflow.core.people.approvals import ANSWER_TRIGGER, PEOPLE, ApprovalAnswer, ApprovalQuestion
from evenflow.errors import BadSetting
from evenflow.sdk.param_schema import check_schema, is_keyword, problem_of_value

_NO_ANSWER = {"error": "Nobody answered in time, and the question has no defaults.", "error_type": "timeout"}


class HumanInput:
    """A task posts its question, and then says that it waits for the answer."""

    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def ask(self, body: Any, **path: str) -> ExecutionAnswer:
        question = _question(body)
        if (flaw := question.flaw()) is not None:
            return refused(422, "bad_question", f"Evenflow cannot ask this: {flaw}.")
        self._of_try.draft.set_question(json.dumps(dataclasses.asdict(question), ensure_ascii=False))
        return found({name: value for name, value in body.items() if name != "type"}, 201)

    def awaited(self, body: Any, timeout_s: float | None) -> Defer | None:
        """Returns the wait for the answer; None if nothing was asked."""
        question = self._of_try.draft.question()
        if question is None:
            return None
        return Defer(
            trigger=ANSWER_TRIGGER,
            trigger_kwargs={"question": question},
            method=body["next_method"],
            kwargs=body.get("next_kwargs") or {},
            timeout_s=timeout_s,
            queue=PEOPLE,
        )


def event_of(resumed: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the operator gets: the answer, else its defaults, else that there was none in time."""
    if resumed["purpose"] == Purpose.EVENT:
        answer = ApprovalAnswer(**json.loads(resumed["event"]))
        at = datetime.fromisoformat(answer.answered_at) if answer.answered_at else datetime.now(UTC)
        person = {"id": answer.answered_by, "name": answer.answered_by}
        return _answered(answer.choice, answer.values, at, person, is_late=False)
    asked = json.loads(resumed["trigger_kwargs"]["question"])
    if asked["default"] is None:
        return dict(_NO_ANSWER)
    values = {name: param["default"] for name, param in asked["params"].items()}
    return _answered(asked["default"], values, datetime.now(UTC), None, is_late=True)


def _answered(choice: Any, values: Mapping[str, Any], at: datetime, person: Any, *, is_late: bool) -> dict[str, Any]:
    return {
        "chosen_options": [choice] if isinstance(choice, str) else list(choice),
        "params_input": dict(values),
        "responded_at": {"__classname__": "datetime.datetime", "__version__": 2, "__data__": at.timestamp()},
        "responded_by_user": person,
        "timedout": is_late,
    }


def _question(body: Any) -> ApprovalQuestion:
    defaults, multiple = body.get("defaults"), bool(body.get("multiple"))
    return ApprovalQuestion(
        subject=body["subject"],
        body=body.get("body") or "",
        choices=body["options"],
        params={name: _field(name, param) for name, param in (body.get("params") or {}).items()},
        who=[user["name"] for user in body.get("assigned_users") or ()],
        default=(defaults if multiple else defaults[0]) if defaults else None,
        multiple=multiple,
    )


def _field(name: str, param: Any) -> RunParamSpec:
    """Returns a field of the form: a param as the SDK writes it, or only its value."""
    if not isinstance(param, dict) or not {"value", "schema"} <= param.keys():
        return RunParamSpec(default=param)
    schema = own_schema(param["schema"])
    try:
        check_schema(schema, f"The field {name!r}")
    except BadSetting as error:
        raise ValueError(str(error)) from None
    description = param.get("description") or ""
    if problem_of_value(param["value"], schema):
        return RunParamSpec(schema=schema, required=True, description=description)
    return RunParamSpec(default=param["value"], schema=schema, description=description)


def own_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a param of Airflow's; keywords of its forms become notes."""
    noted = {name if is_keyword(name) else f"x-{name}": value for name, value in schema.items()}
    return dict(json.loads(json.dumps(noted)))
