"""What REST answers when it refuses: a problem, as RFC 9457 has it, and the kinds of problems that there are.

A kind is named by its code, which programs compare and which stays; its title says the same to people. What happened this time, and
what to do about it, stand in each answer.
"""

from __future__ import annotations

from pydantic import Field

from evenflow.contracts.rest.record import Record

MEDIA_TYPE = "application/problem+json"
PATH = "/problems"  # below the prefix of REST: what each kind means

TITLES = {
    "answered": "Somebody has answered before",
    "backfill_ended": "The backfill is over",
    "backfill_exists": "The DAG has a backfill that is not over",
    "bad_archive": "The code cannot be unpacked",
    "bad_cursor": "The cursor does not fit the list",
    "bad_dag": "The DAG is wrong as written",
    "bad_message": "The message cannot be read",
    "bad_params": "A parameter of the run does not fit",
    "bad_request": "The request cannot be read",
    "bad_value": "A value makes no sense",
    "busy": "It cannot be had for the moment",
    "cannot_store": "Logs cannot be stored",
    "changed": "Somebody else has changed it",
    "changing": "Somebody else is changing it",
    "dag_has_file": "A file defines the DAG",
    "dag_paused": "The DAG is paused",
    "dag_retired": "No file defines the DAG any more",
    "database_unavailable": "The database does not answer",
    "deployment_taken": "The Deployment is of another fleet",
    "ended": "It has ended",
    "executor_in_use": "The executor is in use",
    "forbidden": "The caller may not do this",
    "hung_up": "The request was not sent to its end",
    "internal": "The API failed",
    "key_not_known_yet": "The key of the token is not known yet",
    "key_reused": "The idempotency key is of another request",
    "last_admin": "This is the last admin",
    "length_required": "The length of the body is missing",
    "log_storage": "The storage of logs cannot be used",
    "method_not_allowed": "The method is not possible here",
    "name_taken": "The name is taken",
    "no_storage": "The storage of results cannot be used",
    "no_task": "A task is missing",
    "not_asked": "Nobody was asked for this",
    "not_found": "There is no such thing",
    "not_implemented": "This is not possible here",
    "not_mapped": "The task is not mapped",
    "nothing_to_mark": "There is nothing to mark",
    "other_executor": "The queue is of another executor",
    "other_kind": "The executor is of another kind",
    "other_target": "The fleet has another target",
    "pool_in_use": "The pool is in use",
    "queue_taken": "The queue is taken",
    "refused": "A report cannot be stored as it is",
    "run_cancelled": "The run is being cancelled",
    "run_exists": "The run exists already",
    "run_finished": "The run has ended",
    "run_gone": "The run was deleted",
    "run_not_begun": "The run has not begun",
    "run_not_finished": "The run has not ended",
    "secret_store": "A store of secrets does not give what is asked for",
    "stale_epoch": "The try is over",
    "too_large": "Something is too large",
    "too_many_exports": "Too many exports are under way",
    "too_many_logins": "Too many logins are under way, or have failed",
    "too_many_requests": "The token asks too often",
    "too_many_runs": "These are too many runs at once",
    "too_many_streams": "Too many pages listen",
    "unauthorized": "The caller is not known",
    "unreachable": "Something else that is needed cannot be reached",
    "wrong_executor": "The worker is of another executor",
    "wrong_key": "The keys of secrets do not fit",
    "wrong_version": "The two sides speak different versions",
}  # by code


class ProblemKind(Record):
    type: str = Field(description="A reference that stays the same, and leads to this record: `/api/v1/problems/` and the code.")
    title: str = Field(description="The kind in a few words, the same each time.")


class Problem(ProblemKind):
    """As `application/problem+json` (RFC 9457), with two members of Evenflow's own: `hint` and `request_id`."""

    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What happened this time, and to what.")
    instance: str = Field(description="The path that was asked.")
    hint: str = Field(default="", description="What to do about it; empty where nothing is to be said.")
    request_id: str = Field(description="The request's `X-Request-ID`, or one made for it: the API's log and events name it.")
