"""The protocol as steps: what workers, the network, the API, schedulers and time can do next in a state, in whatever order.

A message is lost by never being heard, late by being heard after other steps, and a claim or report doubled by being heard again. A
scheduler has no memory but what it has read and not yet written (``looked``), so any number of schedulers is as good as one. A
worker or the API dies between any two steps; what it does in one step is one transaction or one turn of its loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.protocol import control
from tests.protocol.state import CURRENT, LAST, NOBODY, Beat, Exit, Heard, Said, Service, Task, Try, Worker, World
from tests.protocol.symmetry import with_few_epochs, without_idle_services

Steps = Iterator[tuple[str, World]]


@dataclass(frozen=True, slots=True)
class Rules:
    """How it is done; each of them broken must show. Times are ticks."""

    lease: int = 2
    margin: int = 1  # a worker stops so long before its lease ends
    freezes: bool = True  # what stops may go on when the worker is heard again; else it is killed and the worker registers anew
    stops: bool = True  # a worker stops by its own clock
    renews_when_sent: bool = True  # its clock counts from the sending of a beat that was answered, not from the answer
    asks_before_going_on: bool = True  # what was stopped goes on when an answer has said that it may, not before
    kills_when_given_up: bool = True  # who registers anew has killed what it had
    holds: bool = True  # a worker that says that it cannot end a try is not given up, and says no farewell
    patient: bool = True  # tries of a worker that was given up are reported a lease after it was heard last, not before
    lost_is_final: bool = True  # a service that was given up cannot beat itself back
    farewell_last: bool = True  # a worker that ends says so when its processes are gone
    fenced: bool = True  # reports of past epochs have no effect
    fresh_epochs: bool = True  # what is sent again has a new epoch
    releases_once: bool = True  # only an exit of the current epoch gives back what a try holds
    keyed: bool = True  # a claim that is asked again is answered again
    resends: bool = True  # a beat's answer brings what the worker has not heard of
    keeps_exits: bool = True  # an exit is sent until it is acknowledged
    remembers: bool = True  # a worker begins no epoch twice
    begins_anew: bool = True  # when a standby takes over all services are lost, and so is what none had claimed
    epochs_go_on: bool = True  # behind all that were given out, also those that the standby does not know of
    quiet: bool = True  # then nothing is given to workers for a lease
    answers_when_stored: bool = True  # who reports is answered when the commit is made, and not when it has failed
    answers_its_own: bool = True  # and those alone whose reports are part of it, not who came meanwhile
    gives_once: bool = True  # whose waiting claim a turn has answered waits no more
    ends_claims: bool = True  # nor does who is told that there was nothing


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is explored: so many of each, and which faults."""

    workers: int = 2
    tasks: int = 1
    slots: int = 1
    losses: int = 1  # that a task may suffer before it counts as its failure
    faults: int = 1  # crashes and farewells of workers, in all
    retries: int = 0
    outcomes: tuple[str, ...] = ("success",)
    starts: bool = False  # starts are reported
    doubled: bool = False  # claims and reports may be heard again, late
    stalls: bool = False  # hosts may stop whole for as long as they like
    steady: bool = False  # every worker is heard in every tick; only the answers to claims are lost
    slow_api: bool = False  # other steps may come between the two statements of a beat
    hangs: bool = False  # workers that beat may be given up: another fault
    outruns: bool = False  # tries may fork more quickly than they are stopped or killed, until they end by themselves
    takeovers: int = 0  # of a standby that lacks the last commits
    assigns: bool = False  # claims that find nothing wait, and turns give what they send to those who wait
    batched: bool = False  # exits of all workers that come during a commit are the next one
    slow_look: bool = False  # and between a scheduler's look for lost tries and what it writes


