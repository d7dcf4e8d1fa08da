"""What a driver that is over means for its task: a success needs evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.errors import SparkEndUnknown, SparkFailed
from evenflow.spark.reasons import Reason, reason_of, reason_of_output
from evenflow.spark.runs import Life

_GOOD = frozenset({"SUCCEEDED", "Succeeded"})


def outcome_of(event: Mapping[str, Any], *, remote: bool, accept_unknown: bool) -> dict[str, Any]:
    """The result of the task. Raises :class:`SparkFailed` with the reason first, and :class:`SparkEndUnknown` without evidence."""
    result = event["result"]
    match Life(event["life"]):
        case Life.CLOSED:
            raise SparkFailed(f"Nothing ran: {event['why'] or 'the try was closed before a driver came'}.")
        case Life.LOST:
            why = f"its driver ({event['where']}) died without a word"
        case _ if remote and "final" not in result["notes"] and result["stopped"] is None:
            why = "spark-submit ended without saying how the application did"
        case _ if result["silent"] and result["exit_code"] == 0 and result["stopped"] is None:
            why = "its Python ended in the middle of it, as after os._exit, or System.exit in the JVM that it runs under"
        case _:
            return _judged(result, remote)
    if accept_unknown:
        return {"application_id": result.get("application_id"), "exit_code": None, "peak_memory_bytes": None}
    raise SparkEndUnknown(
        f"The Spark application is over, and nothing proves that it succeeded: {why}. Look at what it has written; with "
        "accept_unknown=True that counts as a success."
    )


def may_still_run(event: Mapping[str, Any], *, remote: bool) -> bool:
    """Whether what a driver has had made elsewhere may live on although the driver is over."""
    result = event["result"]
    if not remote or event["life"] == Life.CLOSED:
        return False
    return event["life"] == Life.LOST or not result["notes"].keys() & {"final", "cancelled"}


def _judged(result: Mapping[str, Any], remote: bool) -> dict[str, Any]:
    code, error = result["exit_code"], result["error"]
    if result["stopped"] is not None:
        raise SparkFailed(f"The Spark application was ended: {result['stopped']}.")
    good = result["notes"]["final"] in _GOOD if remote else code == 0
    if good and error is None:
        return {name: result[name] for name in ("application_id", "exit_code", "peak_memory_bytes")}
    reason = reason_of(error) if error is not None else reason_of_output(result["tail"])
    raise _failure(code, reason)


def _failure(code: int, reason: Reason | None) -> SparkFailed:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if code == 128 + 9:
        how = "was killed by signal 9"
    if reason is None:
        return SparkFailed(f"The Spark application {how}; its output is in the log.")
    return reason.as_error(f" The application {how}.")
