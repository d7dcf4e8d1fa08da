"""DuckDB, which makes the marts in this process. The statements keep to what the SQL of Spark knows; DuckDB is taught here the few
functions that it has under other names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import BadValue
from evenflow.insights.tables import BRONZE, MARTS, Mart, legal_moves, legal_run_moves

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]
Told = Callable[[Mart], None]

# DuckDB's names for functions that statements call by Spark's.
_MACROS = (
    "create macro unix_micros(t) as epoch_us(t)",
    "create macro percentile(x, p) as quantile_cont(x, p)",
    "create macro get_json_object(document, path) as json_extract_string(document, path)",
)


def _ignore(mart: Mart) -> None: ...


def check(lake: Path) -> None:
    """Raises :class:`BadValue` where no history was exported."""
    if not (lake / "bronze" / "task_events").is_dir():
        raise BadValue(f"There is no history in {lake}. Type: evenflow insights export {lake}")


class DuckDb:
    """In this process, on as many threads as there are processors."""

    name = "duckdb"

    def make(self, lake: Path, tell: Told = _ignore) -> None:
        check(lake)
        conn = self._connect(lake)
        try:
            for table in BRONZE:
                conn.read_parquet(f"{lake}/bronze/{table}/**/*.parquet", union_by_name=True).create_view(table)
            for table, moves in (("legal", legal_moves()), ("legal_runs", legal_run_moves())):
                conn.from_arrow(_as_arrow(moves)).create_view(table)
            for mart in MARTS:
                target = lake / self.name / f"{mart.name}.parquet"
                target.parent.mkdir(parents=True, exist_ok=True)
                unfinished = target.with_suffix(".unfinished")
                conn.sql(mart.sql).write_parquet(str(unfinished))
                unfinished.replace(target)
                conn.read_parquet(str(target)).create_view(mart.name)
                tell(mart)
        finally:
            conn.close()

    def rows(self, lake: Path, mart: str, columns: Sequence[str] | None = None) -> list[Row]:
        import pyarrow.parquet as pq

        rows: list[Row] = pq.read_table(lake / self.name / f"{mart}.parquet", columns=columns).to_pylist()
        return rows

    def _connect(self, lake: Path) -> duckdb.DuckDBPyConnection:
        import duckdb

        conn = duckdb.connect()
        for macro in _MACROS:
            conn.execute(macro)
        conn.execute(f"set temp_directory = '{lake}/duckdb.spill'")
        return conn


def _as_arrow(moves: list[tuple[str, str, str]]) -> Any:
    import pyarrow as pa

    return pa.table(dict(zip(("before", "event", "state"), zip(*moves, strict=True), strict=True)))
