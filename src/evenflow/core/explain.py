"""Puts reasons into words: what the reason is, what causes it, and what to do. The API answers with these words. The command line
shows them with the times of its own zone.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from evenflow.core import why as x
from evenflow.core.executors import CELERY, NATIVE
from evenflow.core.model import DEFAULT_QUEUE, Unclaimed, instance_name
from evenflow.core.object_names import in_words, limit_name, title, way_to_activate, way_to_raise
from evenflow.core.quantities import counted, duration
from evenflow.core.scaling.fleet_options import serves
from evenflow.core.states import in_state
from evenflow.core.why import Fact, Told


@dataclass(frozen=True, slots=True)
class Explainer:
    """Puts reasons of one task instance into words, at the instant ``now``; ``written`` formats an instant."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    now: datetime
    written: Callable[[datetime], str]

    def tell(self, reason: x.WhyNot) -> Told:
        match reason:
            case x.FullLimit():
                return self._full_limit(reason)
            case x.KeptPool():
                return self._kept_pool(reason)
            case x.SharedSlots():
                return _shared(reason)
            case x.Ages():
                step = duration(reason.aging_s)
                return Told(
                    sentence=f"It has waited for {duration(reason.waited_s)}; each {step} count as one more priority of its run."
                )
            case x.AwaitsUpstreams():
                return _upstreams(reason)
            case x.UpstreamFailed():
                return self._upstream_failed(reason)
            case x.AwaitsWorker():
                return self._worker(reason)
            case x.Running():
                return self._running(reason)
            case x.Finished():
                return Told(sentence=f"It has ended{self._at(reason.at)}{_because(reason.explanation)}.")
            case x.RunEnded():
                sentence = f"Its run has ended{self._at(reason.at)} before the task began{_because(reason.explanation)}."
                return Told(sentence=sentence)
            case x.Paused():
                return Told(sentence=f"The DAG {reason.dag_id} is paused.", cure=_typed("dags", "unpause", reason.dag_id))
            case x.OutOfService():
                what, state = title(reason.what, reason.name), in_words(reason.state)
                sentence = f"{what} is {state}, {self._since(reason.since)}, by {reason.actor}."
                return Told(sentence=sentence, cure=way_to_activate(reason.what, reason.name))
            case x.Quarantined():
                failed = f"because handling it failed{_because(reason.explanation)}"
                cure = _typed("quarantine", "release", "run", f"{self.dag_id}/{self.run_id}")
                return Told(sentence=f"Its run is in quarantine {self._since(reason.since)}, {failed}.", cure=cure)
            case x.RunAfter():
                return Told(sentence=f"Its run may not begin before {self.written(reason.at)}, in {self._until(reason.at)}.")
            case x.AwaitsPast():
                return self._past(reason)
            case x.AwaitsRetry():
                failed = f"Try {reason.tries} failed{_because(reason.explanation)}"
                return Told(sentence=f"{failed}. The next one is due {self._due(reason.at)}.")
            case x.AwaitsPoke():
                waited = f", {self._since(reason.since)}" if reason.since else ""
                looks = f"It looks again {self._due(reason.at)}, and holds no slot until then"
                return Told(sentence=f"It waits for something outside{waited}. {looks}.")
            case x.AwaitsEvent():
                return self._event(reason)
            case x.AwaitsAnswer():
                return self._answer(reason)
            case x.NoScheduler():
                cure = "evenflow scheduler (or everything: evenflow up)"
                return Told(sentence="No scheduler is alive, so nothing starts.", cure=cure)
            case x.NextRound():
                return Told(sentence="Nothing holds it back: it starts as soon as a scheduler has looked.")
            case _:
                assert_never(reason)

    def _running(self, reason: x.Running) -> Told:
        facts = [_fact("its log", self._log_of(self.task_id, self.map_index, "--follow"))]
        sentence = f"It runs on {reason.worker} ({reason.host}) {self._since(reason.since)}."
        if reason.kill_at:
            sentence += f" It is being killed, {self._since(reason.kill_at)}, and has ended when nothing that it started is left."
        if reason.outrun:
            sentence += " Its worker cannot end it: what it has started forks more quickly than it is killed."
            return Told(sentence=sentence, facts=facts, cure=x.OUTRUN_CURE, aim="to end it")
        return Told(sentence=sentence, facts=facts)

    def _full_limit(self, reason: x.FullLimit) -> Told:
        unit = "slot" if reason.limit == "pool" else "run" if reason.limit == "dag_runs" else "task"
        free = reason.capacity - reason.used
        if free < 1:
            state = f"is full: {reason.used} of {counted(reason.capacity, unit)} {'is' if reason.used == 1 else 'are'} taken"
        else:
            state = f"has too little room: {free} of {counted(reason.capacity, unit)} {'is' if free == 1 else 'are'} free"
        wants = f", and it takes {reason.wanted}" if reason.wanted > 1 else ""
        place = _place(reason.ahead, reason.counted, "runs" if reason.limit == "dag_runs" else "tasks")
        if reason.holders and reason.unclaimed == reason.held_by:
            return Told(
                sentence=f"The {limit_name(reason.limit, reason.name)} {state}{wants}, and no worker has begun what takes it.",
                facts=[place, *self._holders(reason)],
                cure=self._why(reason.holders[0]),
                aim="to see what that waits for",
            )
        return Told(
            sentence=f"The {limit_name(reason.limit, reason.name)} {state}{wants}.",
            facts=[place, *self._holders(reason)],
            cure=way_to_raise(reason.limit, reason.name, reason.used + reason.wanted),
            aim="to make room",
        )

    def _kept_pool(self, reason: x.KeptPool) -> Told:
        free = f"{reason.capacity - reason.used} of {counted(reason.capacity, 'slot')} free"
        keeper = f"{reason.dag_id}/{reason.run_id} {reason.task_id}"
        policy = "lets nothing pass it" if reason.patience_s == 0 else f"has let others pass it for {duration(reason.patience_s)}"
        waited = f"which takes {reason.wanted} and has waited for {duration(reason.waited_s)}"
        return Told(
            sentence=f"The pool {reason.name} has {free}, but keeps them for {keeper}, {waited}: the pool {policy}.",
            facts=[_place(reason.ahead, reason.counted, "tasks"), *self._holders(reason)],
            cure=way_to_raise("pool", reason.name, reason.used + reason.wanted),
            aim="to make room",
        )

    def _upstream_failed(self, reason: x.UpstreamFailed) -> Told:
        names = [instance_name(up.task_id, up.map_index) for up in reason.upstreams]
        first = reason.upstreams[0]
        rule = "" if reason.trigger_rule == "all_success" else f" (its trigger rule is {reason.trigger_rule})"
        if reason.failed == first.failed == 1:
            said = f"because {names[0]} failed{_because(first.explanation)}"
        else:
            said = f"because {counted(reason.failed, 'task')} upstream failed, {names[0]} first{_because(first.explanation)}"
        more = [f"and {reason.failed - len(names):,} more"] if reason.failed > len(names) else []
        facts = [Fact(name="failed", lines=[*map(_failure, reason.upstreams), *more])] if len(names) + len(more) > 1 else []
        return Told(
            sentence=f"It was not run{self._at(reason.at)}{rule}, {said}.",
            facts=[*facts, _fact("its log", self._log_of(first.task_id, first.map_index))],
            cure=_typed("tasks", "clear", self.dag_id, first.task_id, "--run", self.run_id, "--downstream"),
            aim="to try that again",
        )

    def _past(self, reason: x.AwaitsPast) -> Told:
        failed = [task.task_id for task in reason.tasks if {"failed", "upstream_failed"} & task.states.keys()]
        return Told(
            sentence=f"It depends on the past: the run before, {reason.run_id}, has not ended well.",
            facts=[Fact(name="waits for", lines=[f"{t.task_id}: {_states(t.states) or 'not begun'}" for t in reason.tasks])],
            cure=_typed("tasks", "clear", self.dag_id, failed[0], "--run", reason.run_id) if failed else None,
            aim="to try that again",
        )

    def _worker(self, reason: x.AwaitsWorker) -> Told:
        facts = [_fact("queued", self._since(reason.since))]
        if reason.until is not None:
            facts.append(self._queued_timeout(reason, reason.until))
        if reason.executor is not None:
            return self._executor(reason, reason.executor, facts)
        facts.insert(0, _place(reason.ahead, reason.counted, "tasks"))
        cure = _typed("worker", "--queues", reason.queue)
        if not reason.workers and reason.closed_worker is not None:
            return self._no_open_worker(reason, reason.closed_worker, facts)
        if not reason.workers and reason.fleet is not None:
            return _fleet(reason, reason.fleet, facts)
        if reason.closed_worker is not None:
            facts.append(_out_of_service(reason))
        facts.append(_token_of_worker(reason.queue))
        if not reason.workers:
            facts.append(_fact("on one host", f"{served_by_up(reason.queue)} evenflow up, in the place of the one that runs"))
            return Told(sentence=f"No worker that serves the queue {reason.queue} is alive.", facts=facts, cure=cure)
        workers = "1 worker serves" if reason.workers == 1 else f"{reason.workers} workers serve"
        busy = f"{reason.busy} of {counted(reason.slots, 'slot')} {'is' if reason.busy == 1 else 'are'} busy"
        begin = "It is back from waiting, and waits for a worker" if reason.resumes else "It waits for a worker"
        end = ", those for resumes included" if reason.resumes else ""
        return Told(sentence=f"{begin}: {workers} the queue {reason.queue}, and {busy}{end}.", facts=facts, cure=cure)

    def _no_open_worker(self, reason: x.AwaitsWorker, worker: str, facts: list[Fact]) -> Told:
        """Returns that the only workers of its queue are out of service, of which ``worker`` is the first."""
        state = in_words(reason.closed_state) if reason.closed_state else "out of service"
        since = f", {self._since(reason.closed_since)}" if reason.closed_since else ""
        by = f", by {reason.closed_by}" if reason.closed_by else ""
        if reason.closed > 1:
            facts.append(_out_of_service(reason))
        if reason.fleet is not None:
            facts.append(_fact("its fleet", f"{reason.fleet}, which is to have another one"))
        sentence = f"No worker takes tasks of the queue {reason.queue}: {worker} is {state}{since}{by}."
        return Told(sentence=sentence, facts=facts, cure=way_to_activate("worker", worker))

    def _queued_timeout(self, reason: x.AwaitsWorker, until: datetime) -> Fact:
        others: dict[str, str] = {
            Unclaimed.FAIL: "it fails then",
            Unclaimed.ELSEWHERE: f"it goes to the queue {reason.other_queue} then",
        }
        then = others.get(reason.then or "", "it waits on, and that is told")
        if until > self.now:
            return _fact("queued_timeout", f"over at {self.written(until)}, in {self._until(until)}; {then}")
        return _fact("queued_timeout", f"was over at {self.written(until)}; {then}")

    def _executor(self, reason: x.AwaitsWorker, executor: str, facts: list[Fact]) -> Told:
        if not reason.launchers:
            sentence = f"No launcher serves {executor}, the executor of the queue {reason.queue}, so nothing is sent there."
            if reason.refusal is not None:
                return Told(sentence=sentence, facts=[*facts, _fact("a launcher says", reason.refusal)])
            if reason.executor_kind == CELERY:
                facts.append(_fact("for a launcher", "EVENFLOW_CELERY_BROKER, such as redis://localhost:6379/0"))
            return Told(sentence=sentence, facts=facts, cure=_typed("launcher"))
        if reason.refusal is not None:
            sentence = f"{executor}, the executor of the queue {reason.queue}, takes nothing now, so nothing is sent there."
            return Told(sentence=sentence, facts=[*facts, _fact("a launcher says", reason.refusal)])
        if not reason.workers and reason.closed_worker is not None:
            return self._no_open_worker(reason, reason.closed_worker, facts)
        sentence = f"It goes to {executor}, the executor of the queue {reason.queue}, and nobody there has claimed it yet."
        if reason.executor_kind == CELERY:
            facts.insert(0, _place_at_broker(reason))
            cure = shlex.join(["celery", "-A", "evenflow.celery_app", "worker", "-Q", reason.queue])
            return Told(sentence=sentence, facts=facts, cure=cure, aim="if none runs")
        if reason.pod is not None:
            facts.append(Fact(name="its pod", lines=[reason.pod.pod, reason.pod.says]))
            return Told(sentence=sentence, facts=facts, cure=reason.pod.look, aim="to see more of the pod")
        return Told(sentence=sentence, facts=facts, cure=_typed("executors", "show", executor))

    def _event(self, reason: x.AwaitsEvent) -> Told:
        sentence = (
            f"It is deferred, {self._since(reason.since)}, and waits for {reason.trigger}. It takes no worker's slot meanwhile."
        )
        facts = []
        if reason.triggerer:
            facts.append(_fact("its triggerer", f"{reason.triggerer} ({reason.host})"))
        if reason.until:
            facts.append(_fact("at most until", f"{self.written(reason.until)}, in {self._until(reason.until)}"))
        if reason.failures:
            again = f"; it is tried again in {self._until(reason.again_at)}" if reason.again_at else ""
            facts.append(_fact("its trigger failed", f"{counted(reason.failures, 'time')}{again}"))
        if reason.triggerer:
            return Told(sentence=sentence, facts=facts)
        cure = "evenflow triggerer (or everything: evenflow up)"
        return Told(sentence=f"{sentence} No triggerer has it yet.", facts=facts, cure=cure, aim="if none runs")

    def _answer(self, reason: x.AwaitsAnswer) -> Told:
        facts = [_fact("at most until", f"{self.written(reason.until)}, in {self._until(reason.until)}")] if reason.until else []
        sentence = f"It asks people, {self._since(reason.since)}, and waits for an answer. It takes no worker's slot meanwhile."
        return Told(sentence=sentence, facts=facts, cure=self._approve(), aim="to answer")

    def _holders(self, reason: x.FullLimit | x.KeptPool) -> Iterator[Fact]:
        """Yields the number of holders and the first of them, one or two lines each, so that no table has a narrow column
        for them.
        """
        if not reason.holders:
            return
        head = counted(reason.held_by, "run" if reason.holders[0].task_id is None else "task")
        if reason.unclaimed:
            head += f", {reason.unclaimed:,} of which {'waits' if reason.unclaimed == 1 else 'wait'} for a worker"
        more = [f"and {reason.held_by - len(reason.holders):,} more"] if reason.held_by > len(reason.holders) else []
        yield Fact(name="held by", lines=[head, *(line for holder in reason.holders for line in self._holder(holder)), *more])
        if reason.unclaimed:
            yield _fact("first", "room for these on workers: evenflow status")

    def _holder(self, holder: x.Holder) -> list[str]:
        """Returns the lines about one holder. For a holder in the same run, they name only its task."""
        slots = "" if holder.slots == 1 else f", {holder.slots} slots"
        since = f"for {duration((self.now - holder.since).total_seconds())}{slots}"
        if holder.task_id is None:
            return [f"{holder.dag_id}/{holder.run_id} {since}"]
        where = "deferred" if holder.deferred else f"on {holder.worker}" if holder.worker else "waits for a worker"
        task = instance_name(holder.task_id, holder.map_index)
        if (holder.dag_id, holder.run_id) == (self.dag_id, self.run_id):
            return [f"{task} {since}, {where}"]
        return [f"{holder.dag_id}/{holder.run_id} {task}", f"  {since}, {where}"]

    def _why(self, holder: x.Holder) -> str:
        index = ["--map-index", str(holder.map_index)] if holder.map_index >= 0 else []
        return _typed("why", f"{holder.dag_id}/{holder.run_id}", holder.task_id or "", *index)

    def _log_of(self, task_id: str, map_index: int, *more: str) -> str:
        index = ["--map-index", str(map_index)] if map_index >= 0 else []
        return _typed("tasks", "logs", self.dag_id, task_id, "--run", self.run_id, *more, *index)

    def _approve(self) -> str:
        index = ["--map-index", str(self.map_index)] if self.map_index >= 0 else []
        return _typed("approve", f"{self.dag_id}/{self.run_id}", self.task_id, *index)

    def _since(self, at: datetime) -> str:
        return f"since {self.written(at)} ({duration((self.now - at).total_seconds())})"

    def _until(self, at: datetime) -> str:
        return duration(max(0.0, (at - self.now).total_seconds()))

    def _due(self, at: datetime | None) -> str:
        return f"at {self.written(at)}, in {self._until(at)}" if at else "soon"

    def _at(self, at: datetime | None) -> str:
        return f" at {self.written(at)}" if at else ""


