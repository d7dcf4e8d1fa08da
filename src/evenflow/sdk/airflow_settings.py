"""Settings of Airflow that Evenflow has not: those that change nothing are accepted, the others refused with what to write
instead. A DAG that is moved over so keeps its ``default_args``, and nothing that it asks for is ignored in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evenflow.errors import BadSetting


class Foreign(NamedTuple):
    """``harmless`` are the values under which Evenflow does the same without the setting; None: whatever the value is."""

    cure: str
    harmless: tuple[Any, ...] | None = ()


_MAIL = "Mail is sent by a callback: on_failure_callback=EmailNotifier(to=[...])."
_DATES = "A task runs when its DAG does: give the date to the DAG."

TASK_SETTINGS = {
    "owner": Foreign("", None),  # the DAG's is shown
    "email": Foreign("", None),  # the address alone sends nothing
    "email_on_failure": Foreign(_MAIL, (False, None)),
    "email_on_retry": Foreign(_MAIL.replace("failure", "retry"), (False, None)),
    "ignore_first_depends_on_past": Foreign("A first run has no past, and waits for none.", (True, None)),
    "wait_for_past_depends_before_skipping": Foreign("Leave it out: a task is skipped at once.", (False, None)),
    "multiple_outputs": Foreign("Leave it out: items of a result are result['name'].", (False, None)),
    "executor_config": Foreign("Where a task runs is said by executor= and queue=.", ({}, None)),
    "run_as_user": Foreign("Tasks run as their worker does: start one as this user, and name it by queue=.", (None,)),
    "resources": Foreign("How much runs at once is said by pool= and pool_slots=.", ({}, None)),
    "pre_execute": Foreign("Say on_execute_callback=.", (None,)),
    "post_execute": Foreign("Say on_success_callback=, or do it in the task.", (None,)),
    "start_date": Foreign(_DATES, (None,)),
    "end_date": Foreign(_DATES, (None,)),
    "map_index_template": Foreign("Leave it out: instances are named by their index.", (None,)),
    "doc_rst": Foreign("Say doc=.", (None,)),
    "doc_yaml": Foreign("Say doc=.", (None,)),
    "doc_json": Foreign("Say doc=.", (None,)),
    "sla": Foreign("Say deadline= for the DAG, or execution_timeout=.", (None,)),
    "task_concurrency": Foreign("Say max_active_tis_per_dag=.", (None,)),
    "provide_context": Foreign("Leave it out: arguments named after entries of the context get them.", (None,)),
}

DAG_OPTIONS = {
    "auto_register": Foreign("Every DAG that a file makes is one of the file's.", (True, None)),
    "access_control": Foreign("Who may do what is said by tokens: evenflow tokens create.", ({}, None)),
    "disable_bundle_versioning": Foreign("A run always keeps the version that it began with.", (False, None)),
    "template_undefined": Foreign("A template that names what there is not is an error, always.", (None,)),
    "jinja_environment_kwargs": Foreign("Templates are changed by user_defined_macros= and user_defined_filters=.", ({}, None)),
    "sla_miss_callback": Foreign("Say deadline=DeadlineAlert(...).", (None,)),
    "schedule_interval": Foreign("Say schedule=."),
    "timetable": Foreign("Say schedule=."),
    "concurrency": Foreign("Say max_active_tasks=."),
    "fail_stop": Foreign("Say fail_fast=."),
    "default_view": Foreign("Leave it out."),
    "orientation": Foreign("Leave it out."),
}


def is_harmless(known: Mapping[str, Foreign], name: str, value: Any, where: str) -> bool:
    """Whether ``name`` is a setting of Airflow that may be left unheeded. Raises :class:`BadSetting` for one that may not."""
    foreign = known.get(name)
    if foreign is None:
        return False
    if foreign.harmless is None or any(value is each or (each == {} and value == {}) for each in foreign.harmless):
        return True
    raise BadSetting(f"{where}: Evenflow has no {name} as Airflow has. {foreign.cure}")
