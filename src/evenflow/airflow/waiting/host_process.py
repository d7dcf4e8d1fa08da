"""A triggerer's host in an environment with Airflow: ``python -m evenflow.airflow.waiting.host_process FD``.

It works like :mod:`evenflow.triggerer.host_process`, with the SDK loaded in advance.
"""

from __future__ import annotations

from evenflow.airflow.installed import check_template, configure
from evenflow.forking.frames import FrameHeader
from evenflow.forking.template import serve_template
from evenflow.triggerer import host_process
from evenflow.triggerer.capture import TriggerOutput


def ahead() -> None:
    configure()
    import airflow.triggers.base  # noqa: F401

    from evenflow.airflow.waiting import trigger, watch  # noqa: F401


def prepare(config: FrameHeader) -> TriggerOutput:
    check_template(config)
    return host_process.prepare(config)


if __name__ == "__main__":
    serve_template(prepare, host_process.run, ahead=ahead)
