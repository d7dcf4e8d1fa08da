"""Starts the JVM of a classic session, and waits until it can be talked to.

pyspark could do it, too. But it waits for ever for a JVM that ends with exit code 0, and for one that says nothing, and loses the
process when it has ended. Both speak the same protocol: the JVM writes its port and a secret into a new file, which an environment
variable names, and ends at the end of its stdin.
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from evenflow.spark import jvm_end
from evenflow.spark.driver import spark_submit
from evenflow.spark.limits import JVM_BEGINS, JVM_LOOK, JVM_REFUSES
from evenflow.spark.properties import SUBMIT_ARGUMENTS

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"  # by which pyspark finds a JVM that is there
_WHERE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_DEAF_TO_CTRL_C = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # the task is told, and ends its JVM


def connect(complaint: Callable[[], str]) -> JavaGateway:
    """Connects to a new JVM with :data:`SUBMIT_ARGUMENTS`, or to that of :data:`PORT` where another process has started one. Raises
    :class:`SparkUnavailable` when it ends before it can be talked to, or does not begin; ``complaint`` says what is wrong with its
    options, if anything.
    """
    from pyspark.java_gateway import launch_gateway

    to_jvm: Callable[[], JavaGateway] = launch_gateway
    if PORT in os.environ:
        return to_jvm()
    jvm, port, secret = _start(complaint)
    os.environ.update({PORT: str(port), SECRET: secret})
    try:
        gateway = to_jvm()
    except Exception as error:
        told = jvm_end.at_begin(jvm, error)
        _kill(jvm)
        if told is None:
            raise
        raise told from error
    finally:
        del os.environ[PORT], os.environ[SECRET]  # what the task starts has JVMs of its own
    gateway.proc = jvm
    return gateway


def _start(complaint: Callable[[], str]) -> tuple[subprocess.Popen[bytes], int, str]:
    """A JVM, its port and its secret."""
    with tempfile.TemporaryDirectory(prefix="evenflow-jvm-") as folder:
        said = Path(folder, "said")
        env = {**os.environ, "SPARK_CONNECT_MODE": "0", _WHERE: str(said)}
        command = [*_DEAF_TO_CTRL_C, spark_submit(env), *shlex.split(os.environ[SUBMIT_ARGUMENTS])]
        jvm = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
        try:
            _wait_for(said, jvm, complaint)
        except BaseException:
            _kill(jvm)
            raise
        written = said.read_bytes()
    (port,) = struct.unpack_from("!i", written)
    return jvm, port, written[8:].decode()  # between them is the length


def _wait_for(said: Path, jvm: subprocess.Popen[bytes], complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + JVM_BEGINS
    while True:
        code = jvm.poll()  # before the look: once it has ended, all that it has written is there
        if said.exists():
            return
        if code is not None:
            raise jvm_end.before_session(code, complaint() if code == JVM_REFUSES else "")
        if time.monotonic() > deadline:
            raise jvm_end.silent(JVM_BEGINS)
        with suppress(subprocess.TimeoutExpired):
            jvm.wait(JVM_LOOK)


def _kill(jvm: subprocess.Popen[bytes]) -> None:
    """With what Spark's script has started: it asks a JVM of its own which one to start."""
    with suppress(psutil.Error):
        for process in psutil.Process(jvm.pid).children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
    jvm.kill()
    jvm.wait()
