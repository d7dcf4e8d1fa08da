"""Answers what the flow asks (:mod:`evenflow.core.flow`), each question by one statement for all the runs that it is about.

The statements of a set are sent before the first answer is waited for: in a pipeline they cost one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from evenflow.core.asking import AskedTogether, Asking, Question, drive
from evenflow.core.flow import questions
from evenflow.core.flow.questions import Touched
from evenflow.core.flow.state import InstanceKey
from evenflow.core.model import UNMAPPED
from evenflow.core.trigger_rules import UpstreamCounts
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.db.rows import Conn, Rows
from evenflow.store.scheduling import operations, past, tasks

A = TypeVar("A")


def decide(facts: Facts, moves: Moves, rule: Asking[A]) -> A:
    """Drives a rule of the flow to its end and returns its result. Instances that are found join ``moves``."""

    def answer(asked: AskedTogether) -> None:
        sent = [(question, *_send(facts.conn, moves, question)) for question in asked]
        for question, rows, read in sent:
            question.answer = read(rows.all())

    return drive(rule, answer)


def _send(conn: Conn, moves: Moves, question: Question[Any]) -> tuple[Rows[Any], Callable[[list[Any]], Any]]:
    """What is under way, and what makes an answer of it."""
    match question:
        case questions.FindInstances():
            return tasks.read_instances(conn, question.keys), partial(_know, moves)
        case questions.FindCleared():
            return operations.read_cleared(conn, question.tasks), partial(_know, moves)
        case questions.FindMapped():
            return tasks.read_mapped(conn, question.tasks), list
        case questions.FindTouched():
            return tasks.read_touched(conn, question.tasks), partial(_know_touched, moves)
        case questions.MeasureResults():
            return tasks.result_lengths(conn, question.results), list
        case questions.CountUpstreams():
            counters = (tasks.Counter(*key, UNMAPPED, *delta) for key, delta in question.deltas.items())
            return tasks.count_upstreams(conn, counters), lambda rows: [(row[:2], UpstreamCounts(*row[3:])) for row in rows]
        case questions.CountIndexed():
            deltas = ((tasks.Counter(*key, *delta), within) for key, within, delta in question.deltas)
            return tasks.count_indexed(conn, deltas), lambda rows: [(row[:3], UpstreamCounts(*row[3:])) for row in rows]
        case questions.FindHeld():
            return past.hold_instances(conn, question.keys), set
        case _:
            raise TypeError(f"The scheduler has no statement for {question}.")


def _know(moves: Moves, rows: Iterable[tasks.Instance]) -> list[InstanceKey]:
    return [moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number).key for row in rows]


def _know_touched(moves: Moves, rows: list[Touched]) -> list[Touched]:
    for row in rows:
        if row.state is not None:
            moves.item(*row.key, row.state, row.epoch, row.try_number)
    return rows
