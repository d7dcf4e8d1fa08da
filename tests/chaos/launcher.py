"""The process from which the services of a scenario are forked, each as ``python -m evenflow.runtime.service KIND`` would be.

It has loaded all that they load, which is most of what their start costs, and has given them short leases. It is a script of its
own, so that the product has no switch for any of this. ``launcher.py FD LEASES``: FD is a SOCK_SEQPACKET socket to the harness,
LEASES the JSON of {"module:NAME": seconds}. Messages are JSON:

    harness   {"kind", "environment", "folder", "log", "passed", "die": {"point", "nth", "signal", "armed"} | null}
    launcher  {"pid"}                 the answer: the service runs
    launcher  {"exited": pid, "status"}

``passed`` is a file that gets a line the first time that a service passes a point.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections import Counter
from typing import Any, NoReturn

LOADED = ("evenflow.runtime.service", "evenflow.runtime.database", "evenflow.runtime.embedded", "uvloop")
KINDS = ("api", "scheduler", "processor", "worker", "triggerer")
SERVICES = tuple(f"evenflow.{kind}.service" for kind in KINDS)
MESSAGE_BYTES = 2**18
REAP_EVERY_MS = 20


def main() -> NoReturn:
    sys.path.pop(0)  # this folder, whose modules have names of their own
    harness = socket.socket(fileno=int(sys.argv[1]))
    shorten(json.loads(sys.argv[2]))
    for module in (*LOADED, *SERVICES):
        importlib.import_module(module)
    poll = select.poll()
    poll.register(harness, select.POLLIN)
    while True:
        for _ in poll.poll(REAP_EVERY_MS):
            request = harness.recv(MESSAGE_BYTES)
            if not request:
                os._exit(0)  # the services die with it
            pid = os.fork()
            if pid == 0:
                become(json.loads(request))
            tell(harness, {"pid": pid})
        reap(harness)


def shorten(leases: dict[str, float]) -> None:
    """Before anything else is imported: others import these numbers by their names."""
    for name, seconds in leases.items():
        module, _, constant = name.partition(":")
        found = importlib.import_module(module)
        if not isinstance(getattr(found, constant, None), float):
            raise SystemExit(f"{name} is no number of seconds any more: correct tests/chaos/leases.py")
        setattr(found, constant, seconds)


def become(service: dict[str, Any]) -> NoReturn:
    code = 70
    try:
        importlib.import_module("evenflow.forking.prctl").die_with_parent(signal.SIGKILL)
        os.setsid()
        log = os.open(service["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 4096)
        os.chdir(service["folder"])
        os.environ.clear()
        os.environ.update(service["environment"])
        time.tzset()
        sys.argv[1:] = [service["kind"]]
        watch_points(service["passed"], service["die"])
        code = importlib.import_module("evenflow.runtime.service").main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def watch_points(passed: str, die: dict[str, Any] | None) -> None:
    from evenflow.killpoints import KillPoint, watch

    file = os.open(passed, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    times: Counter[KillPoint] = Counter()
    counted = 0

    def pass_by(point: KillPoint) -> None:
        nonlocal counted
        times[point] += 1
        if times[point] == 1:
            os.write(file, f"{point}\n".encode())
        if die is not None and point == die["point"] and (die["armed"] is None or os.path.exists(die["armed"])):
            counted += 1
            if counted == die["nth"]:
                os.write(file, f"{point} {die['signal']}\n".encode())
                os.kill(os.getpid(), die["signal"])

    watch(pass_by)


def reap(harness: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        tell(harness, {"exited": pid, "status": os.waitstatus_to_exitcode(status)})


def tell(harness: socket.socket, message: dict[str, int]) -> None:
    try:
        harness.send(json.dumps(message).encode())
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the harness, which ends this process
    main()
