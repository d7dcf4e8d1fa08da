"""Assignments to a task, a group or a DAG after it was made, as in ``load.retries = 3``: each takes effect, or is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from evenflow.core.likeness import meant_or
from evenflow.errors import BadSetting

LOOKS = frozenset({"ui_color", "ui_fgcolor"})  # of Airflow's boxes: they affect nothing in a run


def is_own_affair(owner: object) -> bool:
    """Returns whether a method of ``owner`` makes this assignment: an object may assign its own attributes.

    ``__setattr__`` calls this, and this looks at the caller of that.
    """
    return sys._getframe(2).f_locals.get("self") is owner


def refuse(where: str, name: str, known: Iterable[str], cure: str = "") -> NoReturn:
    """Raises :class:`BadSetting`, because an assignment to ``name`` would have no effect."""
    hint = cure or meant_or(name, known, "Leave it out.")
    raise BadSetting(f"{where}: nothing is known by the name {name!r}, so assigning it would change nothing. {hint}")


def refuse_fixed(where: str, name: str, value: Any, cure: str = "Say it where it is made.") -> NoReturn:
    """Raises :class:`BadSetting` for an attribute that can be set only when the object is made."""
    raise BadSetting(f"{where}: {name} cannot be changed to {value!r:.80} any more. {cure}")
