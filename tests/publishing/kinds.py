"""Which services a system of several hosts has."""

from __future__ import annotations

from evenflow.runtime.service_settings import Kind

OF_HOSTS = frozenset(Kind) - {Kind.CONNECT_SERVER}  # which is for one machine, and started there with the others
