"""The frames that a host sends, as :mod:`evenflow.triggerer.host_process` does, and no others."""

from __future__ import annotations

import msgspec


class _SaidByHost(msgspec.Struct, tag_field="say"):
    pass


class _OfTrigger(_SaidByHost):
    key: int  # one claim of one trigger


class Fired(_OfTrigger, tag="fired"):
    """The body is the trigger's event."""


class Failed(_OfTrigger, tag="failed"):
    error: str


class Stopped(_OfTrigger, tag="stopped"):
    pass


class LogLines(_OfTrigger, tag="log"):
    """The body is whole lines."""


class Asked(_OfTrigger, tag="ask"):
    """The body is the arguments of the question."""

    number: int
    question: str


class Blocked(_SaidByHost, tag="blocked"):
    """The event loop stands still in a step of this trigger, or of none. The body is the place."""

    key: int | None
    seconds: float


class Alive(_SaidByHost, tag="alive"):
    pass


class Ended(_SaidByHost, tag="ended"):
    pass


_SAID = msgspec.json.Decoder(Fired | Failed | Stopped | LogLines | Asked | Blocked | Alive | Ended)

read_head = _SAID.decode  # raises ValueError for frames that no host of this version sends, and RecursionError for endless nesting
