"""What every service of the control plane observes that acts in loops."""

from __future__ import annotations

from evenflow.core.observation import warning


@warning("the database cannot be used, waiting for it")
def cut_off(service: str, reason: str) -> None: ...
@warning("could not sign off")
def not_signed_off(service: str, reason: str) -> None: ...