class Protocol:
    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        self.rules, self.bounds = rules, bounds
        self._known: dict[World, World] = {}  # canonical states by raw ones: most are met several times

    def initial(self) -> World:
        b = self.bounds
        return World((Task(),) * b.tasks, (Worker(),) * b.workers, faults=b.faults, takeovers=b.takeovers)

    def steps(self, world: World) -> Steps:
        for name, after in self._raw(world):
            if (known := self._known.get(after)) is None:
                known = self._known[after] = self._canonical(after)
            yield name, known

    def _raw(self, world: World) -> Steps:
        yield from self._schedule(world)
        yield from self._take_over(world)
        for n, worker in enumerate(world.workers):
            yield from self._work(world, n, worker)
            yield from self._talk(world, n, worker)
        yield from self._store(world)
        if self.bounds.doubled:
            yield from self._repeat(world)
        yield from self._pass_time(world)

    # -- schedulers

    def _schedule(self, world: World) -> Steps:
        r = self.rules
        for i, task in enumerate(world.tasks):
            if task.state in control.STARTABLE and world.used < self.bounds.tasks:
                granted = _task(world, i, control.grant(task, self._fresh(world)))._replace(used=world.used + 1)
                yield from self._send(f"grant {i}", task, i, granted)
            if task.inbox:
                yield from self._send(f"turn {i}", task, i, self._turn(world, i, task.inbox))
                if len(task.inbox) > 1:
                    for said in set(task.inbox):
                        name = f"turn {i} takes {said.what} of {said.epoch}"
                        yield from self._send(name, task, i, self._turn(world, i, (said,)))
        for s, row in enumerate(world.services):
            if row.state == "active" and row.age >= (r.lease if r.patient else r.lease - r.margin):
                yield f"expire {s}", _service(world, s, Service("lost", row.age))
            elif row.state == "active" and self.bounds.hangs and world.faults and not self._held(world, s):
                yield f"give up {s}", _service(world, s, Service("lost", row.age))._replace(faults=world.faults - 1)
        found = tuple(control.find_lost(world.services, world.tasks, lease=r.lease if r.patient else r.lease - r.margin))
        if found and not world.looked and self.bounds.slow_look:
            yield "look for lost tries", world._replace(looked=found)
        if looked := world.looked or (not self.bounds.slow_look and found):
            after = world._replace(looked=())
            for i, epoch in looked:
                after = _inbox(after, i, Said(epoch, "lost"))
            yield "report lost tries", after

    def _send(self, name: str, before: Task, i: int, after: World) -> Steps:
        """What a turn made of a task. A try that it sends waits for any worker, or is given to one whose claim waits."""
        yield name, after
        task = after.tasks[i]
        if not (self.bounds.assigns and task.dispatch and task.epoch != before.epoch):
            return
        for s, row in enumerate(after.services):
            if control.may_be_given(row, lease=self.rules.lease):
                given = _task(after, i, task._replace(dispatch=task.dispatch._replace(service=s, key=row.asks)))
                spent = row._replace(key=row.asks, asks=NOBODY) if self.rules.gives_once else row
                yield f"{name} for {s}", _service(given, s, spent)

    def _held(self, world: World, service: int) -> bool:
        """By a try that its worker cannot end: beats say so long before anybody is given up."""
        return self.rules.holds and any(t.outruns for w in world.workers if w.service == service for t in w.tries)

    def _fresh(self, world: World) -> int:
        known = [task.epoch for task in world.tasks]
        if self.rules.epochs_go_on:
            known += [task.epoch for task in world.standby]
            for w in world.workers:
                heard = (*w.tries, *w.answer, *w.exits, *(w.beat.resend if w.beat else ()))
                known += [*w.over, *(about.epoch for about in heard)]
        return 1 + max(0, *known)

    def _turn(self, world: World, i: int, taken: tuple[Said, ...]) -> World:
        task, fresh = world.tasks[i], self._fresh(world)
        turn = control.turn(task, taken, fresh, retries=self.bounds.retries, losses=self.bounds.losses, fenced=self.rules.fenced)
        after, released = turn.task, turn.released
        if not self.rules.fresh_epochs and after.dispatch and after.epoch == fresh:
            after = after._replace(epoch=task.epoch, dispatch=after.dispatch._replace(epoch=task.epoch))
        if not self.rules.releases_once and any(said.what != "started" for said in taken):
            released = 1
        return _task(world, i, after)._replace(used=world.used - released)

    # -- the loss of the primary

    def _take_over(self, world: World) -> Steps:
        r = self.rules
        if not world.takeovers:
            return
        if not world.standby:
            yield "the standby has all of this", world._replace(standby=world.tasks)
            return
        services = (*world.services, Service("lost", r.lease)) if r.begins_anew else world.services
        if r.begins_anew:  # at worst, what is reported lost is so at once
            services = tuple(Service("lost", r.lease) for _ in services)
        tasks = tuple(self._as_it_was(now, was, len(services) - 1) for now, was in zip(world.tasks, world.standby, strict=True))
        yield (
            "the standby takes over",
            world._replace(
                tasks=tasks,
                services=services,
                used=sum(bool(task.dispatch) for task in tasks),
                looked=(),
                standby=(),
                takeovers=world.takeovers - 1,
                quiet=r.lease if r.quiet else 0,
            ),
        )

    def _as_it_was(self, now: Task, was: Task, nobody: int) -> Task:
        """What workers have done they have done, whatever the database knows of it."""
        row = was.dispatch
        if self.rules.begins_anew and row and row.service == NOBODY:
            was = was._replace(dispatch=row._replace(service=nobody))
        return was._replace(begun=now.begun, told=now.told)

    # -- a worker by itself

    def _work(self, world: World, n: int, worker: Worker) -> Steps:
        r = self.rules
        if worker.service == NOBODY:
            return
        if world.faults:
            yield f"worker {n} dies", _worker(world, n, Worker())._replace(faults=world.faults - 1)
        if self._is_due(worker):
            yield f"worker {n} stops its tries", _worker(world, n, self._lapsed(worker))
        if worker.frozen:
            if not r.asks_before_going_on:
                yield f"worker {n} goes on", _worker(world, n, worker._replace(frozen=False))
            return
        for t in worker.tries:
            if not t.runs:
                begun = tuple(sorted((*world.tasks[t.task].begun, t.epoch)))
                after = _task(world, t.task, world.tasks[t.task]._replace(begun=begun))
                yield f"worker {n} begins {t.epoch}", _worker(after, n, _swap(worker, t, t._replace(runs=True)))
            elif self.bounds.outruns and not t.outruns and world.services[worker.service].state == "active":  # else nothing helps
                yield f"worker {n} cannot end {t.epoch}", _worker(world, n, _swap(worker, t, t._replace(outruns=True)))
            for outcome in self.bounds.outcomes:
                if t.runs != (outcome == "cannot_start"):
                    yield f"worker {n} ends {t.epoch} with {outcome}", _worker(world, n, _exit(worker, t, outcome, r))

    def _is_due(self, worker: Worker) -> bool:
        """Whether its lease, by its own clock, is so close to its end that it must stop."""
        r = self.rules
        return r.stops and worker.service != NOBODY and not worker.frozen and worker.age >= r.lease - r.margin

    def _lapsed(self, worker: Worker) -> Worker:
        if self.rules.freezes:
            return worker._replace(frozen=True, age=0)
        return self._given_up(worker)

    def _given_up(self, worker: Worker) -> Worker:
        """It will register anew; what has ended is still to be told."""
        if not self.rules.kills_when_given_up:
            return Worker(tries=worker.tries, exits=worker.exits, over=worker.over)
        over = {*worker.over, *(t.epoch for t in worker.tries)} if self.rules.remembers else ()
        return Worker(tries=_unending(worker), exits=worker.exits, over=tuple(sorted(over)))

    # -- a worker and the API

    def _talk(self, world: World, n: int, worker: Worker) -> Steps:
        yield from self._report(world, n, worker)
        if worker.service == NOBODY:
            joined = worker._replace(service=len(world.services), age=0, frozen=False)
            yield f"worker {n} registers", _worker(world, n, joined)._replace(services=(*world.services, Service()))
            return
        yield from self._beat(world, n, worker)
        yield from self._claim(world, n, worker)
        if world.faults and not worker.frozen and not self._held(world, worker.service):
            yield from self._leave(world, n, worker)

    def _leave(self, world: World, n: int, worker: Worker) -> Steps:
        row = world.services[worker.service]
        gone = _service(world, worker.service, Service("stopped") if row.state == "active" else row)
        gone = gone._replace(faults=world.faults - 1)
        if row.state == "active":
            gone = _given_back(gone, worker)
        if self.rules.farewell_last:
            yield f"worker {n} kills its tries and says farewell", _worker(gone, n, Worker(tries=_unending(worker)))
        else:
            yield f"worker {n} says farewell", _worker(gone, n, worker._replace(beat=(), answer=()))

    def _beat(self, world: World, n: int, worker: Worker) -> Steps:
        beat, s = worker.beat, worker.service
        if not beat:
            row = world.services[s]
            listed = [t.epoch for t in worker.tries] + [e.epoch for e in worker.exits]
            sent = Beat(0, tuple(sorted(listed)))
            if row.state != "active" and (row.state != "lost" or self.rules.lost_is_final):
                yield f"the beat of worker {n} is refused", _worker(world, n, self._given_up(worker))
                return
            renewed = _service(world, s, row._replace(age=0, state="active"))
            if self.bounds.slow_api:
                yield f"the beat of worker {n} is heard", _worker(renewed, n, worker._replace(beat=sent))
            else:
                yield from self._answer(renewed, n, worker, sent)
        elif not beat.answered:
            yield from self._answer(world, n, worker, beat)
        else:
            yield f"worker {n} hears the answer to its beat", _worker(world, n, self._heard(worker, beat))
            if not self.bounds.steady:
                yield f"the answer to the beat of worker {n} is lost", _worker(world, n, worker._replace(beat=()))

    def _answer(self, world: World, n: int, worker: Worker, beat: Beat) -> Steps:
        kill, resend = control.compare(world.tasks, service=worker.service, listed=beat.listed)
        kill = tuple(epoch for epoch in kill if any(t.epoch == epoch for t in worker.tries))  # what has ended is not killed again
        if not kill and not resend and self.rules.renews_when_sent:  # between this and what the worker hears nothing can happen
            yield f"worker {n} beats", _worker(world, n, self._heard(worker, beat))
            if not self.bounds.steady:
                yield f"the answer to the beat of worker {n} is lost", _worker(world, n, worker._replace(beat=()))
            return
        again = tuple(Try(i, world.tasks[i].epoch) for i in resend) if self.rules.resends else ()
        for brought in {(), again}:  # what was claimed just now is not sent again yet
            answer = beat._replace(answered=True, kill=kill, resend=brought)
            what = f"kill {list(kill)}, take {[t.epoch for t in brought]}"
            yield f"the beat of worker {n} is answered: {what}", _worker(world, n, worker._replace(beat=answer))

    def _heard(self, worker: Worker, beat: Beat) -> Worker:
        r = self.rules
        age = beat.age if r.renews_when_sent else 0
        over = tuple(sorted({*worker.over, *beat.kill})) if r.remembers else ()
        tries = tuple(t for t in worker.tries if t.outruns or t.epoch not in beat.kill)
        worker = worker._replace(beat=(), age=age, frozen=False, tries=tries, over=over)
        return _accept(worker, beat.resend, r)

    def _claim(self, world: World, n: int, worker: Worker) -> Steps:
        if worker.answer:
            heard = worker._replace(answer=())
            if not worker.frozen and not self._is_due(worker):  # else the next beat brings them again
                heard = _accept(heard, worker.answer, self.rules)
            asking_anew = self._next_key(world, worker.service)
            if not (self.bounds.steady and (worker.frozen or self._is_due(worker))):  # then it beats first
                yield f"worker {n} hears of {[t.epoch for t in worker.answer]}", _worker(asking_anew, n, heard)
            yield f"the answer to worker {n} is lost", _worker(world, n, worker._replace(answer=()))
        elif len(worker.tries) < self.bounds.slots:
            if world.services[worker.service].state != "active":
                yield f"worker {n} is told that it was given up", _worker(world, n, self._given_up(worker))
                return
            after, answer = self._claimed(world, worker.service, CURRENT)
            if answer:
                given = worker._replace(answer=answer)
                yield f"worker {n} is given {[t.epoch for t in answer]}", _worker(after, n, given)
            elif world.services[worker.service].key == CURRENT:
                yield f"worker {n} hears of nothing and asks anew", self._next_key(world, worker.service)
            elif self.bounds.assigns and not world.quiet:
                row = world.services[worker.service]
                if row.asks != CURRENT:
                    yield f"the claim of worker {n} waits", _service(world, worker.service, row._replace(asks=CURRENT))
                else:
                    yield f"the claim of worker {n} ends without an answer", self._next_key(world, worker.service)

    def _next_key(self, world: World, s: int) -> World:
        """A new question: what had the key of the one before now has an older one."""
        older = {CURRENT: LAST if self.bounds.doubled else NOBODY, LAST: NOBODY}
        row = world.services[s]
        asks = row.asks if row.asks == NOBODY else NOBODY if self.rules.ends_claims else LAST
        world = _service(world, s, row._replace(key=older.get(row.key, row.key), asks=asks))
        for i, task in enumerate(world.tasks):
            if task.dispatch and task.dispatch.service == s:
                row = task.dispatch._replace(key=older.get(task.dispatch.key, task.dispatch.key))
                world = _task(world, i, task._replace(dispatch=row))
        return world

    def _claimed(self, world: World, service: int, key: int) -> tuple[World, tuple[Try, ...]]:
        b, r = self.bounds, self.rules
        if world.quiet:
            return world, ()
        found, after = control.claim(
            world.services, world.tasks, service=service, key=key, slots=b.slots, lease=r.lease, keyed=r.keyed
        )
        world = _service(world, service, after)
        for i in found:
            task = world.tasks[i]
            assert task.dispatch
            world = _task(world, i, task._replace(dispatch=task.dispatch._replace(service=service, key=key)))
        return world, tuple(Try(i, world.tasks[i].epoch) for i in found)

    def _report(self, world: World, n: int, worker: Worker) -> Steps:
        for t in worker.tries if self.bounds.starts else ():
            if t.runs and Said(t.epoch, "started") not in world.tasks[t.task].told:
                yield f"worker {n} reports the start of {t.epoch}", _tell(world, t.task, Said(t.epoch, "started"))
        for e in worker.exits:
            if not e.stored and self.bounds.batched:
                heard = Heard(e.task, Said(e.epoch, e.outcome))
                if heard.said not in [other.said for other in world.heard]:
                    yield f"the exit of {e.epoch} is heard", world._replace(heard=tuple(sorted((*world.heard, heard))))
            elif not e.stored:
                told = _tell(world, e.task, Said(e.epoch, e.outcome))
                exits = _put(worker.exits, e, e._replace(stored=True)) if self.rules.keeps_exits else _without(worker.exits, e)
                yield f"the exit of {e.epoch} is stored", _worker(told, n, worker._replace(exits=exits))
                if not self.rules.keeps_exits:
                    yield f"the exit of {e.epoch} is lost", _worker(world, n, worker._replace(exits=exits))
                if self.bounds.takeovers > world.takeovers:  # its token may be of before
                    yield f"the exit of {e.epoch} is refused", _worker(world, n, worker._replace(exits=_without(worker.exits, e)))
            else:
                left = worker._replace(exits=_without(worker.exits, e))
                yield f"worker {n} knows that the exit of {e.epoch} is stored", _worker(world, n, left)

    def _store(self, world: World) -> Steps:
        """What the API has heard, in one commit after the other."""
        r = self.rules
        if not world.heard:
            return
        yield "the API dies", world._replace(heard=())
        batch = [h for h in world.heard if h.under_way]
        if not batch:
            yield "a commit begins", world._replace(heard=tuple(h._replace(under_way=True) for h in world.heard))
            return
        rest = world._replace(heard=tuple(h for h in world.heard if not h.under_way))
        yield "a commit fails", rest if r.answers_when_stored else _answered(rest, batch)
        stored = rest
        for h in batch:
            stored = _tell(stored, h.task, h.said)
        if r.answers_its_own:
            yield "a commit is made", _answered(stored, batch)
        else:
            yield "a commit is made", _answered(stored, world.heard)._replace(heard=())

    # -- what is heard twice, and time

    def _repeat(self, world: World) -> Steps:
        for i, task in enumerate(world.tasks):
            for said in task.told:
                if said not in task.inbox:
                    yield f"{said.what} of {said.epoch} is heard again", _inbox(world, i, said)
        for s, row in enumerate(world.services):
            if row.state == "active":
                if row.age:
                    yield f"an old beat of service {s} is heard", _service(world, s, row._replace(age=0))
                for key in (LAST, CURRENT):
                    after, answer = self._claimed(world, s, key)
                    if answer and after != world:
                        yield f"an old claim of service {s} is heard", after

    def _pass_time(self, world: World) -> Steps:
        if not self.bounds.stalls and any(map(self._is_due, world.workers)):
            return  # stopping takes less than a tick
        if self.bounds.steady and any(w.service == NOBODY or w.age or w.frozen or w.answer for w in world.workers):
            return
        services, workers = tuple(map(self._aged, world.services)), tuple(map(self._older, world.workers))
        yield "a tick", world._replace(services=services, workers=workers, quiet=max(world.quiet - 1, 0))

    def _aged(self, row: Service) -> Service:
        return row._replace(age=min(row.age + 1, self.rules.lease)) if row.state in ("active", "lost") else row

    def _older(self, worker: Worker) -> Worker:
        """A tick later. A worker does not wait for an answer that would come after its lease."""
        r, beat = self.rules, worker.beat
        if beat:
            beat = beat._replace(age=min(beat.age + 1, r.lease))
            if r.renews_when_sent and beat.age >= r.lease - r.margin:
                beat = ()
        age = min(worker.age + 1, r.lease) if worker.service != NOBODY and not worker.frozen and r.stops else 0
        return worker._replace(age=age, beat=beat)

    # -- states that nothing that matters tells apart

    def _canonical(self, world: World) -> World:
        """One of all states that differ in names only, or in what nobody will look at again. Workers have no order; services that
        nothing points at and epochs that nobody will mention again are forgotten; what can be done only in one way is done.
        """
        for i, task in enumerate(world.tasks):
            for said in task.inbox:
                if said.epoch != task.epoch:  # stale for ever, so that it makes no difference when it is taken
                    world = self._turn(world, i, (said,))
        world = world._replace(workers=tuple(map(self._idle, world.workers)))
        world = with_few_epochs(without_idle_services(world), past=self.bounds.doubled)
        ordered = tuple(sorted(world.workers))
        return world if ordered == world.workers else world._replace(workers=ordered)

    def _idle(self, worker: Worker) -> Worker:
        """A worker without tries stops them when it is time."""
        return worker if worker.tries or not self.rules.freezes or not self._is_due(worker) else worker._replace(frozen=True, age=0)


