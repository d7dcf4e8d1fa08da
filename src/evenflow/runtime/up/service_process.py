"""The process from which services of ``evenflow up`` are forked: ``python -m evenflow.runtime.up.service_process FD``.

It loads once what any of them needs, and knows no secret: a service gets its environment when it is forked. Five services share the
memory of these modules, and their import, which is most of the cost of a start.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time

from evenflow.core.service import ServiceKind
from evenflow.forking import prctl
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.sandbox import OURS
from evenflow.forking.template import serve_template
from evenflow.runtime.service_settings import command_of


def prepare(config: FrameHeader) -> None:
    """Loads what services of these ``kinds`` need."""
    sys.dont_write_bytecode = False  # these modules are Evenflow's own
    kinds = [ServiceKind(kind) for kind in config["kinds"]]
    needed = ["evenflow.runtime.service", *(f"evenflow.{kind.replace('-', '_')}.service" for kind in kinds)]
    needed += ["evenflow.runtime.database"] * any(kind.knows_database for kind in kinds) + ["uvloop"] * (ServiceKind.API in kinds)
    gc.disable()  # modules stay: collecting garbage among them takes a fifth of their import time
    for name in needed:
        importlib.import_module(name)
    gc.enable()


def run(prepared: None, job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    """Becomes the service; its exit code is that of this process."""
    kind = ServiceKind(job["kind"])
    os.environ.clear()
    os.environ.update(job["environment"])
    for listener in link.handed:
        os.environ[f"{OURS}LISTENER"] = str(listener)
    time.tzset()
    command = command_of(kind)
    sys.argv[:] = [sys.argv[0], command[-1]]
    prctl.show_command(command)
    code = 70
    try:
        code = importlib.import_module("evenflow.runtime.service").main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    prctl.hide()  # so its forks are hidden from their first moment on
    serve_template(prepare, run)
