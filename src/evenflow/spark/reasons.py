"""Why a Spark application failed, said first and in a sentence: what an exception of pyspark and a driver's last words mean.

Spark wraps: a task's exception in one of the stage, that in one of the job, that in one of py4j. What a person needs is the
innermost class and text, on which executor, and whether another try may go better.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenflow.errors import SparkFailed, SparkFailedForGood
from evenflow.spark.driver import describe, without_frames
from evenflow.spark.jvm_end import MORE_MEMORY, OUT_OF_MEMORY
from evenflow.spark.limits import MOST_REASON

# A query that Spark cannot even plan is as wrong the next time. What data, memory or hosts cause may go well then.
FINAL = frozenset(
    {
        "AnalysisException",
        "ExtendedAnalysisException",
        "ParseException",
        "PySparkAttributeError",
        "PySparkNotImplementedError",
        "PySparkTypeError",
        "PySparkValueError",
    }
)

_JAVA = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"]*\" |.*?: )?"
    r"(?P<name>(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error))(?:: (?P<text>.*))?$"
)
_PYTHON = re.compile(r"^(?P<name>(?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt))(?:: (?P<text>.*))?$")
_WRAPPERS = frozenset({"SparkException", "Py4JJavaError", "PythonException", "SparkUserAppException", "ExecutionException"})
_EXECUTOR = re.compile(r"\((?P<host>\S+) executor (?P<executor>\S+)\): (?P<rest>ExecutorLostFailure .*?Reason: (?P<reason>.*))?")
_EXIT = re.compile(r"[Ee]xit(?:ed with)? (?:code|status) (?P<code>\d+)")
_VERSIONS = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (?P<text>[^\n]*)")
_STORAGE = re.compile(r"Class org\.apache\.hadoop\.fs\.(?P<module>\w+)\.(?P<name>\w+) not found")
_PACKAGES = {"s3a": "hadoop-aws", "azurebfs": "hadoop-azure", "azure": "hadoop-azure"}
_SQLSTATE = re.compile(r"SQLSTATE: \w{5}\b")

_MORE_FOR_EXECUTORS = "Give executors more: conf={'spark.executor.memory': '4g'}, or smaller partitions."


@dataclass(frozen=True, slots=True)
class Reason:
    """``kind`` is the class of the innermost cause; ``final`` says that another try would end in the same way."""

    kind: str
    text: str
    final: bool = False

    def as_error(self, more: str = "") -> SparkFailed:
        kind = SparkFailedForGood if self.final else SparkFailed
        return kind(f"{self.text.rstrip('.')}.{more}", names_cause=self.text.startswith(self.kind))


@contextmanager
def explained() -> Iterator[None]:
    """Has what Spark raises inside raised as :class:`SparkFailed`, after the author's frames were printed. What is not
    wrapped and may go well another time passes: its class says enough, to retry policies too.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        told = describe(error)
        reason = reason_of(told)
        if not reason.final and reason.kind == told["class"]:
            _shorten(error)
            raise
        sys.stderr.write(
            f"Without Spark's own frames:\n{''.join(told['frames'])}{type(error).__name__}: {without_frames(told['text'])}\n"
        )
        raise reason.as_error() from None


def _shorten(error: Any) -> None:
    """One of Spark Connect has the frames of the server's JVM in its text, and what Spark had planned."""
    if getattr(error, "_display_stacktrace", False):
        error._display_stacktrace = False
        error._message = _statement(error._message)


def reason_of(told: Mapping[str, Any]) -> Reason:
    """Of an exception as :func:`evenflow.spark.driver.describe` tells it."""
    text = str(told["text"])
    names = (str(told["class"]), *told.get("bases", ()))
    if found := _known(text):
        return found
    where = f" ({_where(text)})" if _where(text) else ""
    name, said = str(told["class"]), _first_lines(text)
    if name in _WRAPPERS or "Py4J" in name:
        inner = _innermost(text)
        if inner is not None:
            name, said = inner
            names = (name,)
    final = any(each in FINAL for each in names) and "OutOfMemory" not in name
    return Reason(name, _bounded(f"{name}: {said}{where}"), final)