# -- tuples with one place changed


def _task(world: World, i: int, task: Task) -> World:
    return world._replace(tasks=(*world.tasks[:i], task, *world.tasks[i + 1 :]))


def _worker(world: World, n: int, worker: Worker) -> World:
    return world._replace(workers=(*world.workers[:n], worker, *world.workers[n + 1 :]))


def _service(world: World, s: int, row: Service) -> World:
    return world._replace(services=(*world.services[:s], row, *world.services[s + 1 :]))


def _inbox(world: World, i: int, said: Said) -> World:
    """In any order: a turn may take any of them first."""
    task = world.tasks[i]
    return _task(world, i, task._replace(inbox=tuple(sorted((*task.inbox, said)))))


def _given_back(world: World, leaving: Worker) -> World:
    """What a worker has not begun, whether it has heard of it or not."""
    begun = {t.epoch for t in leaving.tries if t.runs} | {e.epoch for e in leaving.exits}
    for i, task in enumerate(world.tasks):
        row = task.dispatch
        told = begun.union(said.epoch for said in task.inbox)
        if row and row.service == leaving.service and row.epoch not in told:
            world = _inbox(world, i, Said(row.epoch, "given_back"))
    return world


def _tell(world: World, i: int, said: Said) -> World:
    """Into the inbox, and into what has ever been told."""
    task = world.tasks[i]
    told = task.told if said in task.told else tuple(sorted((*task.told, said)))
    return _inbox(_task(world, i, task._replace(told=told)), i, said)


