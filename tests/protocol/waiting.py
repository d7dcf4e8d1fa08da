"""One task that defers, as steps: what its process, triggerers, the network, the API, schedulers, an operator and time can do next.

Messages are late by being heard after other steps, doubled by being heard again. Of leases this keeps what
:mod:`tests.protocol.leases` has shown: both sides count, and the holder stops first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.protocol import waiting_control as control
from tests.protocol.state import NOBODY
from tests.protocol.waiting_state import Back, Claimed, Deferral, Said, Service, Triggerer, World

Steps = Iterator[tuple[str, World]]


@dataclass(frozen=True, slots=True)
class Rules:
    """How it is done; each of them broken must show. Times are ticks."""

    lease: int = 2
    margin: int = 1
    stops: bool = True  # a triggerer stops its triggers by its own clock
    kills_when_given_up: bool = True  # who registers anew has ended what it ran
    claimed_once: bool = True  # a trigger that somebody has is given to nobody else
    fences_claims: bool = True  # word of an older claim gives nothing back
    patient: bool = True  # what a triggerer does not list counts as lost when no answer can bring it any more
    farewell_last: bool = True  # who leaves says so when its triggers are over
    frees: bool = True  # what a lost triggerer had is given to others
    recovers: bool = True  # what a triggerer has claimed and has not heard of is given to any
    fenced: bool = True  # events of past deferrals have no effect
    applied_once: bool = True  # an event that has had its effect has no second
    releases_once: bool = True  # what is not kept is given back with the dispatch, and only then
    retakes: bool = True  # and taken again at the resume
    cleans_up: bool = True  # the end of a task that waits is first of all the end of what it has started


@dataclass(frozen=True, slots=True)
class Bounds:
    triggerers: int = 2
    defers: int = 1
    faults: int = 1
    losses: int = 0
    cancels: int = 0
    timeout: bool = False
    doubled: bool = False
    late: bool = False  # exits are heard after other steps
    fails: int = 0  # triggers fail so often, and are tried again


class Waiting:
    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        self.rules, self.bounds = rules, bounds

    def initial(self) -> World:
        b = self.bounds
        there = tuple(Triggerer(service=s) for s in range(b.triggerers))
        bounds = {"faults": b.faults, "losses": b.losses, "cancels": b.cancels, "fails": b.fails}
        return World(triggerers=there, services=(Service(),) * b.triggerers, **bounds)

    def steps(self, world: World) -> Steps:
        for name, after in self._raw(world):
            yield name, _canonical(after)

    def _raw(self, world: World) -> Steps:
        yield from self._schedule(world)
        yield from self._process(world)
        waits = world.task.deferral and not world.task.deferral.purpose
        for n, triggerer in enumerate(world.triggerers):
            yield from self._trigger(world, n, triggerer)
            if waits:
                yield from self._fall(world, n, triggerer)
                yield from self._talk(world, n, triggerer)
            elif triggerer.runs:
                yield f"triggerer {n} hears that nobody waits", _triggerer(world, n, triggerer._replace(runs=()))
        yield from self._network(world)
        if waits:
            yield from self._time(world)

    # -- schedulers and operators

    def _schedule(self, world: World) -> Steps:
        task = world.task
        if task.state in control.STARTABLE and not task.cancelled:
            yield "grant", control.grant(world)
        if task.inbox:
            yield "turn", control.turn(world, task.inbox, self.rules)
            if len(task.inbox) > 1:
                for said in set(task.inbox):
                    yield f"turn takes {said.what} of {said.epoch}", control.turn(world, (said,), self.rules)
        if world.cancels:
            yield "cancel", _said(world._replace(cancels=world.cancels - 1), Said(0, "cancel"))
        for s, row in enumerate(world.services):
            if row.state == "active" and row.age >= self.rules.lease:
                alive = any(t.service == s for t in world.triggerers)
                if world.faults or not alive:
                    yield f"expire {s}", _service(world, s, Service("lost"))._replace(faults=world.faults - alive)
        row = task.deferral
        if self.rules.frees and row and row.holder != NOBODY and world.services[row.holder].state != "active":
            yield "free a claim", _deferral(world, row._replace(holder=NOBODY))

    # -- the process of the task

    def _process(self, world: World) -> Steps:
        task, row, process = world.task, world.task.dispatch, world.process
        if row and not row.begun:
            begun = row._replace(begun=True)
            yield f"{row.epoch} begins", world._replace(task=task._replace(dispatch=begun), process=begun)
        if not process:
            return
        if world.losses:
            gone = world._replace(process=(), losses=world.losses - 1)
            told = any(said.epoch == process.epoch for said in task.inbox)
            yield "the worker is lost", gone if told else _said(gone, Said(process.epoch, "lost"))
        if row and row.epoch == process.epoch and row.kill:
            yield f"{process.epoch} is killed", self._exit(_job(world, False), "killed")
        elif process.purpose == "clean_up":
            yield f"{process.epoch} cleans up", self._exit(_job(world, False), "killed")
        else:
            if task.deferred < self.bounds.defers:
                after = _job(world, True)
                yield f"{process.epoch} defers", self._exit(after, "deferred")
            if process.purpose:
                yield f"{process.epoch} succeeds", self._exit(_job(world, False), "success")

    def _exit(self, world: World, what: str) -> World:
        """Said at once, or late; and perhaps once more."""
        assert world.process
        said = Said(world.process.epoch, what)
        sent = self._send(world._replace(process=()), said)
        return sent._replace(wire=tuple(sorted({*sent.wire, said}))) if self.bounds.doubled else sent

    def _send(self, world: World, said: Said) -> World:
        return world._replace(wire=tuple(sorted({*world.wire, said}))) if self.bounds.late else _said(world, said)

    # -- a triggerer by itself

    def _trigger(self, world: World, n: int, t: Triggerer) -> Steps:
        for claimed in t.events:
            yield from self._report(world, n, t, claimed)
        if self._is_due(t):
            yield f"triggerer {n} stops its triggers", _triggerer(world, n, t._replace(stopped=True))
        if t.stopped:
            return
        for claimed in t.runs:
            left = t._replace(runs=_without(t.runs, claimed))
            fired = left._replace(events=_with(t.events, claimed._replace(claim=0)))  # of whichever claim
            yield f"the trigger of {claimed.epoch} fires at {n}", _triggerer(world, n, fired)
            if world.fails:
                failed = _backs(_triggerer(world, n, left), Back(t.service, claimed))
                yield f"the trigger of {claimed.epoch} fails at {n}", failed._replace(fails=world.fails - 1)

    def _fall(self, world: World, n: int, t: Triggerer) -> Steps:
        """It dies or leaves."""
        if t.service == NOBODY or not world.faults:
            return
        yield f"triggerer {n} dies", _triggerer(world, n, Triggerer())._replace(faults=world.faults - 1)
        gone = _service(world, t.service, Service("stopped"))._replace(faults=world.faults - 1)
        if t.stopped or world.services[t.service].state != "active":
            return
        kept = Triggerer() if self.rules.farewell_last else t._replace(answer=())
        yield f"triggerer {n} leaves", _triggerer(gone, n, kept._replace(events=t.events))

    def _is_due(self, t: Triggerer) -> bool:
        r = self.rules
        return r.stops and t.service != NOBODY and not t.stopped and t.age >= r.lease - r.margin

    # -- a triggerer and the API

    def _talk(self, world: World, n: int, t: Triggerer) -> Steps:
        if t.service == NOBODY:
            joined = t._replace(service=len(world.services), age=0, stopped=False)
            yield f"triggerer {n} registers", _triggerer(world, n, joined)._replace(services=(*world.services, Service()))
            return
        row = world.services[t.service]
        if row.state != "active":
            given_up = Triggerer(runs=() if self.rules.kills_when_given_up else t.runs, events=t.events)
            yield f"triggerer {n} is told that it was given up", _triggerer(world, n, given_up)
            return
        yield from self._beat(world, n, t)
        if t.answer:
            heard = t._replace(answer=())
            if not t.stopped and not self._is_due(t):  # else the next beat says that it was lost
                heard = heard._replace(runs=_with(t.runs, *t.answer))
            yield f"triggerer {n} hears of {list(t.answer)}", _triggerer(world, n, heard)
            yield f"the answer to triggerer {n} is lost", _triggerer(world, n, t._replace(answer=()))
        else:
            yield from self._claim(world, n, t)

    def _report(self, world: World, n: int, t: Triggerer, claimed: Claimed) -> Steps:
        event = Said(claimed.epoch, "event")
        told = world if event in world.task.inbox else _said(world, event)
        if self.bounds.doubled:
            yield f"triggerer {n} does not hear that the event of {claimed.epoch} is stored", told
        left = t._replace(events=_without(t.events, claimed))
        yield f"the event of {claimed.epoch} is stored", _triggerer(told, n, left)

    def _claim(self, world: World, n: int, t: Triggerer) -> Steps:
        row = world.task.deferral
        free = row and (row.holder == NOBODY or (not self.rules.claimed_once and row.holder != t.service))
        if row and free and not row.purpose and world.services[t.service].age < self.rules.lease:
            taken = row._replace(holder=t.service, claim=row.claim + 1)
            given = t._replace(answer=(Claimed(row.epoch, taken.claim),))
            yield f"triggerer {n} is given {row.epoch}", _triggerer(_deferral(world, taken), n, given)

    def _beat(self, world: World, n: int, t: Triggerer) -> Steps:
        renewed = _service(world, t.service, Service())
        yield f"the answer to the beat of triggerer {n} is lost", renewed
        row = world.task.deferral
        own = row and row.holder == t.service and not row.purpose and row.epoch
        lost = own and all(claimed.epoch != own for claimed in (*t.runs, *t.events)) and Said(own, "event") not in world.task.inbox
        if t.answer and self.rules.patient:  # it was claimed too short a time ago
            lost = False
        if row and lost and self.rules.recovers:
            renewed = _deferral(renewed, row._replace(holder=NOBODY))
        heard = t._replace(age=0, stopped=False, runs=tuple(claimed for claimed in t.runs if claimed.epoch == own))
        yield f"triggerer {n} beats" + (f", and has lost {own}" if lost else ""), _triggerer(renewed, n, heard)

    # -- what is on its way, and time

    def _network(self, world: World) -> Steps:
        for said in world.wire:
            left = tuple(other for other in world.wire if other != said)
            yield f"{said.what} of {said.epoch} is stored", _said(world._replace(wire=left), said)
        for back in world.backs:
            left = world._replace(backs=tuple(other for other in world.backs if other != back))
            if self.bounds.doubled and not back.again:
                left = _backs(left, back._replace(again=True))
            row = world.task.deferral
            same = row and row.epoch == back.of.epoch and row.holder == back.service
            if row and same and (row.claim == back.of.claim or not self.rules.fences_claims):
                left = _deferral(left, row._replace(holder=NOBODY))
            yield f"{back.of} is given back", left
        row = world.task.deferral
        due = Said(row.epoch, "timeout") if row else None
        if self.bounds.timeout and row and due and not row.purpose and due not in world.task.inbox:
            yield f"{row.epoch} times out", _said(world, due)

    def _time(self, world: World) -> Steps:
        if any(map(self._is_due, world.triggerers)):
            return  # stopping takes less than a tick
        services = tuple(self._aged(row) for row in world.services)
        yield "a tick", world._replace(services=services, triggerers=tuple(self._older(t) for t in world.triggerers))

    def _aged(self, row: Service) -> Service:
        return row._replace(age=min(row.age + 1, self.rules.lease)) if row.state == "active" else row

    def _older(self, t: Triggerer) -> Triggerer:
        counts = t.service != NOBODY and not t.stopped and self.rules.stops
        return t._replace(age=min(t.age + 1, self.rules.lease) if counts else 0)


def _canonical(world: World) -> World:
    """Triggerers have no order; services that nobody names are forgotten, and so are claims."""
    world = _with_few_claims(world)
    row = world.task.deferral
    named = {t.service for t in world.triggerers} | {back.service for back in world.backs} | ({row.holder} if row else set())
    kept = [s for s in range(len(world.services)) if s in named]
    ordered = tuple(sorted(world.triggerers))
    order = sorted(kept, key=lambda s: next((n for n, t in enumerate(ordered) if t.service == s), len(ordered)))
    if order != list(range(len(world.services))):
        new = {s: n for n, s in enumerate(order)} | {NOBODY: NOBODY}
        world = world._replace(
            services=tuple(world.services[s] for s in order),
            triggerers=tuple(t._replace(service=new[t.service]) for t in ordered),
            backs=tuple(sorted(back._replace(service=new[back.service]) for back in world.backs)),
        )
        ordered = tuple(sorted(world.triggerers))
        if row:
            world = _deferral(world, row._replace(holder=new[row.holder]))
    return world._replace(triggerers=ordered)


def _with_few_claims(world: World) -> World:
    row = world.task.deferral
    named = {c.claim for t in world.triggerers for c in (*t.runs, *t.answer)} | {back.of.claim for back in world.backs}
    named.add(row.claim if row else 0)
    new = {claim: n for n, claim in enumerate(sorted(named - {0}), 1)} | {0: 0}
    if all(old == n for old, n in new.items()):
        return world

    def renumbered(claims: tuple[Claimed, ...]) -> tuple[Claimed, ...]:
        return tuple(c._replace(claim=new[c.claim]) for c in claims)

    world = world._replace(
        triggerers=tuple(t._replace(runs=renumbered(t.runs), answer=renumbered(t.answer)) for t in world.triggerers),
        backs=tuple(back._replace(of=renumbered((back.of,))[0]) for back in world.backs),
    )
    return _deferral(world, row._replace(claim=new[row.claim])) if row else world


# -- tuples with one place changed


def _said(world: World, said: Said) -> World:
    return world._replace(task=world.task._replace(inbox=tuple(sorted((*world.task.inbox, said)))))


def _deferral(world: World, row: Deferral) -> World:
    return world._replace(task=world.task._replace(deferral=row))


def _job(world: World, runs: bool) -> World:
    return world._replace(task=world.task._replace(job=runs))


def _service(world: World, s: int, row: Service) -> World:
    return world._replace(services=(*world.services[:s], row, *world.services[s + 1 :]))


def _triggerer(world: World, n: int, t: Triggerer) -> World:
    return world._replace(triggerers=(*world.triggerers[:n], t, *world.triggerers[n + 1 :]))


def _backs(world: World, back: Back) -> World:
    return world._replace(backs=tuple(sorted({*world.backs, back})))


def _with(claims: tuple[Claimed, ...], *more: Claimed) -> tuple[Claimed, ...]:
    return tuple(sorted({*claims, *more}))


def _without(claims: tuple[Claimed, ...], one: Claimed) -> tuple[Claimed, ...]:
    return tuple(other for other in claims if other != one)
