"""The program in a processor's template of an environment with Airflow: ``python -m evenflow.airflow.loading.parse_process FD``.

It works like :mod:`evenflow.processor.parse_process`, with the SDK imported once, for all children. A job ``{"plugins": true}`` has
no file: the warnings of its answer are about the plugins of the environment.
"""

from __future__ import annotations

from evenflow.airflow.installed import check_template, configure
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.template import serve_template
from evenflow.processor.parse_process import answer


def prepare(config: FrameHeader) -> None:
    check_template(config)
    configure()
    import airflow.providers.standard.decorators.python
    import airflow.providers.standard.operators.bash  # noqa: F401

    from evenflow.airflow.loading import reader  # noqa: F401


def run(prepared: None, job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    if job.get("plugins"):
        from evenflow.airflow.loading.plugins import unserved

        return {"tell": "parsed", "warnings": unserved()}, b"{}"
    from evenflow.airflow.loading.reader import MixedReader

    def ask(question: FrameHeader) -> FrameHeader:
        return link.ask({"tell": "asks", **question})[0]

    return answer(MixedReader(job["environment"], ask if job["asks"] else None), job)


if __name__ == "__main__":
    serve_template(prepare, run)