def reason_of_output(tail: str) -> Reason | None:
    """Of the last words of a driver; None when they say nothing."""
    if found := _known(tail):
        return found
    inner = _innermost(tail)
    if inner is None:
        return None
    name, said = inner
    return Reason(name, _bounded(f"{name}: {said}"), name in FINAL)


def _known(text: str) -> Reason | None:
    """What is said best in words of its own."""
    if found := _VERSIONS.search(text):
        return Reason("PYTHON_VERSION_MISMATCH", _bounded(f"PYTHON_VERSION_MISMATCH: {found['text']}"), final=True)
    if (found := _STORAGE.search(text)) and (package := _PACKAGES.get(found["module"])):
        return Reason(found["name"], _bounded(f"{found['name']}: {_needs(package)}"), final=True)
    lost = _EXECUTOR.search(text)
    if lost and lost["rest"]:
        code = _EXIT.search(lost["reason"] or "")
        who = f"executor {lost['executor']} on {lost['host']}"
        ended = f"{who} ended with exit code {code['code']}" if code else f"{who} was lost: {_one_line(lost['reason'])}"
        if code and int(code["code"]) == OUT_OF_MEMORY:
            return Reason("OutOfMemoryError", _bounded(f"OutOfMemoryError: {ended}, out of memory. {_MORE_FOR_EXECUTORS}"))
        return Reason("ExecutorLost", _bounded(f"ExecutorLost: {ended}."))
    if "java.lang.OutOfMemoryError" in text:
        what = re.search(r"java\.lang\.OutOfMemoryError(?:: (?P<text>[^\n]*))?", text)
        said = (what["text"] if what else None) or "out of memory"
        if lost and lost["executor"] != "driver":  # in a local Spark the driver is the executor
            return Reason(
                "OutOfMemoryError",
                _bounded(f"OutOfMemoryError: {said} (executor {lost['executor']} on {lost['host']}). {_MORE_FOR_EXECUTORS}"),
            )
        return Reason("OutOfMemoryError", _bounded(f"OutOfMemoryError: {said} (the driver). {MORE_MEMORY}"))
    return None


def _needs(package: str) -> str:
    """It has to be of the version that Spark has of Hadoop."""
    spec = find_spec("pyspark")
    jars = Path(spec.origin).parent.glob("jars/hadoop-client-api-*.jar") if spec and spec.origin else ()
    version = next((jar.stem.rpartition("-")[2] for jar in jars), "VERSION")
    return (
        f"this Spark does not know such object storage; it needs {package}. Add ?spark.jars.packages=org.apache.hadoop:{package}:"
        f"{version} to the connection; a Spark Connect server is started with --packages."
    )


def _where(text: str) -> str:
    found = _EXECUTOR.search(text)
    return f"executor {found['executor']} on {found['host']}" if found else ""


def _innermost(text: str) -> tuple[str, str] | None:
    """Returns the last of the chain of causes that is not a wrapper; for Spark's Python workers, what the author's function
    raised.
    """
    best: tuple[str, str] | None = None
    in_python = False
    for line in text.splitlines():
        stripped = line.strip()
        in_python = in_python or "Traceback (most recent call last)" in stripped
        if stripped.startswith(("at ", "... ", 'File "')):
            continue
        found = _JAVA.match(stripped) or (_PYTHON.match(stripped) if in_python else None)
        if found is None:
            continue
        name = found["name"].rpartition(".")[2]
        if name in _WRAPPERS and (best is not None or not (found["text"] or "").strip()):
            continue
        if name in _WRAPPERS or best is None or best[0] in _WRAPPERS or _is_cause(stripped, found.re is _PYTHON):
            best = (name, _one_line(found["text"] or ""))
    return best


def _is_cause(line: str, python: bool) -> bool:
    return python or line.startswith("Caused by: ")


def _statement(text: str) -> str:
    """What Spark says, up to its SQLSTATE: then come plans, queries and the frames of a JVM."""
    before = text.partition("JVM stacktrace:")[0].strip()
    found = _SQLSTATE.search(before)
    return before[: found.end()] if found else before


def _first_lines(text: str) -> str:
    """Without JVM frames."""
    lines = [
        line for line in _statement(text).splitlines() if not re.match(r"\s*(at |\.\.\. |JVM stacktrace|\x27Project|\+-)", line)
    ]
    return _one_line(" ".join(lines[:3]))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…"
