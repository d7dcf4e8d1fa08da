"""What an open page hears while runs continue."""

from __future__ import annotations

from pydantic import Field

from evenflow.contracts.rest.record import Record
from evenflow.contracts.rest.runs import RunName, StateOfInstance


class MovedTask(StateOfInstance):
    try_number: int


class MovedRun(RunName):
    tasks: list[MovedTask] = Field(description="The newest move of each instance; empty where the stream is not about this DAG.")


class LogText(Record):
    """A part of a log."""

    text: str
    offset: int = Field(description="Where the next part begins, in bytes.")
    size: int = Field(description="Bytes of the log by now.")
    complete: bool = Field(description="Whether nothing follows.")


class LiveNews(Record):
    runs: list[MovedRun] = Field(description="Where something moved, the newest run first.")
    more: bool = Field(description="Whether more moved than is told: read again what you show.")
    quiet_s: float = Field(description="The least seconds between two answers to one question: the more pages listen, the more.")
