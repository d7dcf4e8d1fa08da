"""Schedulers, API servers, processors, workers, triggerers as real processes on one PostgreSQL, each behind a wire of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import conninfo

from evenflow.api.token_making import LASTS_S
from evenflow.api.vault import Vault
from evenflow.core.service import ServiceKind
from evenflow.killpoints import KillPoint
from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.runtime.settings import Settings
from evenflow.runtime.tokens import token_maker
from tests.chaos.meddler import Meddler
from tests.chaos.nursery import Started
from tests.chaos.server import ChaosServer
from tests.chaos.wires import Mode, Upstream, Wire, Wires
from tests.ports import lasting_port
from tests.standby import Standby

DAGS = Path(__file__).with_name("dags")
LATER = "later.py"  # comes when a scenario asks for it
DAGS_IN_IT = 11
RESTART_AFTER_S = 0.3  # what a supervisor takes to notice and start again
SLOTS = 6
SERVICES = (
    ServiceKind.API,
    ServiceKind.SCHEDULER,
    ServiceKind.PROCESSOR,
    ServiceKind.WORKER,
    ServiceKind.TRIGGERER,
)  # the others in tests/autoscaler, tests/pods
POINTS = frozenset(point for point in KillPoint if point.partition("-")[0] in SERVICES)  # that these pass
ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns")  # of the hosts, in turn: R-HA12, R-HA17


class NotInTime(AssertionError):
    """What a scenario waited for did not happen."""


@dataclass(frozen=True, slots=True)
class Death:
    """The point at which a service shall die, when it passes it for the ``nth`` time, counted once there is a file ``armed``."""

    point: KillPoint
    nth: int
    signal: int = signal.SIGKILL
    armed: Path | None = None


@dataclass(eq=False)
class Member:
    """A service that is to run: when its process ends, it gets another one."""

    kind: ServiceKind
    name: str
    wire: Wire
    port: int = 0
    wanted: bool = True
    spared: bool = False  # nothing is done to it by itself, so that what grows with time shows
    process: Started | None = None
    ended_at: float | None = None
    death: Death | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def runs(self) -> bool:
        """As far as was heard; also for other threads."""
        return self.process is not None and self.process.returncode is None

    def tree(self) -> list[psutil.Process]:
        """Its process and all below it."""
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self.pid)
            return [own, *own.children(recursive=True)]
        return []


class Cluster:
    """``home`` is a fresh directory. ``dags`` is the folder of DAG files, a copy of which it runs."""

    def __init__(
        self, chaos: ChaosServer, home: Path, wires: Wires, *, dags: Path = DAGS, dags_in_it: int = DAGS_IN_IT, slots: int = SLOTS
    ) -> None:
        self._dags, self._dags_in_it, self._slots = dags, dags_in_it, slots
        self._chaos, self.home = chaos, home
        self.clock, self.hosts_clock = chaos.clock, chaos.hosts_clock
        self._nursery = chaos.nursery
        self._database = new_database(chaos)
        self._wires = wires
        self.members: list[Member] = []
        self.exits: list[tuple[str, int]] = []  # of those that were told to end
        self.ledger = home / "ledger"
        (self.ledger / "locks").mkdir(parents=True)
        self.passed = home / "passed"
        self.meddler: Meddler | None = None

    # -- PostgreSQL

    @property
    def server(self) -> EmbeddedPostgres:
        """The primary."""
        return self._chaos.postgres

    @property
    def direct_url(self) -> str:
        return self.server.url(self._database)

    def follow(self) -> Standby:
        """A standby of the primary."""
        return self._chaos.follow()

    def took_over(self, standby: Standby) -> None:
        """From now on all wires lead to it, as a name or an address that moves does."""
        self._chaos.postgres = standby.server

    def _way_to_database(self) -> list[Upstream]:
        given = conninfo.conninfo_to_dict(self.direct_url)
        return [Path(str(given["host"])) / f".s.PGSQL.{given['port']}"]

    # -- who runs

    def of(self, kind: ServiceKind) -> list[Member]:
        return [member for member in self.members if member.kind is kind and member.wanted]

    def add(self, kind: ServiceKind, death: Death | None = None) -> Member:
        """Another service of this kind, started."""
        number = 1 + sum(member.kind is kind for member in self.members)
        wire = self._wires.lay(self._way_to_api if kind.runs_user_code else self._way_to_database)
        member = Member(kind, f"{kind}-{number}", wire, port=lasting_port() if kind is ServiceKind.API else 0, death=death)
        self.members.append(member)
        self._start(member)
        return member

    def remove(self, member: Member) -> None:
        """Told to drain and stop, for good."""
        member.wanted = False
        if member.runs():
            assert member.process is not None
            member.process.send_signal(signal.SIGTERM)

    def tend(self) -> None:
        """Start again what has ended. Whoever waits calls it all the time."""
        self._nursery.listen(0.0)
        now = time.monotonic()
        for member in self.members:
            if not member.wanted or member.runs():
                continue
            if member.ended_at is None:
                member.ended_at = now
            elif now - member.ended_at >= RESTART_AFTER_S:
                member.death = None
                self._start(member)

    def api_ports(self) -> list[int]:
        return [member.port for member in self.of(ServiceKind.API) if member.runs()]

    def _way_to_api(self) -> list[Upstream]:
        return [self.meddler.port] if self.meddler else [*self.api_ports()]

    def meddle(self, rng: random.Random) -> Meddler:
        """From now on workers and processors reach the API through a proxy that meddles."""
        meddler = self.meddler = Meddler(self._wires, self.api_ports, rng)
        self._reconnect()
        return meddler

    def meddle_no_more(self) -> None:
        meddler, self.meddler = self.meddler, None
        self._reconnect()
        if meddler is not None:
            meddler.close()

    def _reconnect(self) -> None:
        for member in self.members:
            if member.kind.runs_user_code:
                member.wire.set(Mode.CUT)
                member.wire.set(Mode.OPEN)

    def _start(self, member: Member) -> None:
        database = conninfo.make_conninfo(self.direct_url, host="127.0.0.1", port=member.wire.port)
        settings = Settings(
            home=self.home if not member.kind.runs_user_code else self.home / member.name,
            dags=self.home / "dags",
            bundle="chaos",
            slots=self._slots,
            log_level="info",
            log_format="console",
            drain_timeout=8.0,
            xcom_url=(self.home / "xcom").as_uri(),
        )
        service = settings.for_service(
            name=member.name,
            database_url=database,
            api_url=f"http://127.0.0.1:{member.wire.port}",
            api_port=member.port,
            token=self.tokens.get(member.kind, ""),
        )
        death = member.death
        die = death and {
            "point": death.point,
            "nth": death.nth,
            "signal": death.signal,
            "armed": None if death.armed is None else str(death.armed),
        }
        log = self.home / f"{member.name}.log"
        with log.open("a") as file:
            file.write(f"--- {time.monotonic():.3f} start, to die: {die}\n")
        zone = ZONES[self.members.index(member) % len(ZONES)]
        environment = {**service.environment(member.kind, os.environ), "CHAOS_LEDGER": str(self.ledger), "TZ": zone}
        member.process = self._nursery.start(member.kind, environment, folder=self.home, log=log, passed=self.passed, die=die)
        member.ended_at = None

    # -- the whole

    async def _mint(self) -> dict[str, str]:
        """As on hosts with servers: no ``evenflow up`` is there that would keep what it has on a lease."""
        async with token_maker(self.direct_url, Vault(self.home / SECRETS_FILE)) as maker:
            return {kind: (await maker.make(kind, name="chaos", by="chaos")).token for kind in LASTS_S}

    def start(self, sizes: dict[ServiceKind, int]) -> None:
        """Returns when all have registered and the DAGs are known."""
        shutil.copytree(self._dags, self.home / "dags", ignore=shutil.ignore_patterns("__pycache__", LATER))
        self.tokens = asyncio.run(self._mint())
        for kind in SERVICES:
            for _ in range(sizes.get(kind, 0)):
                self.add(kind)
        here = "select count(*) from service where state = 'active'"
        self.until(lambda: self.one(here) >= sum(sizes.values()), "all services", within_s=60)
        self.until(lambda: self.one("select count(*) from dag where bundle = 'chaos'") == self._dags_in_it, "the DAGs", within_s=30)

    def until(self, condition: Callable[[], Any], what: str, *, within_s: float) -> Any:
        """The first true answer of ``condition``; a database that is away counts as none."""
        deadline = time.monotonic() + within_s
        while True:
            self.tend()
            with contextlib.suppress(psycopg.OperationalError):
                if answer := condition():
                    return answer
            if time.monotonic() > deadline:
                raise NotInTime(f"{what}: not within {within_s:g} s")
            time.sleep(0.02)

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        with contextlib.suppress(NotInTime):
            self.until(lambda: False, "", within_s=seconds)

    @contextlib.contextmanager
    def database(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that no fault touches but those of the server itself."""
        with psycopg.connect(self.direct_url, autocommit=True, connect_timeout=2, application_name="chaos") as conn:
            yield conn

    def one(self, query: str, *args: Any) -> Any:
        with self.database() as conn:
            row = conn.execute(query, args).fetchone()
        return None if row is None else row[0]

    def all(self, query: str, *args: Any) -> list[Any]:
        with self.database() as conn:
            return conn.execute(query, args).fetchall()

    def end(self) -> list[str]:
        """Tell all to end, in the order in which they need each other; what is wrong about how they did."""
        wrong = []
        for kinds in (
            (ServiceKind.PROCESSOR, ServiceKind.WORKER, ServiceKind.TRIGGERER),
            (ServiceKind.SCHEDULER,),
            (ServiceKind.API,),
        ):
            members = [member for member in self.members if member.kind in kinds]
            for member in members:
                member.wire.set(Mode.OPEN)
                self.remove(member)
            for member in members:
                assert member.process is not None
                if (code := member.process.wait(20)) != 0:
                    member.process.send_signal(signal.SIGABRT)  # its log will say where it is
                    wrong.append(f"{member.name} was told to end: {'it did not' if code is None else f'exit code {code}'}")
        return wrong + [f"left behind: {process.pid} {' '.join(process.cmdline())[:100]}" for process in self.leftovers()]

    def leftovers(self) -> list[psutil.Process]:
        """Processes of ours that outlive their service."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("CHAOS_LEDGER") == str(self.ledger):
                    found.append(process)
        return found

    def kill(self) -> None:
        """Leave nothing, whatever has happened."""
        for process in self.leftovers():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for member in self.members:
            if member.process is not None:
                member.process.send_signal(signal.SIGKILL)
                member.process.wait(10)
            member.wire.close()


def new_database(chaos: ChaosServer) -> str:
    """The name of a fresh one with the whole schema."""
    name = f"chaos_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(chaos.postgres.url("postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {chaos.template} strategy file_copy")
    return name
