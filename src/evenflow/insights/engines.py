"""DuckDB, which makes the marts in this process. The statements use only the common SQL of Spark; here DuckDB gets the few
functions that it has under other names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenflow.insights.lake import MartRow, check, complete, mart_file, rows_of, whole
from evenflow.insights.tables import BRONZE, MARTS, Mart, legal_sql

if TYPE_CHECKING:
    import duckdb

TellMart = Callable[[Mart], None]

# DuckDB's names for functions that statements call by Spark's.
_MACROS = (
    "create macro unix_micros(t) as epoch_us(t)",
    "create macro percentile(x, p) as quantile_cont(x, p)",
    "create macro get_json_object(document, path) as json_extract_string(document, path)",
    "create macro collect_list(x) as list(x)",
    "create macro map_from_arrays(keys, entries) as map(keys, entries)",
)


def ignore(mart: Mart) -> None: ...


class DuckDb:
    """DuckDB in this process, with one thread for each processor."""

    name = "duckdb"

    def make(self, lake: Path, tell: TellMart = ignore) -> None:
        check(lake)
        complete(lake)
        conn = self._connect(lake)
        try:
            for table in BRONZE:
                conn.read_parquet(f"{lake}/bronze/{table}/**/*.parquet", union_by_name=True).create_view(table)
            for table, legal in legal_sql().items():
                conn.execute(f"create view {table} as {legal}")
            for mart in MARTS:
                target = mart_file(lake, self.name, mart.name)
                with whole(target) as unfinished:
                    conn.sql(mart.sql).write_parquet(str(unfinished))
                conn.read_parquet(str(target)).create_view(mart.name)
                tell(mart)
        finally:
            conn.close()

    def rows(self, lake: Path, mart: str, columns: Sequence[str] | None = None) -> list[MartRow]:
        return rows_of(mart_file(lake, self.name, mart), columns)

    def _connect(self, lake: Path) -> duckdb.DuckDBPyConnection:
        import duckdb

        conn = duckdb.connect()
        for macro in _MACROS:
            conn.execute(macro)
        conn.execute(f"set temp_directory = '{lake}/duckdb.spill'")
        return conn
