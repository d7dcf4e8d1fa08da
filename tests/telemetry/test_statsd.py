"""StatsD over real UDP: what changed, in datagrams of bounded size, in both styles, whoever listens (R-HA4)."""

from __future__ import annotations

import asyncio
import socket

import pytest

from evenflow.core import metrics
from evenflow.core.meter import Meter, system_readings
from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.statsd import DATAGRAM_BYTES, Sender, StatsD, Style, parse_address


def lines(statsd: StatsD, meter: Meter) -> list[str]:
    return [line for datagram in statsd.datagrams(meter.read()) for line in datagram.decode().split("\n")]


def meter(name: str = "s1") -> Meter:
    return Meter(ServiceKind.SCHEDULER, name, [metrics.TURNS, metrics.TURN_SECONDS])


def test_counters_are_sent_as_what_came_on_top() -> None:
    told, statsd = meter(), StatsD("evenflow", "plain")
    told.count(metrics.TURNS, 5)
    assert "evenflow.scheduler_turns.scheduler.s1:5|c" in lines(statsd, told)
    told.count(metrics.TURNS, 2)
    assert "evenflow.scheduler_turns.scheduler.s1:2|c" in lines(statsd, told)
    assert "evenflow.scheduler_turns.scheduler.s1:0|c" in lines(statsd, told)


def test_histograms_are_sent_as_counts_and_quantiles_of_what_came_on_top() -> None:
    told, statsd = meter(), StatsD("", "datadog")
    told.observe(metrics.TURN_SECONDS, 0.002, count=98)
    told.observe(metrics.TURN_SECONDS, 0.2, count=2)
    tags = "#kind:scheduler,name:s1"
    sent = lines(statsd, told)
    assert f"scheduler_turn_seconds.count:100|c|{tags}" in sent
    assert f"scheduler_turn_seconds.sum:0.596|c|{tags}" in sent
    assert f"scheduler_turn_seconds.p50:0.0025|g|{tags}" in sent
    assert f"scheduler_turn_seconds.p99:0.25|g|{tags}" in sent
    assert not any("p99" in line for line in lines(statsd, told)), "nothing came on top"


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("plain", "evenflow.service_healthy.worker.a_b_c:1|g"),
        ("datadog", "evenflow.service_healthy:1|g|#kind:worker,name:a.b_c"),
    ],
)
def test_names_cannot_break_the_format(style: Style, line: str) -> None:
    readings = system_readings(metrics.SERVICE_HEALTHY, [(("worker", "a.b|:#c"), 1)])
    assert [d.decode() for d in StatsD("evenflow", style).datagrams(readings)] == [line]


def test_datagrams_fit_into_a_frame_and_nothing_is_lost() -> None:
    readings = system_readings(metrics.SERVICE_HEALTHY, [(("worker", f"worker-{n}"), 1) for n in range(500)])
    datagrams = list(StatsD("evenflow", "datadog").datagrams(readings))
    assert max(map(len, datagrams)) <= DATAGRAM_BYTES
    assert sum(datagram.count(b"|g") for datagram in datagrams) == 500


@pytest.mark.parametrize(
    ("address", "parsed"),
    [("h", ("h", 8125)), ("statsd.internal:9125", ("statsd.internal", 9125)), ("[::1]:1", ("::1", 1))],
)
def test_addresses(address: str, parsed: tuple[str, int]) -> None:
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["", ":8125", "h:0", "h:99999", "a b:1", "http://127.0.0.1:8125"])
def test_an_address_that_makes_no_sense_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="EVENFLOW_STATSD_ADDRESS"):
        parse_address(address)


async def test_a_sender_sends_its_own_and_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.telemetry.statsd.EVERY_S", 0.01)
    health = HealthMonitor(ServiceKind.API, "a1")

    async def system() -> list[object]:
        return system_readings(metrics.SERVICE_HEALTHY, [(("worker", "w1"), 0)])

    health.system = system
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20)
        address = server.getsockname()
        sending = Sender(health, StatsD("evenflow", "plain"), address, asyncio.get_running_loop())
        sending.start()
        heard = ""
        while "evenflow.service_healthy.worker.w1:0|g" not in heard or "evenflow.service_ready.api.a1:0|g" not in heard:
            heard += (await asyncio.to_thread(server.recv, 65_536)).decode() + "\n"
        await asyncio.to_thread(sending.stop)


async def test_a_server_that_is_away_costs_a_warning_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    health = HealthMonitor(ServiceKind.WORKER, "w")
    sending = Sender(health, StatsD("evenflow", "plain"), ("no-such-host.invalid", 8125), asyncio.get_running_loop())
    sending._send(health.meter.read())
    sending._send(health.meter.read())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no-such-host.invalid:8125" in caplog.text
