"""What is assigned to a task, a group or a DAG after it was made, as in ``load.retries = 3``: it counts, or it is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from evenflow.core.likeness import meant_or
from evenflow.errors import BadSetting

LOOKS = frozenset({"ui_color", "ui_fgcolor"})  # of Airflow's boxes: they ask for nothing that a run would show


def is_own_affair(owner: object) -> bool:
    """Whether the assignment that is being made stands in a method of ``owner``: what a class keeps for itself counts for itself.

    Called by ``__setattr__``, whose caller is looked at.
    """
    return sys._getframe(2).f_locals.get("self") is owner


def refuse(where: str, name: str, known: Iterable[str], cure: str = "") -> NoReturn:
    """Raises :class:`BadSetting`: nothing would come of assigning ``name``."""
    hint = cure or meant_or(name, known, "Leave it out.")
    raise BadSetting(f"{where}: nothing is known by the name {name!r}, so assigning it would change nothing. {hint}")


def refuse_fixed(where: str, name: str, value: Any, cure: str = "Say it where it is made.") -> NoReturn:
    """Raises :class:`BadSetting` for what can be said only when the object is made."""
    raise BadSetting(f"{where}: {name} cannot be changed to {value!r:.80} any more. {cure}")
