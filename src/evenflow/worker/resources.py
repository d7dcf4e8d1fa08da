"""The limits of tries on this worker: a control group for each try with ``resources(...)``.

The name of a group contains its worker's process and the try, so that the next worker in the same cgroup ends what a killed worker
has left. Processes that a successful try leaves on purpose move to a group for such ones, with the same limits: they are not
killed, and the group is removed when they are gone.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from evenflow.core.meter import Metric
from evenflow.core.metrics import WORKER_OUT_OF_MEMORY, WORKER_OUT_OF_PROCESSES
from evenflow.core.model import Enforcement, Resources
from evenflow.core.quantities import memory
from evenflow.forking.census import look_at
from evenflow.telemetry.observing import observe
from evenflow.worker import observations as seen
from evenflow.worker.cgroups import CannotLimit, Tree, end_group, find_tree, processes, remove_group
from evenflow.worker.limits import TRY_PROCESSES

OF_TRY, LEFT = "evenflow-try", "evenflow-left"
_NAMED = re.compile(rf"{OF_TRY}-(\d{{1,9}})-(\d{{1,19}})-\d+", re.ASCII)  # the worker's process, when it was born, and the try


class TryGroup:
    """The control group of one try, with a folder in each tree. Call ``admit`` with the pid of its process before that does
    anything. ``full`` is called once when it wants more processes than it may have, ``count`` when it was at a limit, and ``gone``
    when it is closed.
    """

    def __init__(
        self,
        tree: Tree,
        name: str,
        epoch: int,
        resources: Resources,
        full: Callable[[str], None],
        count: Callable[[Metric], None],
        gone: Callable[[TryGroup, list[Path]], None],
    ) -> None:
        self._tree, self._epoch, self._resources = tree, epoch, resources
        self._full, self._count, self._gone = full, count, gone
        self._is_told = False
        self._folders = tree.folders(name, resources)
        for folder in self._folders:
            tree.make(folder, resources)

    def admit(self, pid: int) -> None:
        """Moves the process into the group. Raises :class:`OSError`; a process that has ended is not an error."""
        for folder in self._folders:
            with contextlib.suppress(ProcessLookupError):
                (folder / "cgroup.procs").write_text(f"{pid}")

    def look(self) -> None:
        """What the kernel refuses a process may try again for ever, so its worker ends it."""
        if not self._is_told and any(map(self._tree.refusals, self._folders)):
            self._is_told = True
            self._full(self._out_of_processes)

    def evidence(self) -> str | None:
        """Returns what the kernel did because the group was at a limit, if anything, and counts it. Call it once, at the end."""
        limit = self._resources.memory
        if limit is not None and any(map(self._tree.kills, self._folders)):
            peak = max((peak for folder in self._folders if (peak := self._tree.peak(folder)) is not None), default=limit)
            self._count(WORKER_OUT_OF_MEMORY)
            return f"out of memory: the kernel killed what used {memory(peak, of=limit)}: raise resources(memory=...)"
        if any(map(self._tree.refusals, self._folders)):
            self._count(WORKER_OUT_OF_PROCESSES)
            return self._out_of_processes
        return None

    @property
    def _out_of_processes(self) -> str:
        most = self._tree.processes
        refused = f"the kernel refused it more than {most:,}, threads included"
        return f"out of processes: {refused}: raise EVENFLOW_TRY_PROCESSES of its worker"

    def close(self, *, leaves: bool) -> None:
        """Ends the group. ``leaves``: the processes in it may stay."""
        if leaves and any(pid for folder in self._folders for pid in processes(folder)):
            for folder in self._folders:
                left = folder.with_name(f"{LEFT}-{os.getpid()}-{self._epoch}")
                self._tree.make(left, self._resources)
                for pid in processes(folder):
                    with contextlib.suppress(ProcessLookupError):
                        (left / "cgroup.procs").write_text(f"{pid}")
        self._gone(self, [folder for folder in self._folders if not end_group(folder)])


class Limits:
    """The limits of one worker's tries, of which each has at most ``processes``; ``count`` counts those that were at a limit.
    ``mode`` decides about a try that cannot have its limits: it is refused, runs with a warning, or is limited by whatever has
    started this worker.
    """

    def __init__(self, mode: Enforcement, count: Callable[[Metric], None], processes: int = TRY_PROCESSES) -> None:
        self._mode, self._count = mode, count
        self._groups: set[TryGroup] = set()
        self._ending: list[Path] = []  # groups whose last processes are ending
        self._tree: Tree | None = None
        self._why_not = ""
        if mode != "off":
            try:
                tree = find_tree(processes)
                self._ending = _clear(tree)
                self._tree = tree
                if "pids" not in tree.bases:
                    observe(seen.processes_not_limited())
            except (CannotLimit, OSError) as error:
                self._why_not = str(error)
                if mode == "enforce":
                    observe(seen.limits_not_kept(self._why_not))

    def make(
        self, epoch: int, resources: Resources | None, note: Callable[[str], None], full: Callable[[str], None]
    ) -> TryGroup | None:
        """Returns the group of the try, or None if it has no limits, or runs without. ``note`` writes into its log, ``full`` is
        called when it wants more processes than it may have. Raises :class:`CannotLimit`.
        """
        if resources is None or self._mode == "off":
            return None
        try:
            if self._tree is None:
                raise CannotLimit(self._why_not)
            group = TryGroup(self._tree, _name(epoch), epoch, resources, full, self._count, self._gone)
            self._groups.add(group)
            return group
        except (CannotLimit, OSError) as error:
            why = f"{resources} cannot be kept on this worker: {error}"
            if self._mode == "enforce":
                raise CannotLimit(f"{why}. By EVENFLOW_RESOURCES=warn it would run here without these limits") from error
            note(f"{why}. It runs without these limits (EVENFLOW_RESOURCES=warn)")
            observe(seen.not_limited(why))
            return None

    def look(self) -> None:
        """Ends tries that want too many processes, and removes ended groups. Call it every few seconds."""
        for group in [*self._groups]:
            group.look()
        self._ending = [folder for folder in self._ending if not end_group(folder)]

    def _gone(self, group: TryGroup, ending: list[Path]) -> None:
        self._groups.discard(group)
        self._ending += ending


def _name(epoch: int) -> str:
    me = os.getpid()
    process = look_at(me)
    return f"{OF_TRY}-{me}-{process.born if process else 0}-{epoch}"


def _clear(tree: Tree) -> list[Path]:
    """Ends what former workers have left there. Returns the groups in which something is still ending."""
    ending = []
    for base in set(tree.bases.values()):
        for folder in base.glob(f"{OF_TRY}-*"):
            if (named := _NAMED.fullmatch(folder.name)) is None:  # a task may make groups beside its own
                continue
            process = look_at(int(named[1]))
            if (process is None or process.born != int(named[2])) and not end_group(folder):
                ending.append(folder)
        for folder in base.glob(f"{LEFT}-*"):
            remove_group(folder)
    return ending
