"""Whether the kernel's out-of-memory killer was at work: the kernel counts its kills by group of processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KillCounter:
    path: Path
    whose: str  # for people

    def read(self) -> int | None:
        """Returns N of the line ``oom_kill N`` of the file."""
        try:
            text = self.path.read_text()
        except OSError:
            return None
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), None)


def kernel_counters() -> list[KillCounter]:
    """Returns counters, the narrowest first: this process's own cgroup, where the system has one, then the host."""
    counters = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            counters.append(KillCounter(Path(f"/sys/fs/cgroup{group}/memory.events"), "this worker's cgroup"))
        elif "memory" in controllers.split(","):
            counters.append(KillCounter(Path(f"/sys/fs/cgroup/memory{group}/memory.oom_control"), "this worker's cgroup"))
    counters.append(KillCounter(Path("/proc/vmstat"), "this host"))
    return [counter for counter in counters if counter.read() is not None]


class MemoryWatch:
    """Remembers the counts, so that a new kill is distinguished from earlier ones. Call :meth:`look` every few seconds."""

    def __init__(self, counters: Sequence[KillCounter]) -> None:
        self._counters = counters[:1]
        self._seen = {counter: counter.read() or 0 for counter in self._counters}

    def look(self) -> None:
        for counter in self._counters:
            self._seen[counter] = counter.read() or 0

    def evidence(self) -> str | None:
        """Returns what the kernel killed since the last look, if anything. The next call covers the time after this one."""
        for counter, before in self._seen.items():
            now = self._seen[counter] = counter.read() or 0
            if now > before:
                return f"the kernel's out-of-memory killer ended {now - before} process(es) of {counter.whose} just then"
        return None
