"""How long each test takes: kept for who looks for slow ones, and bounded in `make test`.

What counts is time on a quiet machine: wall time, without that in which something here waited for a processor (the kernel tells it
in ``/proc/pressure/cpu``), but no less than the processor time that the test itself took. What a process makes once for all its
tests, such as the database server, counts for none of them.

A test that has taken too long is run again, alone, when all others have ended; it is told of if it takes too long each time. On
a machine that is slower than the one that the limit is meant for, or whose processors others keep hot, it is given more time: as a
piece of work of known length takes more there. What takes three times what is allowed fails the run; less does not, as a disk or a
processor of a stranger may be slow in ways that nothing here can tell.

    python -m tests.durations [N]       the slowest N tests (30) of the last runs of `make test` and `make test-system`
"""

from __future__ import annotations

import json
import resource
import subprocess
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

FAILS_FROM = 3  # times what is allowed
AGAIN = 2  # times that what has taken too long is run once more
WORK, WORK_S = 200_000, 0.01  # additions, and the processor time that they take on the machine for which limits are meant
ALONE = "alone"

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


def slowness() -> float:
    """How many times as long as elsewhere work takes here; 1 at least."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        sum(number * number for number in range(WORK))
        taken.append(time.process_time() - began)
    return max(1.0, min(taken) / WORK_S)


class Durations:
    """A plugin: each process measures its tests, and the one that began the run keeps them and says which are too long."""

    def __init__(self, config: pytest.Config) -> None:
        self._keep: str | None = config.getoption(OPTION_KEEP)
        self._longest: float = config.getoption(OPTION_LIMIT)
        self._here = not hasattr(config, "workerinput")
        self._shared = 0.0  # of the present phase, what is made for later tests, too
        self._taken: dict[str, float] = {}
        self._too_long: dict[str, float] = {}
        self._allowed = self._longest

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
            keep(self._keep, self._taken)
        self._find_too_long(session.config)
        far_too_long = max(self._too_long.values(), default=0) > FAILS_FROM * self._allowed
        if far_too_long and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _find_too_long(self, config: pytest.Config) -> None:
        self._too_long = self._longer_than_allowed(self._taken)
        for _ in range(AGAIN):
            if self._too_long:
                alone = take_alone(list(self._too_long), config.rootpath)
                self._allowed = self._longest * slowness()
                self._too_long = self._longer_than_allowed({test: alone.get(test, s) for test, s in self._too_long.items()})

    def _longer_than_allowed(self, taken: dict[str, float]) -> dict[str, float]:
        return {test: seconds for test, seconds in slowest(taken) if seconds > self._allowed}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for test, seconds in self._too_long.items():
            terminalreporter.write_line(
                f"TOO LONG {test}: {seconds:.1f} s alone, of at most {self._allowed:.1f} s. Make it quicker, or mark it `system`.",
                red=True,
            )


def keep(name: str, taken: dict[str, float]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.json").write_text(json.dumps({test: round(seconds, 3) for test, seconds in slowest(taken)}, indent=0))


def take_alone(tests: list[str], root: Path) -> dict[str, float]:
    """How long these tests take, one after the other, when nothing else of this run goes on."""
    command = [sys.executable, "-m", "pytest", *tests, OPTION_KEEP, ALONE]
    subprocess.run(command, cwd=root, capture_output=True, check=False)
    kept = KEPT / f"{ALONE}.json"
    found: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    kept.unlink(missing_ok=True)
    return found


def slowest(taken: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(taken.items(), key=lambda each: -each[1])


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(OPTION_KEEP, metavar="NAME", help=f"keep how long each test took, in {KEPT}/NAME.json")
    parser.addoption(
        OPTION_LIMIT,
        metavar="SECONDS",
        type=float,
        default=float("inf"),
        help=f"a test that takes longer, also when it is run again alone, is told of; at {FAILS_FROM} times that it fails the run",
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
