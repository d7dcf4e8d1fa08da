"""``evenflow insights``: history as Parquet, and reports of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.output.replies import Reply, verb
from evenflow.cli.output.terminal import print_table, say
from evenflow.core.quantities import counted
from evenflow.errors import ExtraMissing
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.settings import load_settings

app = App(name="insights", help="Export history to Parquet, prove that limits held, and report on it.")

Lake = Annotated[Path, Parameter(help="A folder with history as Parquet.")]


@verb(app)
def export(lake: Lake, /) -> Reply:
    """Append to a folder of Parquet the events since its last export: each event once, by the day on which it happened.

    Needs the database; a role that `evenflow db reporting` has let in is enough. After a killed export, type it again.
    """
    from evenflow.insights import export as exporting
    from evenflow.runtime.database import reach_database
    from evenflow.store.db.connect import UNBOUNDED, connect

    settings = load_settings()
    reached = reach_database(settings.own_database_url, settings.home)
    with _needed(), reached as url, connect(url, name="insights", timeouts=UNBOUNDED) as conn:
        done = exporting.export(conn, lake)
    words = f"{counted(done.events, 'event')}; {lake} is as of {done.until:%Y-%m-%d %H:%M:%S} UTC"
    return Reply({"events": done.events, "batches": done.batches, "until": done.until}, words)


@verb(app)
def sample(
    lake: Lake,
    /,
    *,
    events: Annotated[int, Parameter(help="How many events, about.")] = 100_000,
    seed: Annotated[int, Parameter(help="The same number makes the same history.")] = 1,
) -> Reply:
    """Write a made-up history that obeys every limit, to show what a report looks like."""
    with _needed():
        from evenflow.insights.sample import write_sample

        count = write_sample(lake, events, seed=seed)
    return Reply({"events": count}, f"{counted(count, 'event')} in {lake}. To see a report, type: evenflow insights report {lake}")


@verb(app)
def report(
    lake: Lake,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Where to write it; report.html in that folder when absent.")] = None,
) -> Reply:
    """Make the marts of a history with DuckDB, in this process, and write an HTML page about them."""
    with _needed():
        from evenflow.insights.engines import DuckDb
        from evenflow.insights.report import write_report

        engine, target = DuckDb(), out or lake / "report.html"
        engine.make(lake)
        write_report(engine, lake, target)
    return Reply({"report": str(target)}, str(target))


@verb(app)
def prove(lake: Lake, /) -> Reply:
    """List impossible events: illegal moves, repeated events, first starts above a limit. Exit code 1 for any."""
    with _needed():
        from evenflow.insights.engines import DuckDb

        engine = DuckDb()
        engine.make(lake)
        found = engine.rows(lake, "violations")

    def tell() -> None:
        rows = [(v["kind"], str(v["run_key"]), v["what"]) for v in found]
        print_table(("kind", "run", "what"), rows, empty="Every move is legal and happened once, and every limit was kept.")
        if found:
            say(counted(len(found), "violation"))

    return Reply(found, tell, ExitCode.FAILED if found else ExitCode.OK)


@contextmanager
def _needed() -> Iterator[None]:
    """Says what to install when a package is missing."""
    try:
        yield
    except ImportError as error:
        raise ExtraMissing("The history pipeline", "report", error) from error
