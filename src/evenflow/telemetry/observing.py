"""Reports an observation to the log, and to the meter of the service. Only this module of Evenflow writes to its log."""

from __future__ import annotations

import logging

from evenflow.core.meter import Meter
from evenflow.core.observation import Observation, error, info, warning


def observe(seen: Observation, meter: Meter | None = None) -> None:
    """A counted observation needs the ``meter``. Any thread may call this."""
    if seen.fact.counts:
        assert meter is not None, f"{seen.fact.name} is counted"
        seen.count(meter)
    if seen.fact.level:
        logging.getLogger(seen.fact.observer).log(seen.fact.level, seen, exc_info=seen.trace)


# -- observations of telemetry itself


@error("a question about health or metrics was not answered")
def question_not_answered(trace: BaseException) -> None: ...
@error("metrics were not sent to StatsD; the next ones may be")
def metrics_not_sent(trace: BaseException) -> None: ...
@warning("no metrics of the system for StatsD")
def system_not_sent(reason: str) -> None: ...
@warning("StatsD is away")
def statsd_away(address: str, reason: str) -> None: ...
@info("metrics go to StatsD again")
def statsd_back(address: str) -> None: ...
