"""Operators of the standard provider that ask people, as they are written for Airflow."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLEntryOperator, HITLOperator
from airflow.sdk import DAG, BaseNotifier, Param, task

SECOND = timedelta(seconds=1)


class Note(BaseNotifier):
    template_fields = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def notify(self, context) -> None:
        link = HITLOperator.generate_link_to_ui_from_context(context=context, base_url="http://evenflow.example")
        print(f"{self.message} {link}")


with DAG(dag_id="asks", start_date=datetime(2026, 1, 1), schedule=None):
    typed = HITLEntryOperator(
        task_id="typed",
        subject="What to deploy?",
        params={"what": Param("", type="string"), "times": Param(2, type="integer")},
        notifiers=Note("Somebody says {{ task.subject }}"),
    )
    several = HITLOperator(task_id="several", subject="Where?", options=["Berlin", "Rome", "Oslo"], multiple=True)
    late = HITLOperator(
        task_id="late", subject="In time?", options=["yes", "no"], defaults="no", params={"n": 7}, response_timeout=SECOND
    )
    never = HITLOperator(task_id="never", subject="In time?", options=["yes", "no"], response_timeout=SECOND)
    approved = ApprovalOperator(
        task_id="approved",
        subject="{{ ti.xcom_pull('typed')['params_input']['what'] }}?",
        body="*Please*",
        response_timeout=60 * SECOND,
    )
    rejected = ApprovalOperator(task_id="rejected", subject="This, too?", assigned_users={"id": "1", "name": "role:operator"})
    refused = ApprovalOperator(task_id="refused", subject="And this?", fail_on_reject=True)
    theirs = ApprovalOperator(
        task_id="theirs", subject="Who?", assigned_users=[{"id": "7", "name": "grace"}], response_timeout=20 * SECOND
    )
    ways = HITLBranchOperator(
        task_id="ways",
        subject="Which way?",
        options=["left", "right", "back"],
        options_mapping={"left": "to_the_left"},
        multiple=True,
    )

    @task
    def told(ti=None):
        for name in ("typed", "several", "late", "approved"):
            answer = ti.xcom_pull(name)
            print(name, answer["chosen_options"], answer["params_input"], answer["responded_by_user"], type(answer["responded_at"]))

    @task
    def way(): ...

    @task
    def after(): ...

    [typed, several, late] >> approved >> told()
    rejected >> after()
    ways >> [way.override(task_id=name)() for name in ("to_the_left", "right", "back")]
