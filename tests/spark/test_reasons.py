"""The reason comes first: what pyspark and drivers of Spark 4.3 have said, recorded, and what a person is told of it (R-SP6)."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.spark.reasons import explained, reason_of, reason_of_output

JOB = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) "
)
LOST = (
    f"An error occurred while calling o218.collectToPython.\n: org.apache.spark.SparkException: {JOB}(10.0.0.7 executor 3): "
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with code 52\n"
    "Driver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)\n"
)
HEAP = (
    f"An error occurred while calling o42.collectToPython.\n: org.apache.spark.SparkException: {JOB}(10.0.0.7 executor 3): "
    "java.lang.OutOfMemoryError: Java heap space\n\tat java.base/x.Y(Z.java:1)\n"
)
DRIVER_HEAP = "An error occurred while calling o42.toPandas.\n: java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(D.java:1)\n"
UDF = (
    f"{JOB}(10.0.0.7 executor 0): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "/app/jobs.py", line 7, in parse\n    return int(row)\n'
    "ValueError: bad row 77\n\n\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)\n"
)
VERSIONS = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    'Traceback (most recent call last):\n  File "/spark/worker.py", line 1, in check\n'
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 "
    "than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
)
CAUSES = (
    "An error occurred while calling o9.load.\n"
    ": org.apache.spark.SparkException: Job aborted.\n\tat x.Y.z(Y.java:1)\n"
    "Caused by: java.util.concurrent.ExecutionException: x\n\tat x.Y.z(Y.java:1)\n"
    "Caused by: java.net.UnknownHostException: db.internal\n\t... 12 more\n"
)
STORAGE = (
    "An error occurred while calling o42.parquet.\n: java.lang.RuntimeException: java.lang.ClassNotFoundException: "
    "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found\n\tat org.apache.hadoop.conf.Configuration.getClass(C.java:1)\n"
)


def told(kind: str, text: str, *bases: str) -> dict[str, Any]:
    return {"class": kind, "text": text, "bases": list(bases)}


@pytest.mark.parametrize(
    ("error", "begins", "final"),
    [
        (told("Py4JJavaError", LOST), "OutOfMemoryError: executor 3 on 10.0.0.7 ended with exit code 52, out of memory. ", False),
        (told("Py4JJavaError", HEAP), "OutOfMemoryError: Java heap space (executor 3 on 10.0.0.7). Give executors more", False),
        (
            told("Py4JJavaError", DRIVER_HEAP),
            "OutOfMemoryError: Java heap space (the driver). Give the driver more, by ?driver_memory=4g",
            False,
        ),
        (
            told("Py4JJavaError", HEAP.replace("executor 3)", "executor driver)")),
            "OutOfMemoryError: Java heap space (the dr",
            False,
        ),
        (told("SparkException", UDF), "ValueError: bad row 77 (executor 0 on 10.0.0.7)", False),
        (told("PythonException", VERSIONS), "PYTHON_VERSION_MISMATCH: Python in worker has different version: 3.9", True),
        (told("Py4JJavaError", CAUSES), "UnknownHostException: db.internal", False),
        (
            told("AnalysisException", "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found."),
            "AnalysisException: [TABLE_OR",
            True,
        ),
        (told("ParseException", "[PARSE_SYNTAX_ERROR] at 'x'", "AnalysisException"), "ParseException: [PARSE", True),
        (
            told("ArithmeticException", "[DIVIDE_BY_ZERO] by zero\n\tat x.y(Z.java:1)"),
            "ArithmeticException: [DIVIDE_BY_ZERO]",
            False,
        ),
        (
            told("Py4JJavaError", STORAGE),
            "S3AFileSystem: this Spark does not know such object storage; it needs hadoop-aws. Add ",
            True,
        ),
        (told("ValueError", "bad"), "ValueError: bad", False),
    ],
)
def test_the_cause_comes_first(error: dict[str, Any], begins: str, final: bool) -> None:
    found = reason_of(error)
    assert found.text.startswith(begins), found.text
    assert found.final is final
    assert "\tat " not in found.text
    assert len(found.text) <= 600


CONNECT = (
    '[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== DataFrame ==\n"divide" was called from\n<stdin>:1\n\n'
    "JVM stacktrace:\norg.apache.spark.SparkArithmeticException\n\tat org.apache.spark.sql.x(Y.scala:1)\n"
)


def test_what_a_server_says_ends_where_its_stack_trace_and_its_plans_begin() -> None:
    """R-SP6: of an exception that is told anew, and of one that passes with its class."""
    from pyspark.errors.exceptions.connect import ArithmeticException

    assert reason_of(told("AnalysisException", CONNECT)).text == (
        "AnalysisException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    )
    message, _, trace = CONNECT.partition("\n\nJVM stacktrace:\n")
    with pytest.raises(ArithmeticException) as caught, explained():
        raise ArithmeticException(message=message, server_stacktrace=trace, display_server_stacktrace=True)
    assert str(caught.value) == "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"


@pytest.mark.parametrize(
    ("tail", "text"),
    [
        (
            'Exception in thread "main" java.lang.IllegalStateException: no input\n\tat Main.main(Main.java:3)\n',
            "IllegalStateException",
        ),
        ("Traceback (most recent call last):\n  File 'x'\nKeyError: 'a'\n", "KeyError: 'a'"),
        ("26/11/24 ERROR Main: java.lang.OutOfMemoryError: Java heap space\n", "OutOfMemoryError: Java heap space (the driver)."),
        ('Exception in thread "main" org.apache.spark.sql.AnalysisException: [X] y\n', "AnalysisException: [X] y"),
    ],
)
def test_the_last_words_of_a_driver(tail: str, text: str) -> None:
    found = reason_of_output(tail)
    assert found is not None
    assert found.text.startswith(text), found.text


def test_words_that_say_nothing_are_no_reason() -> None:
    assert reason_of_output("counting\ndone\n") is None
