"""The runs of a scenario: triggered over REST as people do, until the control plane says yes."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

from evenflow.core.service import ServiceKind
from tests.chaos.cluster import DAGS, LATER, Cluster

TRIGGERED = ("chain", "fan", "mapped", "branching", "flaky", "doomed", "long", "waiting", "strays")
NIGHTS = 6  # of each scheduled DAG, from its start to its end date
FAILS = frozenset({"doomed"})

Asked = tuple[str, str, dict[str, Any]]  # DAG, run, params


class Load:
    def __init__(self, cluster: Cluster, *, runs: int = NIGHTS) -> None:
        self._cluster = cluster
        self.runs = runs  # that there shall be
        self.cleared: set[tuple[str, str]] = set()  # runs of which an operator had tasks begin anew
        self._waves = 0
        self._asked: list[Asked] = []
        self._unanswered: list[Asked] = []

    def wave(self, dags: Iterable[str] = TRIGGERED) -> None:
        """One more run of each DAG; those that nobody accepts now are asked for again by :meth:`insist`."""
        asked: list[Asked] = [(dag, f"wave-{self._waves}", {}) for dag in dags]
        self._ask(asked)
        self.runs += len(asked)
        self._waves += 1
        self.insist()

    def herd(self, size: int, *, seconds: float) -> str:
        """A run of so many tasks that wait for about so long, all at once; its name."""
        run = f"herd-{self._waves}"
        self._ask([("herd", run, {"size": size, "seconds": seconds})])
        self.runs += 1
        self._waves += 1
        self.insist()
        return run

    def schedule(self) -> None:
        """More runs that are due at once."""
        shutil.copy(DAGS / LATER, self._cluster.home / "dags" / LATER)
        self.runs += NIGHTS

    def ask_again(self, since: int) -> None:
        """For what was asked for after the first so many, since the control plane may have forgotten some that it has accepted."""
        late = self._asked[since:]
        self._unanswered = [*(asked for asked in self._unanswered if asked not in late), *late]

    @property
    def asked(self) -> int:
        """How often somebody has asked for a run."""
        return len(self._asked)

    def _ask(self, asked: list[Asked]) -> None:
        self._asked += asked
        self._unanswered += asked

    def insist(self) -> bool:
        """Whether all are accepted."""
        self._unanswered = [asked for asked in self._unanswered if not self._trigger(*asked)]
        return not self._unanswered

    def clear_running(self, dag: str, run: str) -> None:
        """Whatever runs of it is killed and begins anew."""
        self.cleared.add((dag, run))
        while not self._post(f"dags/{dag}/runs/{run}/clear", {"only": "running"}):
            self._cluster.wait(0.1)

    def _trigger(self, dag: str, run: str, params: dict[str, Any]) -> bool:
        return self._post(f"dags/{dag}/runs", {"run_id": run, "params": params})

    def _post(self, path: str, body: dict[str, Any]) -> bool:
        """Whether somebody accepted it."""
        for member in self._cluster.of(ServiceKind.API):
            request = urllib.request.Request(
                f"http://127.0.0.1:{member.port}/api/v1/{path}",
                data=json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {self._cluster.tokens['operator']}", "Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=2):
                    return True
            except urllib.error.HTTPError as error:
                if error.code == 409:  # a request before was heard, its answer was not
                    return True
                if error.code < 500:
                    raise AssertionError(error.read().decode()) from error
            except OSError:
                continue
        return False
