"""Asks before something that cannot be undone, unless ``--yes`` was given."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from evenflow.cli.output.terminal import say
from evenflow.errors import ParamError

Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), help="Do not ask first.")]


class Declined(Exception):
    """A person was asked, and declined."""


def check_agreed(what: str, *, yes: bool = False) -> None:
    """Asks whether to continue, unless ``yes``. Raises :class:`Declined`."""
    if not yes:
        check_that_somebody_is_there()
        say(what)
        confirm()


def check_that_somebody_is_there(otherwise: str = "") -> None:
    if not sys.stdin.isatty():
        raise ParamError(f"This asks before it does anything, and there is nobody to ask. Say --yes{otherwise}.")


def confirm() -> None:
    """Raises :class:`Declined`."""
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Declined
