"""The condition of a service by its own account: its numbers, whether its loops turn, and whether it can do its work.

A service that is not live should be restarted: one of its loops hangs. A service that is not ready should be left alone, and given
no work: something that it needs is away, and it continues by itself once that is back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evenflow.core.meter import Meter, Reading
from evenflow.core.metrics import METRICS, SERVICE_ANSWERED, SERVICE_LIVE, SERVICE_READY
from evenflow.core.service import ServiceKind

# A waiting loop turns at least once a second, and the time limits of its work end a busy one: a transaction has 60 s, connecting
# anew 5 s. Restarting a service sooner only makes an outage worse.
LIVE_WITHIN_S = 90.0


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The condition of one loop or need of the service."""

    name: str
    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    status: str  # live, ready; hung, not ready
    ok: bool
    findings: list[HealthCheck]

    def as_json(self) -> dict[str, object]:
        checks = {finding.name: {"ok": finding.ok, "reason": finding.reason} for finding in self.findings}
        return {"status": self.status, "checks": checks}


class Pulse:
    """Its owner beats it. It is overdue ``within_s`` after its last beat, and before the first one."""

    def __init__(self, name: str, within_s: float, what: str) -> None:
        self.name, self._within_s, self._what = name, within_s, what
        self._beaten = -math.inf
        self._stopped: str | None = None

    def beat(self) -> None:
        self._beaten = time.monotonic()
        self._stopped = None

    def stop(self, reason: str) -> None:
        """Makes it overdue from now on, for this reason, until the next beat."""
        self._stopped = reason

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._beaten

    def look(self) -> HealthCheck:
        age_s = self.age_s
        if self._stopped is not None:
            return HealthCheck(self.name, False, self._stopped)
        if math.isinf(age_s):
            return HealthCheck(self.name, False, f"{self._what}: not yet")
        ok = age_s <= self._within_s
        return HealthCheck(
            self.name, ok, f"{self._what}: {age_s:.1f} s ago" + ("" if ok else f", at most {self._within_s:g} s is right")
        )


class HealthMonitor:
    """``address`` is where others find the health and metrics of this service; empty without one."""

    def __init__(self, teller: ServiceKind, name: str) -> None:
        self.teller, self.name, self.address, self.scheme = teller, name, "", "http"
        self.meter = Meter(teller, name, METRICS)
        self.system: Callable[[], Awaitable[list[Reading]]] | None = None  # of an API: readings from the database
        self.draining = False
        self._loops: list[Pulse] = []
        self._needs: list[Pulse] = []
        self.meter.gauge(SERVICE_LIVE, lambda: float(self.live().ok))
        self.meter.gauge(SERVICE_READY, lambda: float(self.ready().ok))

    @property
    def detail(self) -> dict[str, str]:
        """Returns what a service tells the control plane of it."""
        if not self.address:
            return {}
        return {"metrics": self.address, **({"scheme": self.scheme} if self.scheme != "http" else {})}

    def loop(self, name: str, within_s: float = LIVE_WITHIN_S) -> Pulse:
        """Returns the pulse of a loop of this service, to be beaten in each turn. It counts as beaten now."""
        pulse = Pulse(name, within_s, "its last turn")
        pulse.beat()
        self._loops.append(pulse)
        return pulse

    def need(self, name: str, within_s: float, what: str) -> Pulse:
        """Returns the pulse of a need of the service, to be beaten whenever the needed thing was there."""
        pulse = Pulse(name, within_s, what)
        self._needs.append(pulse)
        return pulse

    def lease(self, within_s: float) -> Pulse:
        """Returns the pulse of its registration, to be beaten with each answered beat."""
        pulse = self.need("lease", within_s, "its last answered beat")
        self.meter.gauge(SERVICE_ANSWERED, lambda: pulse.age_s)
        return pulse

    def live(self) -> HealthVerdict:
        findings = [pulse.look() for pulse in self._loops]
        ok = all(finding.ok for finding in findings)
        return HealthVerdict("live" if ok else "hung", ok, findings)

    def ready(self) -> HealthVerdict:
        """Returns whether the service is ready. A service without needs has not started, so it is not."""
        findings = [pulse.look() for pulse in (*self._needs, *self._loops)]
        if self.draining:
            findings.insert(0, HealthCheck("draining", False, "it finishes what it has and takes nothing new"))
        ok = bool(self._needs) and all(finding.ok for finding in findings)
        return HealthVerdict("ready" if ok else "not ready", ok, findings)
