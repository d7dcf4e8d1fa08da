"""What tasks ask people, and what these answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from evenflow.contracts.rest.dags import DagParam
from evenflow.contracts.rest.record import Record, Request
from evenflow.core import limits
from evenflow.core.model import UNMAPPED
from evenflow.core.people.approvals import ApprovalChoice

ChoiceName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class Approval(Record):
    dag_id: str = Field(title="DAG")
    run_id: str = Field(title="run")
    task_id: str = Field(title="task")
    map_index: int
    subject: str = Field(title="asks", description="The question.")
    body: str = Field(description="Text that stands below it.")
    choices: list[str] = Field(title="answers")
    params: list[DagParam] = Field(description="The fields of its form.")
    who: list[str] = Field(title="asks whom", description="Names of people, and role:NAME. None: everybody who may trigger runs.")
    may_answer: bool = Field(description="Whether who reads this may.")
    asked_at: datetime = Field(title="for")
    until: datetime | None = Field(title="until at most", description="Then the default is the answer, or the task fails.")
    default: ApprovalChoice | None = Field(title="else")
    multiple: bool = Field(description="Whether several choices may be the answer; choices are lists then.")
    problem: str | None = Field(description="Why the question cannot be read; then nobody can answer it. Null: it can.")


class AnswerRequest(Request):
    choice: ChoiceName | Annotated[list[ChoiceName], Field(min_length=1, max_length=limits.MAX_CHOICES)] = Field(
        description="One of the choices; several of a question that takes several."
    )
    values: dict[str, Any] = Field(default={}, description="Of the fields of the form; those left out have their defaults.")
    map_index: int = Field(default=UNMAPPED, ge=UNMAPPED, le=limits.INT32_MAX, description="-1 of a task that is not mapped.")


class Answered(Record):
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    choice: ApprovalChoice
    answered_by: str
    answered_at: datetime
