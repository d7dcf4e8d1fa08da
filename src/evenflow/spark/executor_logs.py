"""What executors on other hosts printed, in the log of the try that failed: the ends of their files, as the workers of a standalone
master show them.

The driver knows where, for as long as it lives; so they are fetched before the session ends.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenflow.spark.limits import EXECUTORS_SHOWN, MOST_EXECUTOR_OUTPUT, WORKER_ANSWERS
from evenflow.spark.output import redacted, without_noise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def executors_told(spark: SparkSession) -> Iterator[None]:
    """Prints them when the code inside fails. Logs that cannot be read are named, and do not change the failure."""
    try:
        yield
    except Exception:
        try:
            executors = _executors(spark)
        except Exception as error:  # the JVM is gone, and with it the addresses
            print(f"(what executors printed is not known: {type(error).__name__})")
        else:
            for executor in chosen(executors):
                for name, url in sorted(executor["executorLogs"].items()):
                    _show(executor["id"], name, url)
        sys.stdout.flush()
        raise


def chosen(executors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Chooses those that are worth most: first dead ones, then those with failed tasks; the others are left out."""
    telling = [each for each in executors if each.get("executorLogs") and (not each["isActive"] or each["failedTasks"])]
    return sorted(telling, key=lambda each: (each["isActive"], -each["failedTasks"]))[:EXECUTORS_SHOWN]


def _executors(spark: SparkSession) -> list[dict[str, Any]]:
    """As Spark's own REST API tells of them."""
    context = spark.sparkContext
    gateway = context._gateway
    assert gateway is not None
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    told: list[dict[str, Any]] = json.loads(mapper.writeValueAsString(context._jsc.sc().statusStore().executorList(False)))
    return told


def _show(executor: str, name: str, url: str) -> None:
    where = f"{name} of executor {executor}"
    try:
        text, size = end_of(url)
    except (OSError, ValueError) as error:
        print(f"({where} could not be read at {url}: {error})")
        return
    shown, left_out = without_noise(text)
    if not shown.strip():
        return
    before = f", the last {MOST_EXECUTOR_OUTPUT:,} of {size:,} bytes" if size > MOST_EXECUTOR_OUTPUT else ""
    without = f", without {left_out} lines in which Spark speaks of itself" if left_out else ""
    print(f"--- {where}{before}{without}\n{redacted(shown)}")


def end_of(url: str) -> tuple[str, int]:
    """The last bytes of a file of a worker, and how many it has; ``url`` is that of the page for people. Raises :class:`OSError`,
    and :class:`ValueError` if that is not such a page.
    """
    asked = f"{url.replace('/logPage/', '/log/').replace('/logPage?', '/log?')}&byteLength={MOST_EXECUTOR_OUTPUT}"
    with urllib.request.urlopen(asked, timeout=WORKER_ANSWERS) as answer:
        told = answer.read(2 * MOST_EXECUTOR_OUTPUT).decode(errors="replace")
    head, _, text = told.partition("\n")  # ==== Bytes 0-17 of 17 of /tmp/app-1/0/stdout ====
    words = head.split()
    if words[:2] != ["====", "Bytes"]:
        raise ValueError(f"{head:.80} is no log of a worker")
    return text, int(words[4])
