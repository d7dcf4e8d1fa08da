"""What the model of waiting remembers: the rows of one task that defers, its process, and what each triggerer has in memory.

Claims and losses of workers are :mod:`tests.protocol.protocol`'s; here a worker is one process that may vanish.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.state import NOBODY


class Said(NamedTuple):
    """A report in the inbox or on its way there. ``what``: the outcome of an exit, lost, event, timeout, cancel."""

    epoch: int
    what: str


class Dispatch(NamedTuple):
    """``purpose``: what a resume is for, and ``of`` the deferral that it resumes from; none of both for a first start."""

    epoch: int
    purpose: str = ""
    of: int = NOBODY
    begun: bool = False
    kill: bool = False


class Deferral(NamedTuple):
    """``holder``: the triggerer's row. ``purpose`` is set when it has resumed."""

    epoch: int
    claim: int = 0
    holder: int = NOBODY
    purpose: str = ""


class Task(NamedTuple):
    """The last three are for the model's own book-keeping: epochs of deferrals that resumed, how often it deferred, and whether
    what it has started outside runs.
    """

    state: str = "scheduled"
    epoch: int = NOBODY
    losses: int = 0
    cancelled: bool = False
    dispatch: Dispatch | tuple[()] = ()
    deferral: Deferral | tuple[()] = ()
    inbox: tuple[Said, ...] = ()
    resumed: tuple[int, ...] = ()
    deferred: int = 0
    job: bool = False


class Claimed(NamedTuple):
    """A trigger that was given to a triggerer."""

    epoch: int
    claim: int


class Back(NamedTuple):
    """Word that a trigger is not run any more, on its way to the API."""

    service: int
    of: Claimed
    again: bool = False  # it was heard before


class Triggerer(NamedTuple):
    """``events`` are kept until they are acknowledged; ``answer`` is that to its claim, on the way."""

    service: int = NOBODY
    age: int = 0
    stopped: bool = False
    runs: tuple[Claimed, ...] = ()
    events: tuple[Claimed, ...] = ()
    answer: tuple[Claimed, ...] = ()


class Service(NamedTuple):
    state: str = "active"
    age: int = 0


class World(NamedTuple):
    """``pool`` and ``run`` are what two limits count: the first is kept while the task waits, the second is not."""

    task: Task = Task()
    process: Dispatch | tuple[()] = ()
    wire: tuple[Said, ...] = ()  # exits that were sent and are not stored
    backs: tuple[Back, ...] = ()
    triggerers: tuple[Triggerer, ...] = ()
    services: tuple[Service, ...] = ()
    pool: int = 0
    run: int = 0
    faults: int = 0  # deaths, farewells and lapses that may still happen
    losses: int = 0  # of workers, and so on
    cancels: int = 0
    fails: int = 0
