"""Reasons for people: what it is, who is in the way, what to do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from rich.table import Table
from rich.text import Text

from evenflow.cli.output.terminal import STATE_STYLES, STATE_WORDS, duration, local_time, output, say, state_text
from evenflow.contracts.rest import why as x
from evenflow.contracts.rest.why import OUTRUN_CURE
from evenflow.core.model import instance_name
from evenflow.core.object_names import in_words, limit_name, title, way_to_activate, way_to_raise
from evenflow.core.plurals import counted

Fact = tuple[str, str | Text | Table]


class Told(NamedTuple):
    """A reason: one sentence, facts behind it, and what to type or write to change it."""

    sentence: str
    facts: Sequence[Fact] = ()
    cure: str | None = None
    aim: str = "to change it"


def print_why(why: x.Why) -> None:
    output.print(
        Text.assemble(
            (instance_name(why.task_id, why.map_index), "bold"), f" of {why.dag_id}/{why.run_id} is ", state_text(why.state)
        ),
        soft_wrap=True,
    )
    many = len(why.reasons) > 1
    if many:
        say(f"{len(why.reasons)} things hold it back; it starts when none of them does any more.")
    for number, reason in enumerate(why.reasons, 1):
        told = _tell(reason, why)
        say("")
        output.print(Text.assemble((f"{number}. " if many else "", "bold"), told.sentence), soft_wrap=True)
        facts = [*told.facts, *([(told.aim, Text(told.cure, style="cyan"))] if told.cure else [])]
        if facts:
            grid = Table.grid(padding=(0, 2))
            grid.add_column(style="bright_black", no_wrap=True)
            grid.add_column(overflow="fold")
            for name, fact in facts:
                grid.add_row(f"   {name}", fact)
            output.print(grid)


def _tell(reason: x.Reason, why: x.Why) -> Told:
    match reason:
        case x.FullLimit():
            return _full_limit(reason, why)
        case x.KeptPool():
            return _kept_pool(reason, why)
        case x.AwaitsUpstreams():
            return _upstreams(reason)
        case x.AwaitsWorker():
            return _worker(reason)
        case x.Running():
            logs = ["evenflow", "tasks", "logs", why.dag_id, why.task_id, "--run", why.run_id, "--follow"]
            if why.map_index >= 0:
                logs += ["--map-index", str(why.map_index)]
            facts = [("its log", shlex.join(logs))]
            sentence = f"It runs on {reason.worker} ({reason.host}) {_since(reason.since)}."
            if reason.kill_at:
                sentence += f" It is being killed, {_since(reason.kill_at)}, and has ended when nothing that it started is left."
            if reason.outrun:
                sentence += " Its worker cannot end it: what it has started forks more quickly than it is killed."
                return Told(sentence, facts, cure=OUTRUN_CURE, aim="to end it")
            return Told(sentence, facts)
        case x.Finished():
            return Told(f"It has ended{_at(reason.at)}{_because(reason.explanation)}.")
        case x.RunEnded():
            return Told(f"Its run has ended{_at(reason.at)} before the task began{_because(reason.explanation)}.")
        case x.Paused():
            return Told(f"The DAG {reason.dag_id} is paused.", cure=shlex.join(["evenflow", "dags", "unpause", reason.dag_id]))
        case x.OutOfService():
            what, state = title(reason.what, reason.name), in_words(reason.state)
            sentence = f"{what} is {state}, {_since(reason.since)}, by {reason.actor}."
            return Told(sentence, cure=way_to_activate(reason.what, reason.name))
        case x.Quarantined():
            sentence = f"Its run is in quarantine {_since(reason.since)}, because handling it failed{_because(reason.explanation)}."
            return Told(sentence, cure=shlex.join(["evenflow", "quarantine", "release", "run", f"{why.dag_id}/{why.run_id}"]))
        case x.RunAfter():
            return Told(f"Its run may not begin before {local_time(reason.at)}, in {_until(reason.at)}.")
        case x.AwaitsPast():
            return _past(reason, why)
        case x.AwaitsRetry():
            due = f"at {local_time(reason.at)}, in {_until(reason.at)}" if reason.at else "soon"
            return Told(f"Try {reason.tries} failed{_because(reason.explanation)}. The next one is due {due}.")
        case x.AwaitsPoke():
            due = f"at {local_time(reason.at)}, in {_until(reason.at)}" if reason.at else "soon"
            waited = f", {_since(reason.since)}" if reason.since else ""
            return Told(f"It waits for something outside{waited}. It looks again {due}, and holds no slot until then.")
        case x.AwaitsEvent():
            return _event(reason)
        case x.NoScheduler():
            return Told("No scheduler is alive, so nothing starts.", cure="evenflow scheduler (or everything: evenflow up)")
        case x.NextRound():
            return Told("Nothing holds it back: it starts as soon as a scheduler has looked.")
        case dict():
            return Told(f"A reason that this command line does not know: {reason.get('kind')}.", cure="upgrade Evenflow here")
        case _:
            assert_never(reason)


def _full_limit(reason: x.FullLimit, why: x.Why) -> Told:
    unit = "slot" if reason.limit == "pool" else "run" if reason.limit == "dag_runs" else "task"
    free = reason.capacity - reason.used
    if free < 1:
        state = f"is full: {reason.used} of {counted(reason.capacity, unit)} {'is' if reason.used == 1 else 'are'} taken"
    else:
        state = f"has too little room: {free} of {counted(reason.capacity, unit)} {'is' if free == 1 else 'are'} free"
    wants = f", and it takes {reason.wanted}" if reason.wanted > 1 else ""
    facts: list[Fact] = [("place in line", _place(reason.ahead, reason.counted, "runs" if reason.limit == "dag_runs" else "tasks"))]
    facts += _holders(reason, why)
    name = limit_name(reason.limit, reason.name)
    return Told(
        f"The {name} {state}{wants}.", facts, way_to_raise(reason.limit, reason.name, reason.used + reason.wanted), "to make room"
    )


def _kept_pool(reason: x.KeptPool, why: x.Why) -> Told:
    free = reason.capacity - reason.used
    keeper = f"{reason.dag_id}/{reason.run_id} {reason.task_id}"
    policy = "lets nothing pass it" if reason.patience_s == 0 else f"has let others pass it for {duration(reason.patience_s)}"
    sentence = (
        f"The pool {reason.name} has {free} of {counted(reason.capacity, 'slot')} free, but keeps them for {keeper}, which takes "
        f"{reason.wanted} and has waited for {duration(reason.waited_s)}: the pool {policy}."
    )
    facts: list[Fact] = [
        ("place in line", _place(reason.ahead, reason.counted, "tasks")),
        *_holders(reason, why),
    ]
    return Told(sentence, facts, way_to_raise("pool", reason.name, reason.used + reason.wanted), "to make room")


def _upstreams(reason: x.AwaitsUpstreams) -> Told:
    what = "task upstream has" if reason.missing == 1 else "tasks upstream have"
    sentence = f"{reason.missing} {what} not ended"
    if reason.trigger_rule != "all_success":
        sentence += f" (its trigger rule is {reason.trigger_rule})"
    if reason.expands:
        sentence += ". It is mapped: only then is it known how many instances it has"
    grid = Table.grid(padding=(0, 2))
    for upstream in reason.upstreams:
        grid.add_row(upstream.task_id, _standing(upstream))
    if reason.missing > len(reason.upstreams):
        grid.add_row(f"and {reason.missing - len(reason.upstreams)} more", "")
    return Told(f"{sentence}.", [("waits for", grid)])


def _past(reason: x.AwaitsPast, why: x.Why) -> Told:
    grid = Table.grid(padding=(0, 2))
    for task in reason.tasks:
        states = (f"{count:,} {STATE_WORDS.get(state, state)}" for state, count in task.states.items())
        grid.add_row(task.task_id, ", ".join(states) or "not begun")
    failed = [task.task_id for task in reason.tasks if {"failed", "upstream_failed"} & task.states.keys()]
    cure = shlex.join(["evenflow", "tasks", "clear", why.dag_id, failed[0], "--run", reason.run_id]) if failed else None
    sentence = f"It depends on the past: the run before, {reason.run_id}, has not ended well."
    return Told(sentence, [("waits for", grid)], cure, "to try that again")


def _standing(upstream: x.Upstream) -> Text:
    if upstream.total == 1:
        (state,) = upstream.states
        return state_text(state)
    text = Text(f"{upstream.missing:,} of {upstream.total:,} missing: ")
    for number, (state, count) in enumerate(upstream.states.items()):
        text.append(", " if number else "")
        text.append(f"{count:,} {STATE_WORDS.get(state, state)}", style=STATE_STYLES.get(state, ""))
    return text


def _worker(reason: x.AwaitsWorker) -> Told:
    line: Fact = ("place in line", _place(reason.ahead, reason.counted, "tasks"))
    since: Fact = ("queued", _since(reason.since))
    if not reason.workers:
        start = shlex.join(["evenflow", "worker", "--queues", reason.queue])
        return Told(f"No worker that serves the queue {reason.queue} is alive.", [line, since], start)
    workers = "1 worker serves" if reason.workers == 1 else f"{reason.workers} workers serve"
    busy = f"{reason.busy} of {counted(reason.slots, 'slot')} {'is' if reason.busy == 1 else 'are'} busy"
    begin = "It is back from waiting, and waits for a worker" if reason.returns else "It waits for a worker"
    sentence = f"{begin}: {workers} the queue {reason.queue}, and {busy}{', those for returns included' if reason.returns else ''}."
    return Told(sentence, [line, since], shlex.join(["evenflow", "worker", "--queues", reason.queue]))


def _event(reason: x.AwaitsEvent) -> Told:
    sentence = f"It is deferred, {_since(reason.since)}, and waits for {reason.trigger}. It takes no worker's slot meanwhile."
    facts: list[Fact] = []
    if reason.until:
        facts.append(("at most until", f"{local_time(reason.until)}, in {_until(reason.until)}"))
    if reason.failures:
        again = f"; it is tried again in {_until(reason.again_at)}" if reason.again_at else ""
        facts.append(("its trigger failed", f"{counted(reason.failures, 'time')}{again}"))
    if reason.triggerer:
        return Told(sentence, [("its triggerer", f"{reason.triggerer} ({reason.host})"), *facts])
    return Told(f"{sentence} No triggerer has it yet.", facts, "evenflow triggerer (or everything: evenflow up)", "if none runs")


def _holders(reason: x.FullLimit | x.KeptPool, why: x.Why) -> list[Fact]:
    """How many, and the first of them, a line or two each: no column of a table is narrow then."""
    if not reason.holders:
        return []
    what = "run" if reason.holders[0].task_id is None else "task"
    text = Text(counted(reason.held_by, what))
    if reason.unclaimed:
        text.append(f", {reason.unclaimed:,} of which {'waits' if reason.unclaimed == 1 else 'wait'} for a worker", style="yellow")
    for holder in reason.holders:
        text.append("\n" + _holder(holder, why))
    if reason.held_by > len(reason.holders):
        text.append(f"\nand {reason.held_by - len(reason.holders):,} more")
    facts: list[Fact] = [("held by", text)]
    if reason.unclaimed:
        facts.append(("first", "room for these on workers: evenflow status"))
    return facts


def _holder(holder: x.Holder, why: x.Why) -> str:
    """Of this run only its task is named."""
    slots = "" if holder.slots == 1 else f", {holder.slots} slots"
    since = f"for {duration((datetime.now(UTC) - holder.since).total_seconds())}{slots}"
    if holder.task_id is None:
        return f"{holder.dag_id}/{holder.run_id} {since}"
    where = "deferred" if holder.deferred else f"on {holder.worker}" if holder.worker else "waits for a worker"
    task = instance_name(holder.task_id, holder.map_index)
    if (holder.dag_id, holder.run_id) == (why.dag_id, why.run_id):
        return f"{task} {since}, {where}"
    return f"{holder.dag_id}/{holder.run_id} {task}\n  {since}, {where}"


def _place(ahead: int, counted: bool, what: str) -> str:
    if not counted:
        return f"at least {ahead:,} {what} come before it"
    if not ahead:
        return "it is the first"
    return f"1 {what.removesuffix('s')} comes before it" if ahead == 1 else f"{ahead:,} {what} come before it"


def _since(at: datetime) -> str:
    return f"since {local_time(at)} ({duration((datetime.now(UTC) - at).total_seconds())})"


def _until(at: datetime) -> str:
    return duration(max(0.0, (at - datetime.now(UTC)).total_seconds()))


def _at(at: datetime | None) -> str:
    return f" at {local_time(at)}" if at else ""


def _because(explanation: str | None) -> str:
    return f": {explanation.rstrip('.')}" if explanation else ""
