"""What a scheduler may remember between transactions: things that never change once they exist."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec
from evenflow.core.selection import Node
from evenflow.errors import DagError
from evenflow.store import runs, selection
from evenflow.store.rows import Conn

K = TypeVar("K")
V = TypeVar("V")

GRAPHS = 512  # versions; a graph of 1,000 tasks is about 1 MB
RUNS = 20_000  # runs whose limit ids are remembered
BLOCK = 1_000  # as the sequences' increment


class Recent(Generic[K, V]):
    """A mapping that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V:
        self._items[key] = value
        if len(self._items) > self._size:
            self._items.popitem(last=False)
        return value


class Numbers:
    """Fresh numbers of a sequence, a block at a time. Those that a rolled-back transaction used are not used again."""

    def __init__(self, sequence: str) -> None:
        self._sequence = sequence
        self._next = self._end = 0

    def take(self, conn: Conn) -> int:
        if self._next == self._end:
            self._next = selection.reserve(conn, self._sequence).all()[0][0]
            self._end = self._next + BLOCK
        self._next += 1
        return self._next - 1


class Catalog:
    """Graphs by version, nodes, ids of limits, and blocks of fresh numbers. All methods may ask the database on a miss."""

    def __init__(self) -> None:
        self._graphs: Recent[int, Graph] = Recent(GRAPHS)
        self._run_limits: Recent[int, dict[str, int]] = Recent(RUNS)
        self._dag_task_limits: Recent[tuple[str, str], int] = Recent(RUNS)
        self._nodes: dict[tuple[str, str, str, int], Node] = {}
        self.nodes_by_id: dict[int, Node] = {}
        self.epochs = Numbers("epoch_seq")
        self.lane_ids = Numbers("lane_seq")

    def graph(self, conn: Conn, version_key: int) -> Graph:
        found = self._graphs.get(version_key)
        return found or self._graphs.put(version_key, Graph.of(DagSpec.from_json(runs.read_spec(conn, version_key))))

    def node(self, conn: Conn, pool: str, executor: str, queue: str, weight: int) -> Node:
        """Raises :class:`DagError` when the pool or the executor does not exist (any more)."""
        key = (pool, executor, queue, weight)
        found = self._nodes.get(key)
        if found is None:
            row = selection.find_node(conn, *key)
            if row is None:
                raise DagError(f"There is no pool {pool!r}, or no executor {executor!r}.")
            found = self._nodes[key] = Node(*row, queue, weight)
            self.nodes_by_id[found.node_id] = found
        return found

    def node_by_id(self, conn: Conn, node_id: int) -> Node:
        if node_id not in self.nodes_by_id:
            for found in selection.read_nodes(conn).all():
                self.nodes_by_id[found[0]] = Node(*found)
        return self.nodes_by_id[node_id]

    def load_run_limits(self, conn: Conn, run_keys: Iterable[int]) -> None:
        """Make :meth:`run_limit` answer for these runs."""
        missing = [k for k in run_keys if self._run_limits.get(k) is None]
        if missing:
            found: dict[int, dict[str, int]] = {k: {} for k in missing}
            for limit in selection.read_run_limits(conn, missing).all():
                found[limit.run_key][limit.name] = limit.limit_id
            for key, limits in found.items():
                self._run_limits.put(key, limits)

    def add_run_limits(self, run_key: int, limits: dict[str, int]) -> None:
        self._run_limits.put(run_key, limits)

    def run_limit(self, run_key: int, name: str) -> int | None:
        """The limit of a run: ``""`` is its max_active_tasks, a task id its max_active_tis_per_dagrun."""
        limits = self._run_limits.get(run_key)
        assert limits is not None, "load_run_limits comes first"
        return limits.get(name)

    def dag_task_limit(self, conn: Conn, dag_id: str, task_id: str) -> int:
        found = self._dag_task_limits.get((dag_id, task_id))
        if found is None:
            name = f"{dag_id}/{task_id}"
            row = selection.find_dag_task_limits(conn, [name])
            if name not in row:
                raise DagError(f"Task {task_id!r} of DAG {dag_id!r} has max_active_tis_per_dag, but its limit does not exist.")
            found = self._dag_task_limits.put((dag_id, task_id), row[name])
        return found
