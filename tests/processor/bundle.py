"""A folder of DAG files, and what the database knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg

from tests.waiting import DEADLINE_S, until

T = TypeVar("T")


class Known(NamedTuple):
    """A row of ``dag_file``."""

    parsed: bool  # as it is now
    error: str | None
    error_line: int | None


def a_dag(dag_id: str, *tasks: str, head: str = "") -> str:
    body = "".join(f"    @task\n    def {name}():\n        return 1\n    {name}()\n" for name in tasks or ("t",))
    return f"{head}\nfrom evenflow import DAG, task\nwith DAG({dag_id!r}):\n{body}"


@dataclass
class Bundle:
    db: psycopg.Connection[Any]
    folder: Path

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def known(self, file: str) -> Known | None:
        query = "select parsed is not distinct from fingerprint, error, error_line from dag_file where file = %s"
        row = self.db.execute(query, [file]).fetchone()
        return None if row is None else Known(*row)

    async def parsed(self, file: str, *, within_s: float = DEADLINE_S) -> Known:
        """The file's row, once what it has now is parsed."""
        what = f"the parse of {file}"
        return await until(lambda: (known := self.known(file)) and known.parsed and known, what, within_s=within_s)

    def tasks(self, dag_id: str) -> list[str]:
        """Of the newest version."""
        query = "select t.task_id from dag d join task t using (version_key) where d.dag_id = %s order by t.task_index"
        return [row[0] for row in self.db.execute(query, [dag_id]).fetchall()]

    def versions(self, dag_id: str) -> int:
        return int(self.one("select count(*) from dag_version where dag_id = %s", dag_id))

    def one(self, query: str, *args: Any) -> Any:
        row = self.db.execute(query, args).fetchone()
        return None if row is None else row[0]
