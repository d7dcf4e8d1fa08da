"""Settings of Airflow that Evenflow lacks. Harmless ones are accepted, the others are refused with what to write instead. So a DAG
from Airflow keeps its ``default_args``, and no setting is ignored silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evenflow.errors import BadSetting


class Foreign(NamedTuple):
    """``harmless`` are the values under which Evenflow does the same without the setting; None: every value."""

    cure: str
    harmless: tuple[Any, ...] | None = ()


_MAIL = "Mail is sent by a callback: on_failure_callback=EmailNotifier(to=[...])."
_DATA = "Arguments and results are data and need no serializer: leave it out."
_DATES = "A task runs when its DAG does: give the date to the DAG."

TASK_SETTINGS = {
    "owner": Foreign("", None),  # pages show the owner of the DAG
    "email": Foreign(_MAIL, (None, "", [], ())),
    "email_on_failure": Foreign(_MAIL, (False, None)),
    "email_on_retry": Foreign(_MAIL.replace("failure", "retry"), (False, None)),
    "ignore_first_depends_on_past": Foreign("A first run has no past, and waits for none.", (True, None)),
    "wait_for_past_depends_before_skipping": Foreign("Leave it out: a task is skipped at once.", (False, None)),
    "executor_config": Foreign("Where a task runs is said by executor= and queue=.", ({}, None)),
    "run_as_user": Foreign("Tasks run as their worker does: start one as this user, and name it by queue=.", (None,)),
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
    "template_ext": Foreign(
        "Say templates_exts= for a function; in an operator of your own template_ext is an attribute of the class."
    ),
    "serializer": Foreign(_DATA, ("pickle", None)),
    "use_dill": Foreign(_DATA, (False, None)),
    "expect_airflow": Foreign("", None),  # Airflow would warn where it is not installed
    "use_airflow_context": Foreign("Name the entries of the context that the function needs as its parameters.", (False, None)),
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
    """Returns whether ``name`` is a setting of Airflow that may be ignored. Raises :class:`BadSetting` for one that may not."""
    foreign = known.get(name)
    if foreign is None:
        return False
    if foreign.harmless is None or any(type(value) is type(each) and value == each for each in foreign.harmless):
        return True
    raise BadSetting(f"{where}: Evenflow has no {name} as Airflow has. {foreign.cure}")


def sends_no_mail(options: Mapping[str, Any]) -> bool:
    """Returns whether an address among the ``options`` may be ignored: Airflow would send nothing there either, or callbacks
    report.

    In Airflow an address alone is enough: mail on failure and on retry are on unless they are turned off.
    """
    told = (options.get("on_failure_callback"), options.get("on_retry_callback"))
    off = (options.get("email_on_failure"), options.get("email_on_retry"))
    return any(told) or off == (False, False)
