"""One try in a run in memory: the task's own code, in this process, with XComs as the JSON that production stores."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenflow.core.callbacks import Callback
from evenflow.core.ending import Ending
from evenflow.core.model import TaskSpec
from evenflow.core.states import RunState, TaskState
from evenflow.sdk import xcom
from evenflow.sdk.dag import DAG
from evenflow.sdk.local.answers import answer_alone
from evenflow.sdk.local.callbacks import Called, TestCallbacks
from evenflow.sdk.local.flow import LocalInstance
from evenflow.sdk.local.outcome import StoredXComs, pulled
from evenflow.sdk.trying.runner import Channel, TryContext, run_try
from evenflow.sdk.xcomarg import RETURN_VALUE


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a try, and how long it took on the clock of the run."""

    result: Ending
    took_s: float = 0.0
    keeps_slot: bool = False  # of a rescheduled one


class Executes(Protocol):
    """Runs a task, or its stand-in."""

    def __call__(self, dag: DAG, context: TryContext, channel: Channel) -> Tried: ...


def run_for_real(dag: DAG, context: TryContext, channel: Channel) -> Tried:
    return Tried(run_try(dag, context, channel))


@dataclass(slots=True)
class MemoryChannel:
    """``waited_s`` is how long a sensor has waited before this look."""

    xcoms: StoredXComs
    task_id: str
    map_index: int
    waited_s: float = 0.0
    kept: dict[tuple[str, int, str], dict[str, Any]] = field(default_factory=dict)  # answers of wire.questions.Once

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        if run_id is not None:  # there is no other run
            return False, None
        return pulled(self.xcoms, task_id, key, map_index)

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[self.task_id, key, self.map_index] = xcom.to_json(value, f"The XCom {key!r} of task {self.task_id!r}")

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        print(f"{label}: {done} of {total}")

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        match question:
            case "prior_run":
                return {"run_id": None}
            case "element":
                found = sorted(at[2] for at in self.xcoms if at[:2] == (arguments["task_id"], arguments["key"]))
                index = arguments["index"]
                return {"length": len(found), "map_index": found[index] if index < len(found) else None}
            case "waited":
                return {"waited_s": self.waited_s}
            case "once":
                return self._kept(arguments["name"])
            case "set_once":
                answer = self._kept(arguments["name"])
                answer["kept"] = answer["kept"] or json.loads(json.dumps(arguments["kept"]))
                return answer
            case "forget_once":
                self.kept.pop((self.task_id, self.map_index, arguments["name"]), None)
                return {}
            case _:
                return answer_alone(question, arguments)

    def _kept(self, name: str) -> dict[str, Any]:
        from uuid import uuid4

        return self.kept.setdefault((self.task_id, self.map_index, name), {"key": str(uuid4()), "kept": None})


class TestTries:
    """The tries of one run and their callbacks; without ``calls_back`` these are only noted."""

    def __init__(self, dag: DAG, base: TryContext, execute: Executes, *, print_logs: bool, calls_back: bool) -> None:
        self.xcoms: StoredXComs = {}
        self._kept: dict[tuple[str, int, str], dict[str, Any]] = {}
        self._begun: set[tuple[str, int]] = set()
        self._dag, self._base, self._execute, self._print_logs = dag, base, execute, print_logs
        self._callbacks = TestCallbacks(dag, self.say, self.channel_of, executes=calls_back)

    @property
    def called(self) -> list[Called]:
        """What was called back, or would have been, in order."""
        return self._callbacks.called

    def channel_of(self, task_id: str, map_index: int, waited_s: float = 0.0) -> MemoryChannel:
        return MemoryChannel(self.xcoms, task_id, map_index, waited_s, self._kept)

    def run(self, task: TaskSpec, instance: LocalInstance, waited_s: float, resumed: dict[str, Any] | None = None) -> Tried:
        """Runs a try. Raises KeyboardInterrupt, so that Ctrl-C ends the run."""
        if resumed is None and (task.task_id, instance.map_index) in self._begun:
            for at in [at for at in self.xcoms if at[0] == task.task_id and at[2] == instance.map_index]:
                del self.xcoms[at]
        self._begun.add((task.task_id, instance.map_index))
        channel = self.channel_of(task.task_id, instance.map_index, waited_s)
        context = dataclasses.replace(self._context_of(task, instance), resumed=resumed)
        with self.quiet():
            tried = self._execute(self._dag, context, channel)
        if tried.result.error_types[:1] == ["KeyboardInterrupt"]:
            raise KeyboardInterrupt
        if tried.result.result is not None:
            self.xcoms[task.task_id, RETURN_VALUE, instance.map_index] = tried.result.result
        return tried

    def call_back(self, task: TaskSpec, instance: LocalInstance, event: Callback, state: TaskState) -> None:
        with self.quiet():
            self._callbacks.of_try(self._context_of(task, instance), event, state, instance.reason)

    def call_back_run(self, state: RunState) -> None:
        with self.quiet():
            self._callbacks.of_run(self._base, state)

    def say(self, line: str) -> None:
        if self._print_logs:
            print(line, flush=True)

    def _context_of(self, task: TaskSpec, instance: LocalInstance) -> TryContext:
        return dataclasses.replace(
            self._base,
            task_id=task.task_id,
            map_index=instance.map_index,
            map_length=instance.map_length,
            try_number=instance.try_number,
            max_tries=task.retries + 1,
        )

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Inside, user code's output is dropped, unless logs are wanted."""
        with contextlib.ExitStack() as stack:
            if not self._print_logs:
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            yield
