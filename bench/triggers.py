"""What thousands of waiting triggers cost one triggerer, and how soon their events are reported, through real processes.

    bench/triggers.py                   10,000 triggers: memory and CPU while they wait, then all of them fire at once
    bench/triggers.py -n 30000          as many as one triggerer may have in three times its usual capacity

The deferred tasks are written into the tables as a scheduler leaves them; the API, the triggerer and PostgreSQL are real. Memory is
the proportional set size of all processes of the triggerer. CPU is of one core, over half a minute in which nothing fires: the
API's and PostgreSQL's parts are beats and the sweeps of an API server. ``fired_s`` are the times from the moment at which all
triggers are due until the triggerer has heard of each, ``all_stored_s`` is that until all events are rows of the inbox.
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure
import psycopg
from server import fresh_database, open_connection, serve
from services import environment, service, token, until, until_listening

from evenflow.api.deferrals import sealed_text
from evenflow.api.vault import Vault
from evenflow.core.ending import Defer
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.sdk import xcom

RESULTS = Path(__file__).parent / "results"
IDLE_S = 30.0
TRIGGER = "evenflow.sdk.triggers.DateTimeTrigger"


def defer(database: psycopg.Connection[Any], vault: Vault, first: int, count: int, moment: datetime) -> None:
    """Tasks ``first`` and so on wait for this moment, each in a run of its own."""
    said = Defer(trigger=TRIGGER, trigger_kwargs={"moment": xcom.encode(moment, "moment")}, method="go_on")
    sealed = [base64.b64decode(sealed_text(vault, run_key, said)) for run_key in range(first, first + count)]
    names = {"first": first, "last": first + count - 1, "trigger": TRIGGER, "sealed": sealed}
    rows = "from generate_series(%(first)s::bigint, %(last)s::bigint) n"
    with database.transaction():
        database.execute(
            "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type)"
            f" select n, 'bench', 'r' || n, version_key, 'running', 'manual' {rows}, dag_version where dag_id = 'bench'",
            names,
        )
        database.execute(
            f"insert into task_instance (run_key, task_index, state, epoch, try_number) select n, 0, 'deferred', n, 1 {rows}", names
        )
        database.execute(
            "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots, retake,"
            " retake_slots, began_at, ran_s, ready_at)"
            f" select n, 0, -1, n, 'default', %(trigger)s, (%(sealed)s::bytea[])[n - %(first)s + 1],"
            f" '{{}}', 0, '{{}}', 0, now(), 0, now() {rows}",
            names,
        )
        database.execute("notify triggers")


def make_dag(database: psycopg.Connection[Any]) -> None:
    spec = DagSpec(dag_id="bench", tasks=(TaskSpec(task_id="wait", operator="python"),))
    database.execute(
        "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
        " values ('bench', 1, %s, %s, '', 'bench.py')",
        [spec.to_json(), spec.hash()],
    )


def event_times(database: psycopg.Connection[Any], first: int, moment: datetime) -> list[float]:
    """Seconds from the moment to each event, as its triggerer heard of it."""
    query = "select extract(epoch from at - %s)::float8 from report where kind = 'event' and epoch >= %s"
    return [seconds for (seconds,) in database.execute(query, [moment, first]).fetchall()]


def measure_triggers(count: int) -> dict[str, Any]:
    with serve(None) as server, tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        (home / "dags").mkdir()
        url = fresh_database(server, "bench_triggers")
        settings = environment(home, home / "dags", url) | {"EVENFLOW_CAPACITY": str(2 * count)}
        with service("api", settings) as api, open_connection(url, "bench") as database:
            until_listening(int(settings["EVENFLOW_API_PORT"]))
            settings["EVENFLOW_TOKEN"] = token("triggerer", settings)
            make_dag(database)
            vault = Vault(home / SECRETS_FILE)
            with service("triggerer", settings) as triggerer:
                until(database, "select count(*) from service where kind = 'triggerer'", bool)
                empty_mb = measure.pss_mb(measure.tree(triggerer.pid))
                begun = time.perf_counter()
                defer(database, vault, 1, count, datetime.now(UTC) + timedelta(days=1))
                until(database, "select count(*) from deferral where triggerer_id is not null", lambda n: n == count)
                claimed_s = time.perf_counter() - begun
                time.sleep(2 * 3.0)  # two beats, so that starting is over
                before = {name: measure.cpu_s(measure.tree(pid)) for name, pid in (("triggerer", triggerer.pid), ("api", api.pid))}
                before["postgres"] = measure.cpu_s(server.processes())
                time.sleep(IDLE_S)
                spent = {name: measure.cpu_s(measure.tree(pid)) for name, pid in (("triggerer", triggerer.pid), ("api", api.pid))}
                spent["postgres"] = measure.cpu_s(server.processes())
                waiting_mb = measure.pss_mb(measure.tree(triggerer.pid))
                moment = datetime.now(UTC) + timedelta(seconds=max(10.0, 2 * claimed_s))
                defer(database, vault, count + 1, count, moment)
                until(
                    database,
                    f"select count(*) from deferral where triggerer_id is not null and epoch > {count}",
                    lambda n: n == count,
                )
                assert datetime.now(UTC) < moment, "claiming took too long"
                until(database, f"select count(*) from report where kind = 'event' and epoch > {count}", lambda n: n == count)
                stored_s = (datetime.now(UTC) - moment).total_seconds()
                fired = event_times(database, count + 1, moment)
                twice_mb = measure.pss_mb(measure.tree(triggerer.pid))
    return {
        "triggers": count,
        "empty_mb": round(empty_mb, 1),
        "waiting_mb": round(waiting_mb, 1),
        "kb_per_trigger": round(1000 * (waiting_mb - empty_mb) / count, 2),
        "peak_mb": round(twice_mb, 1),
        "idle_cpu_pct": {name: round(100 * (spent[name] - before[name]) / IDLE_S, 2) for name in spent},
        "claimed_s": round(claimed_s, 2),
        "fired_s": measure.quantiles(fired),
        "all_stored_s": round(stored_s, 2),
        "ok": waiting_mb < 500 and (spent["triggerer"] - before["triggerer"]) / IDLE_S < 0.05,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=10_000, help="triggers that wait")
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is stopped
    head = {"case": "triggers", "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds"), "load": measure.load()}
    line = json.dumps({**head, **(figures := measure_triggers(given.n))})
    print(line, flush=True)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "triggers.jsonl", "a") as results:
        print(line, file=results, flush=True)
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
