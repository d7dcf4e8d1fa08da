"""What waits deferred from now on, what resumes, and what waits no longer."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.flow.state import InstanceKey
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import deferrals


@dataclass(slots=True)
class Deferrals:
    begun: list[deferrals.Deferral] = field(default_factory=list)
    resumes: list[deferrals.Resume] = field(default_factory=list)  # of tries that were deferred before
    doomed: list[deferrals.Resume] = field(default_factory=list)  # of those in ``begun`` that are to be cleaned up at once
    ended: list[InstanceKey] = field(default_factory=list)
    directly: list[float] = field(default_factory=list)  # of resumes straight to workers: seconds since their events

    @property
    def has_news(self) -> bool:
        """For triggerers."""
        return bool(self.begun or self.resumes or self.ended)

    def write_resumes(self, conn: Conn) -> None:
        if self.resumes:
            deferrals.resume_all(conn, self.resumes)
        if self.ended:
            deferrals.delete_all(conn, self.ended)

    def write(self, conn: Conn) -> None:
        if self.begun:
            deferrals.insert_all(conn, self.begun)
        if self.doomed:
            deferrals.resume_all(conn, self.doomed)
