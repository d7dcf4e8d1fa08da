"""The clocks of the product, short so that a scenario takes seconds. The proportions stay about the same."""

from __future__ import annotations

LEASE_S = 4.0
LEASES = {
    "evenflow.core.limits:LEASE_S": LEASE_S,
    "evenflow.core.limits:BEAT_S": 0.8,
    "evenflow.core.limits:MARGIN_S": 0.8,
    "evenflow.core.limits:PULSE_S": 0.2,
    "evenflow.core.limits:STANDSTILL_S": 0.8,
    "evenflow.core.limits:API_SILENCE_S": 1.6,
}
