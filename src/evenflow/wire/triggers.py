"""Messages between triggerers and the execution API about triggers. Registering and beats are as for all services.

A triggerer claims triggers, runs each, and reports its outcome. A *trigger token* comes with each assignment and is good for the
logs, questions and reports of this one claim of the trigger. Claims are numbered: a trigger that is claimed again, because its
triggerer was lost or gave it back, has a higher number, and questions and give-backs of the earlier claim are refused.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from evenflow.wire.messages import Message

# Of wire.questions.QUESTIONS, those that a trigger may ask: it looks, and changes nothing, but says of Spark what people see, and
# tells what the asset does that it watches.
TRIGGER_QUESTIONS = ("connection", "variable", "states", "record", "watched")


class ClaimTriggers(Message):
    """POST /triggers/claim. Answered at once when triggers wait for a triggerer, else when they do or after ``wait_s``."""

    service_id: int
    request_key: str  # the same key again returns the same triggers, in case an answer was lost
    capacity: int  # how many more it can run
    queues: list[str] = field(default_factory=list)  # none: all
    wait_s: float = 0.0


class TriggerAssignment(Message):
    """One trigger, with all that its process needs."""

    epoch: int  # of the try that waits for it
    claim: int
    token: str
    path: str  # of its class
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    code_hash: str
    file: str
    kwargs: dict[str, Any] = field(default_factory=dict)  # in JSON's own types, as sdk.xcom makes them
    default_timezone: str = "UTC"
    environment: str = ""  # as in Assignment
    deferred_s: float = 0.0  # since its task was deferred
    failures: int = 0  # earlier failures of this trigger
    secrets: list[str] = field(default_factory=list)  # in its arguments, masked in its log


class TriggersAnswer(Message):
    """``state``: how the control plane regards this triggerer, as in the answer to a claim of tries."""

    assignments: list[TriggerAssignment] = field(default_factory=list)
    state: str = "active"  # active, draining, lost


class TriggerReport(Message):
    """The outcome of a trigger: an event, an error, or it was given back to run elsewhere. Exactly one of the three."""

    token: str
    age_s: float = 0.0  # since the event
    event: bytes | None = None  # JSON
    error: str | None = None  # for people
    given_back: bool = False


class TriggerReports(Message):
    """POST /triggers/reports. All or nothing; a repeated batch does no harm: an event of a try that has resumed changes nothing,
    and neither does a failure of a claim that is over.
    """

    reports: list[TriggerReport]


class TriggerReportsAnswer(Message):
    """``refused_at`` are positions in the batch, with the reasons in ``refused``; the others are stored."""

    refused: list[str] = field(default_factory=list)
    refused_at: list[int] = field(default_factory=list)
