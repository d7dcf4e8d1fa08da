"""How the JVM of a classic session ended, told to the person who has to act on it.

pyspark says that a gateway exited, and py4j speaks of empty answers and refused connections. Neither says what the end of a process
says: its exit code, or the signal that killed it.
"""

from __future__ import annotations

import re
import signal
import subprocess

from evenflow.errors import SparkUnavailable
from evenflow.spark.limits import JVM_DEATH_SHOWS

JVM = subprocess.Popen[bytes] | None  # None: another process's, named by PYSPARK_GATEWAY_PORT

OUT_OF_MEMORY = 52  # the exit code of Spark's JVMs that ran out of memory
MORE_MEMORY = "Give the driver more, by ?driver_memory=4g in the connection or conf={'spark.driver.memory': '4g'}, or collect less."
_STOPPING = re.compile(r"SparkContext\.\w+\(\)\" is null|SparkContext was shut down|stopped SparkContext")
SHELL_SIGNALS = 128  # what a shell adds to the number of the signal that killed a command

# What to do about a JVM that does not get as far as a session, by the signal that killed it.
_REMEDIES: dict[int | None, str] = {
    signal.SIGKILL: "Mostly the system kills so when memory runs out: run fewer tasks at once on this machine, or give Spark less, "
    "by ?driver_memory=600m in the connection.",
    signal.SIGTERM: "Somebody told it to end, as who stops a worker does.",
}
_REMEDY = (
    "Mostly it does not know an option (spark.driver.extraJavaOptions, JAVA_TOOL_OPTIONS) or does not get its memory "
    "(?driver_memory=600m in the connection asks for less)."
)


def before_session(code: int, complaint: str = "") -> SparkUnavailable:
    """For a JVM that has ended. ``complaint`` is what it says of its options."""
    if complaint:
        return SparkUnavailable(
            f"Spark's JVM does not start with these options: {complaint}. Correct spark.driver.memory or ?driver_memory= (write "
            "e.g. 4g), spark.driver.extraJavaOptions or JAVA_TOOL_OPTIONS."
        )
    remedy = _REMEDIES.get(_signal(code), _REMEDY)
    return SparkUnavailable(f"Spark's JVM {_ended(code)} before its session was there; its last words are in the log. {remedy}")


def silent(for_s: float) -> SparkUnavailable:
    """For a JVM that lives, and was not ready after this number of seconds."""
    return SparkUnavailable(
        f"Spark's JVM was not ready after {for_s:g} s, and was killed; its last words are in the log. This machine may be busy "
        "with too much else: run fewer tasks at once on it."
    )


def at_begin(jvm: JVM, error: Exception) -> SparkUnavailable | None:
    """Explains an exception raised instead of a session; None when the JVM lives."""
    code = _exit_code(jvm, error)
    return None if code is None else before_session(code)


def in_use(jvm: JVM, error: Exception) -> SparkUnavailable | None:
    """Explains an exception raised in a session; None when the JVM lives."""
    code = _exit_code(jvm, error)
    if code is None:
        return None
    if code == OUT_OF_MEMORY:
        return SparkUnavailable(
            f"OutOfMemoryError: Java heap space, as a rule: Spark's JVM {_ended(code)} while the task used it, which says that "
            f"memory ran out; its last words are in the log. {MORE_MEMORY}",
            names_cause=True,
        )
    return SparkUnavailable(
        f"Spark's JVM {_ended(code)} while the task used it; its last words are in the log. If it ran out of memory: {MORE_MEMORY}"
    )


def _exit_code(jvm: JVM, error: Exception) -> int | None:
    """None while the JVM lives. A broken conversation is heard before the other side's exit, and so is what fails because Spark
    stops in a JVM that ends: its exit gets a moment to follow.
    """
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    broken = not _has_text(error) if isinstance(error, Py4JJavaError) else isinstance(error, (Py4JError, ConnectionError))
    if jvm is None or not (broken or _STOPPING.search(str(error))):
        return None
    try:
        return jvm.wait(JVM_DEATH_SHOWS)
    except subprocess.TimeoutExpired:
        return None


def _has_text(error: Exception) -> bool:
    """The text of an exception of Java is asked of the JVM."""
    try:
        str(error)
    except Exception:  # py4j raises several kinds, as far as the conversation got
        return False
    return True


def _ended(code: int) -> str:
    number = _signal(code)
    return f"was killed by signal {number}" if number else f"ended with exit code {code}"


def _signal(code: int) -> int | None:
    """What killed a process. A shell between it and us, as Spark's scripts are, says so by a code above 128."""
    number = -code if code < 0 else code - SHELL_SIGNALS
    return number if number > 0 else None
