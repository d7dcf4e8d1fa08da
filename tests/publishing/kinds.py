"""Which services a system of several hosts has."""

from __future__ import annotations

from evenflow.core.service import ServiceKind

OF_HOSTS = frozenset(ServiceKind) - {ServiceKind.CONNECT_SERVER}  # which is for one machine, and started there with the others
