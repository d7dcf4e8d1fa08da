"""Prints the output of a pod's container piece by piece: each line once, while one reader lives.

Kubernetes returns a log from a given whole second on. Each line has its own time in nanoseconds, by which printed lines are
recognised. A new reader begins at the beginning.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from evenflow.errors import LookRefused
from evenflow.triggers import limits, web
from evenflow.triggers.kubernetes import Cluster, pods_path

_SECOND, _ZONE = 19, 29  # positions in a stamp such as 2026-03-01T12:00:00.123456789Z


@dataclass
class PodLog:
    """``last`` is the end of the log, for the reason of a failure. ``told`` counts printed lines with the newest stamp."""

    namespace: str
    pod: str
    container: str
    last: deque[str] = field(default_factory=lambda: deque(maxlen=limits.POD_LAST_LINES))
    _stamp: str = ""
    _told: int = 0
    _at_once: int = field(default_factory=lambda: limits.POD_LOG_AT_ONCE)

    async def tell(self, cluster: Cluster) -> bool:
        """Prints what is new, up to a limit, and returns whether there is more at once. Raises :class:`LookUnanswered`."""
        asked = self._at_once
        body = await read_log(cluster, self.namespace, self.pod, self.container, asked, timestamps=True, since=self._since)
        if body is None:
            return False
        is_full = len(body) >= asked
        whole = body[: body.rfind(b"\n") + 1] if is_full else body
        news = self._news(whole.decode(errors="replace").split("\n"))
        for line in news:
            print(line)
        self.last.extend(line[: limits.POD_LAST_CHARS] for line in news if line.strip())
        if is_full and not news:
            self._widen()
        else:
            self._at_once = limits.POD_LOG_AT_ONCE
        return is_full

    @property
    def _since(self) -> str | None:
        return self._stamp[:_SECOND] + self._stamp[_ZONE:] if self._stamp else None

    def _news(self, lines: list[str]) -> list[str]:
        """Returns the lines after the newest printed one."""
        news, skipped = [], 0
        for line in lines:
            stamp, _, text = line.partition(" ")
            if not stamp or stamp < self._stamp:
                continue
            if stamp == self._stamp and skipped < self._told:
                skipped += 1
                continue
            if stamp != self._stamp:
                self._stamp, self._told, skipped = stamp, 0, 0
            self._told, skipped = self._told + 1, skipped + 1
            news.append(text)
        return news

    def _widen(self) -> None:
        """Asks for more of a second that has more than was asked for. At the limit, the rest of that second is left out."""
        if self._at_once < limits.POD_LOG_MOST:
            self._at_once = limits.POD_LOG_MOST
        else:
            second, zone = self._stamp[:_SECOND], self._stamp[_ZONE:]
            print(f"-- lines of {second} are left out here: they are more than {limits.POD_LOG_MOST:,} bytes --")
            self._stamp, self._told, self._at_once = f"{second}.999999999{zone}", 0, limits.POD_LOG_AT_ONCE


async def read_log(
    cluster: Cluster, namespace: str, pod: str, container: str, at_most: int, *, timestamps: bool = False, since: str | None = None
) -> bytes | None:
    """Returns at most ``at_most`` bytes of the output, or None: it has not begun, or the pod is gone. Raises
    :class:`LookUnanswered`, and :class:`LookRefused` when it may not be read.
    """
    params = {"container": container, "limitBytes": str(at_most), **({"timestamps": "true"} if timestamps else {})}
    answer = await web.fetch(
        cluster.request(f"{pods_path(namespace, pod)}/log", params=params | ({"sinceTime": since} if since else {}))
    )
    if answer.status_code in (400, 404):
        return None
    if not answer.ok:
        raise LookRefused(
            f"{cluster.who} refused to show the log of pod {namespace}/{pod} with status {answer.status_code}. Let its user or "
            "service account get pods/log there, or say get_logs=False."
        )
    return answer.content
