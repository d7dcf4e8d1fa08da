"""How long each test takes: kept for who looks for slow ones, and bounded in `make test`.

What counts is time on a quiet machine: wall time, without that in which something here waited for a processor (the kernel tells it
in ``/proc/pressure/cpu``), but no less than the processor time that the test itself took. So a busy machine fails no test. What a
process makes once for all its tests, such as the database server, counts for none of them.

    python -m tests.durations [N]       the slowest N tests (30) of the last runs of `make test` and `make test-system`
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

KEPT = Path(__file__).resolve().parents[1] / "build" / "durations"
PRESSURE = Path("/proc/pressure/cpu")
SHOWN = 30

MACHINES = 5  # times as slow a machine may be before a test that is long there fails the run: no test fails for its machine

OPTION_KEEP = "--keep-durations"
OPTION_LIMIT = "--longest"


@dataclass(frozen=True, slots=True)
class Moment:
    wall: float
    processor: float  # of this process and of those that it has waited for
    waited: float  # the time in which something on this machine waited for a processor

    @classmethod
    def now(cls) -> Moment:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return cls(time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used), pressure(PRESSURE))


def pressure(told: Path) -> float:
    """Seconds since the start of the machine in which something waited for a processor; 0 where the kernel does not tell."""
    try:
        first = told.read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(first.rpartition("total=")[2]) / 1e6


def quiet_s(began: Moment, ended: Moment) -> float:
    """What lay between two moments, as it would have been had nobody else been there."""
    return max(ended.wall - began.wall - (ended.waited - began.waited), ended.processor - began.processor)


class Durations:
    """A plugin: each process measures its tests, and the one that began the run keeps them and says which are too long."""

    def __init__(self, config: pytest.Config) -> None:
        self._keep: str | None = config.getoption(OPTION_KEEP)
        self._longest: float = config.getoption(OPTION_LIMIT)
        self._here = not hasattr(config, "workerinput")
        self._shared = 0.0  # of the present phase, what is made for later tests, too
        self._taken: dict[str, float] = {}

    # -- where the tests run ----------------------------------------------------------------------------------------------

    @contextmanager
    def _measured(self, item: pytest.Item) -> Iterator[None]:
        self._shared, began = 0.0, Moment.now()
        try:
            yield
        finally:
            item.user_properties.append(("quiet_s", max(0.0, quiet_s(began, Moment.now()) - self._shared)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        with self._measured(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        with self._measured(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        began = Moment.now()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._shared += quiet_s(began, Moment.now())

    # -- where the run began ----------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._here and report.when == "teardown":
            self._taken[report.nodeid] = sum(seconds for name, seconds in report.user_properties if name == "quiet_s")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._here:
            return
        if self._keep is not None:
            KEPT.mkdir(parents=True, exist_ok=True)
            taken = {test: round(seconds, 3) for test, seconds in slowest(self._taken)}
            (KEPT / f"{self._keep}.json").write_text(json.dumps(taken, indent=0))
        if self._too_long(MACHINES) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for test, seconds in self._too_long():
            terminalreporter.write_line(
                f"TOO LONG {test}: {seconds:.1f} s of at most {self._longest:g} s. Make it quicker, or mark it `system`; above "
                f"{MACHINES * self._longest:g} s the run fails.",
                red=True,
            )

    def _too_long(self, times: int = 1) -> list[tuple[str, float]]:
        return [(test, seconds) for test, seconds in slowest(self._taken) if seconds > times * self._longest]


def slowest(taken: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(taken.items(), key=lambda each: -each[1])


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(OPTION_KEEP, metavar="NAME", help=f"keep how long each test took, in {KEPT}/NAME.json")
    parser.addoption(
        OPTION_LIMIT,
        metavar="SECONDS",
        type=float,
        default=float("inf"),
        help=f"tests that take longer are named; {MACHINES} times as long fails the run",
    )


def main(shown: int = SHOWN) -> None:
    taken: dict[str, float] = {}
    for file in sorted(KEPT.glob("*.json")):
        kept = json.loads(file.read_text())
        print(f"{file.stem}: {len(kept):,} tests, {sum(kept.values()):,.0f} s")
        taken |= kept
    print(f"The slowest {shown}:")
    for test, seconds in slowest(taken)[:shown]:
        print(f"{seconds:7.2f} s  {test}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
