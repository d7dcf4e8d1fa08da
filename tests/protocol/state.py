"""What the model remembers: the rows of the database that the protocol is about, and what each worker has in memory.

Everything is a tuple of tuples and numbers, so that states can be hashed, compared and sorted. ``NOBODY`` stands for no service, no
key and no epoch. Times are ages in ticks, and an age that is past all that matters stays there.
"""

from __future__ import annotations

from typing import NamedTuple

NOBODY = -1
CURRENT, LAST = 1, 0  # claim keys of one worker: only which of them are equal matters


class Said(NamedTuple):
    """A report in the inbox or on its way there."""

    epoch: int
    what: str  # started, lost, given_back by a farewell, or the outcome of an exit


class Dispatch(NamedTuple):
    epoch: int
    service: int = NOBODY
    key: int = NOBODY
    kill: bool = False


class Task(NamedTuple):
    """A task instance, its dispatch, and what has been told of it. The last three are for the model's own book-keeping."""

    state: str = "scheduled"
    epoch: int = NOBODY
    try_number: int = 0
    losses: int = 0
    dispatch: Dispatch | tuple[()] = ()
    inbox: tuple[Said, ...] = ()
    begun: tuple[int, ...] = ()  # epochs whose process has begun
    told: tuple[Said, ...] = ()  # all that workers have ever told
    ended: tuple[int, ...] = ()  # epochs whose dispatch was ended, as often as it was


class Service(NamedTuple):
    """A row of ``service``. ``age`` is what the lease clock has gone on since its beat, ``asks`` the key of its waiting claim."""

    state: str = "active"
    age: int = 0
    key: int = NOBODY
    asks: int = NOBODY


class Try(NamedTuple):
    """What a worker has in hand."""

    task: int
    epoch: int
    runs: bool = False  # its process has begun
    outruns: bool = False  # what it has started forks more quickly than it is stopped or killed


class Exit(NamedTuple):
    """An exit that no answer has acknowledged."""

    task: int
    epoch: int
    outcome: str
    stored: bool = False  # it is in the inbox, whether the worker knows it or not


class Beat(NamedTuple):
    """A beat that the API has heard, and the answer as far as it is. One that is not heard might as well not have been sent."""

    age: int  # since it was sent
    listed: tuple[int, ...]
    answered: bool = False
    kill: tuple[int, ...] = ()
    resend: tuple[Try, ...] = ()


class Worker(NamedTuple):
    """A worker's process; one that has died is one that has not registered yet. While it has room it asks for work.

    ``age`` is what its own clock has gone on since it sent the last beat that was answered.
    """

    service: int = NOBODY
    age: int = 0
    frozen: bool = False
    tries: tuple[Try, ...] = ()
    exits: tuple[Exit, ...] = ()
    answer: tuple[Try, ...] = ()  # to its claim, on the way
    beat: Beat | tuple[()] = ()
    over: tuple[int, ...] = ()  # epochs that it remembers to have had


class Heard(NamedTuple):
    """A report that the API has heard. It is in the inbox when the commit that it is part of is made."""

    task: int
    said: Said
    under_way: bool = False  # the commit


class World(NamedTuple):
    tasks: tuple[Task, ...]
    workers: tuple[Worker, ...]
    services: tuple[Service, ...] = ()
    used: int = 0  # of the one limit that all tasks hold
    looked: tuple[tuple[int, int], ...] = ()  # (task, epoch): what a scheduler saw lost and has not written yet
    faults: int = 0  # that may still happen
    standby: tuple[Task, ...] = ()  # what it knows of the tasks
    takeovers: int = 0  # that may still happen
    quiet: int = 0  # ticks in which no claim is answered with tries
    heard: tuple[Heard, ...] = ()