def _answered(world: World, heard: Iterable[Heard]) -> World:
    """Who has reported this is told that it is stored, if it still is there."""
    said = {h.said for h in heard}
    for n, worker in enumerate(world.workers):
        exits = tuple(sorted(e._replace(stored=e.stored or Said(e.epoch, e.outcome) in said) for e in worker.exits))
        world = _worker(world, n, worker._replace(exits=exits))
    return world


def _without(items: tuple, item: object) -> tuple:  # type: ignore[type-arg]
    return tuple(other for other in items if other != item)


def _put(items: tuple, item: object, new: object) -> tuple:  # type: ignore[type-arg]
    return tuple(sorted(new if other == item else other for other in items))


def _swap(worker: Worker, t: Try, new: Try) -> Worker:
    return worker._replace(tries=_put(worker.tries, t, new))


def _exit(worker: Worker, t: Try, outcome: str, rules: Rules) -> Worker:
    exits = worker.exits
    if rules.keeps_exits:
        exits = tuple(sorted((*exits, Exit(t.task, t.epoch, outcome))))
    over = tuple(sorted({*worker.over, t.epoch})) if rules.remembers else ()
    return worker._replace(tries=_without(worker.tries, t), exits=exits, over=over)


def _unending(worker: Worker) -> tuple[Try, ...]:
    return tuple(t for t in worker.tries if t.outruns)


def _accept(worker: Worker, tries: tuple[Try, ...], rules: Rules) -> Worker:
    had = {t.epoch for t in worker.tries} | {e.epoch for e in worker.exits} | set(worker.over)
    new = [t for t in tries if t.epoch not in had]
    return worker._replace(tries=tuple(sorted((*worker.tries, *new)))) if new else worker
