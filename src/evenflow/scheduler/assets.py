"""Assets: the events of tasks that succeed, and the runs of DAGs that wait for them.

An event is written in the transaction that applies the success, with a row in the queue of every DAG that waits for the asset. A
run takes the whole queue of its DAG under the lock of the DAG's row. Rows of the queue are never changed, so producers never wait,
and each event is in exactly one run of each DAG, however many schedulers there are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from evenflow.core.assets import Leaf, satisfied
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.spec.params import resolve_params
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.quarantine import may_be_poison, set_one_aside
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import assets, inbox
from evenflow.store.scheduling.assets import Produced
from evenflow.store.scheduling.tasks import Item


def produce(facts: Facts, messages: Messages, item: Item, spec: TaskSpec, payload: dict[str, Any]) -> None:
    """The events of a task that has succeeded: one of each outlet, or of each partition of it that the task names, and those
    that it added to its aliases.
    """
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for change in payload.get("produced", ()):
        if not change.get("alias"):
            told[change["asset"]].append(change)
    uris = {asset.name: asset.uri for asset in facts.runs[item.run_key].graph.spec.assets}
    for name in spec.outlets:
        for change in told.get(name, [{}]):
            said = change.get("extra", {}), None, change.get("partition")
            messages.produced.append(Produced(name, uris.get(name, name), *said, *item.key))
    for change in payload.get("produced", ()):
        if (alias := change.get("alias")) in spec.outlet_aliases:
            messages.produced.append(Produced(change["asset"], change["uri"], change.get("extra", {}), alias, None, *item.key))


def end_watches(conn: Conn) -> None:
    """Ends what watches an asset that no DAG waits for, or by a version of its file that is not the newest."""
    with conn.transaction():
        if assets.end_watches(conn):
            inbox.notify(conn, INBOX)


def create_asset_runs(conn: Conn) -> None:
    """Makes a run for every DAG whose condition holds. A DAG whose run cannot be made is set aside until its next version."""
    seen: dict[str, set[Leaf]] = defaultdict(set)
    conditions: dict[str, Any] = {}
    for row in assets.list_pending(conn):
        seen[row.dag_id].add(Leaf(row.name, row.is_alias))
        conditions[row.dag_id] = row.condition
    for dag_id, condition in conditions.items():
        try:
            if condition is not None and satisfied(condition, seen[dag_id]):
                _create(conn, dag_id)
        except Exception as error:
            if not may_be_poison(error):
                raise
            set_one_aside(conn, "assets", dag_id, error)


def _create(conn: Conn, dag_id: str) -> None:
    with conn.transaction():
        dag = assets.lock_consumer(conn, dag_id)
        if dag is None:
            return
        queued = {Leaf(*row) for row in assets.list_queued(conn, dag_id)}  # another scheduler may have taken what we saw
        spec = DagSpec.from_json(dag.spec)
        if spec.schedule.assets is None or not satisfied(spec.schedule.assets, queued):
            return
        params = resolve_params(spec.params, {})
        run_id = f"asset_triggered__{dag.now.isoformat()}"
        assets.insert_run(conn, dag_id=dag_id, run_id=run_id, version_key=dag.version_key, params=params)
        inbox.notify(conn, INBOX)
