"""The kinds of service, and what is true of each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, get_args

UserCodeKind = Literal["worker", "processor", "triggerer"]  # what the execution API hears from, and fleet tokens are for
USER_CODE_KINDS: tuple[UserCodeKind, ...] = get_args(UserCodeKind)
TokenState = Literal["good", "revoked", "expired", "void"]  # void: its key is gone
TokenKind = Literal["operator", UserCodeKind]  # whom a token is made for: a person or tool, or a fleet


class ServiceKind(StrEnum):
    """The kinds of service, in the order in which they depend on each other."""

    API = "api"
    SCHEDULER = "scheduler"
    PROCESSOR = "processor"
    WORKER = "worker"
    TRIGGERER = "triggerer"
    AUTOSCALER = "autoscaler"
    LAUNCHER = "launcher"
    CONNECT_SERVER = "connect-server"

    @property
    def runs_user_code(self) -> bool:
        """Returns whether these services run authors' code. They never learn the database's URL; they show the API a token."""
        return self in USER_CODE_KINDS

    @property
    def knows_database(self) -> bool:
        return not self.runs_user_code and self is not ServiceKind.CONNECT_SERVER

    @property
    def is_needed(self) -> bool:
        """Returns whether an installation cannot work without one."""
        return self in (ServiceKind.API, ServiceKind.SCHEDULER, ServiceKind.PROCESSOR, ServiceKind.WORKER)


def missing_kinds(healthy: Iterable[str], *, triggers: int) -> list[str]:
    """Returns the needed kinds of service that are missing among the ``healthy`` ones. ``triggers`` is the number of deferred
    tasks' triggers, which need a triggerer. An autoscaler counts as workers, because it starts them when they are needed.
    """
    there = set(healthy)
    if ServiceKind.AUTOSCALER in there:
        there.add(ServiceKind.WORKER)
    needed = [kind for kind in ServiceKind if kind.is_needed or (kind is ServiceKind.TRIGGERER and triggers)]
    return [kind for kind in needed if kind not in there]