def _upstreams(reason: x.AwaitsUpstreams) -> Told:
    sentence = f"{reason.missing} {'task upstream has' if reason.missing == 1 else 'tasks upstream have'} not ended"
    if reason.trigger_rule != "all_success":
        sentence += f" (its trigger rule is {reason.trigger_rule})"
    if reason.expands:
        sentence += ". It is mapped: only then is it known how many instances it has"
    more = [f"and {reason.missing - len(reason.upstreams)} more"] if reason.missing > len(reason.upstreams) else []
    return Told(sentence=f"{sentence}.", facts=[Fact(name="waits for", lines=[*map(_progress, reason.upstreams), *more])])


def _progress(upstream: x.Upstream) -> str:
    if upstream.total == 1:
        return f"{upstream.task_id}: {in_state(*upstream.states)}"
    return f"{upstream.task_id}: {upstream.missing:,} of {upstream.total:,} missing: {_states(upstream.states)}"


def _failure(upstream: x.FailedUpstream) -> str:
    many = f", and {upstream.failed - 1:,} more of it" if upstream.failed > 1 else ""
    return f"{instance_name(upstream.task_id, upstream.map_index)}{many}{_because(upstream.explanation)}"


def _states(states: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {in_state(state)}" for state, count in states.items())


def _place(ahead: int, is_exact: bool, what: str) -> Fact:
    if not is_exact:
        return _fact("place in line", f"at least {ahead:,} {what} come before it")
    if not ahead:
        return _fact("place in line", "it is the first")
    before = f"1 {what.removesuffix('s')} comes before it" if ahead == 1 else f"{ahead:,} {what} come before it"
    return _fact("place in line", before)


def _place_at_broker(reason: x.AwaitsWorker) -> Fact:
    """Returns that the order here decides what is sent, and no longer what is delivered."""
    least = "" if reason.counted else "at least "
    verb = "ranks" if reason.ahead == 1 else "rank"
    rank = f"; {least}{counted(reason.ahead, 'task')} {verb} before it here" if reason.ahead else ""
    return _fact("place in line", f"that of the broker, which delivers first what was sent first{rank}")


def _fleet(reason: x.AwaitsWorker, fleet: str, facts: list[Fact]) -> Told:
    """Returns that the queue has a fleet, and no worker of it yet. Nothing is sent from this queue, so its tries are for native
    workers.
    """
    if reason.fleet_target is None or serves(reason.fleet_target, NATIVE):
        sentence = f"No worker serves the queue {reason.queue} yet; its fleet {fleet} is to have one."
        return Told(sentence=sentence, facts=facts, cure=_typed("autoscaler", "show", fleet))
    sentence = (
        f"No worker serves the queue {reason.queue}: its executor is {NATIVE}, and its fleet {fleet} is of {reason.fleet_target}."
    )
    cure = _typed("executors", "set", "NAME", "--kind", reason.fleet_target, "--queue", reason.queue, "--slots", "64")
    return Told(sentence=sentence, facts=facts, cure=cure, aim="to have that fleet run it")


def _out_of_service(reason: x.AwaitsWorker) -> Fact:
    more = f", and {reason.closed - 1:,} more" if reason.closed > 1 else ""
    return _fact("out of service", f"{reason.closed_worker}{more}")


def _fact(name: str, line: str) -> Fact:
    return Fact(name=name, lines=[line])


def _typed(*words: str) -> str:
    return shlex.join(["evenflow", *words])


def served_by_up(queue: str) -> str:
    """Returns the setting with which workers of ``evenflow up`` serve this queue, too."""
    return f"EVENFLOW_QUEUES={shlex.quote(','.join(dict.fromkeys((DEFAULT_QUEUE, queue))))}"


def _token_of_worker(queue: str) -> Fact:
    made = _typed("tokens", "create", "worker", "--queue", queue)
    return Fact(name="for a new one", lines=["EVENFLOW_API_URL", f"EVENFLOW_TOKEN, made by: {made}"])


def _because(explanation: str | None) -> str:
    return f": {explanation.rstrip('.')}" if explanation else ""


def _shared(reason: x.SharedSlots) -> Told:
    tenant = f"the {reason.share_by} {reason.tenant}" if reason.tenant else f"all that have no {reason.share_by} with a weight"
    has = f"{tenant} has {counted(reason.held, 'slot')} and weight {reason.weight}"
    return Told(sentence=f"The {reason.limit} {reason.name} is shared: next is who has the fewest slots for its weight, and {has}.")
