"""What a scheduler may remember between transactions of one connection: things that never change once they exist."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evenflow.core.graph import Graph
from evenflow.core.model import DEFAULT_EXECUTOR, DagSpec
from evenflow.core.selection.lanes import LimitClass
from evenflow.core.service_states import is_exempt
from evenflow.core.sharing import tenant_of
from evenflow.errors import DagError, EvenflowError
from evenflow.store.db.rows import Conn, Rows
from evenflow.store.scheduling import inbox, runs, selection

K = TypeVar("K")
V = TypeVar("V")

PlaceNames = tuple[str, str, str, int]  # pool, executor of the queue, queue, slots

VERSIONS = 300_000_000  # bytes of versions: enough for 10,000 DAGs of 20 tasks that have some text each
RUNS = 20_000  # runs whose limit ids are remembered, and the same number of limit classes
BLOCK = 1_000  # as the sequences' increment


class UnreadableVersion(EvenflowError):
    """What is stored of a DAG version cannot be read as a DAG by this Evenflow, so nothing can be decided about its runs."""

    def __init__(self, version_key: int, cause: Exception) -> None:
        super().__init__(f"The stored version {version_key} cannot be read: {type(cause).__name__}.")
        self.version_key = version_key


class Recent(Generic[K, V]):
    """A mapping that forgets its least recently used values while all of them together weigh more than ``most``. A value that
    weighs more than that alone is not kept.
    """

    def __init__(self, most: int, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self._most, self._weigh = most, weigh
        self._items: OrderedDict[K, V] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: K) -> V | None:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V:
        self.drop(key)
        if (weight := self._weigh(value)) > self._most:
            return value
        self._items[key] = value
        self._weight += weight
        while self._weight > self._most:
            _, oldest = self._items.popitem(last=False)
            self._weight -= self._weigh(oldest)
        return value

    def values(self) -> Iterable[V]:
        return self._items.values()

    def drop(self, key: K) -> None:
        value = self._items.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)


class Numbers:
    """Fresh numbers of a sequence, a block at a time. Those that a rolled-back transaction used are not used again."""

    def __init__(self, sequence: str) -> None:
        self._sequence = sequence
        self._next = self._end = 0
        self._asked: Rows[tuple[int]] | None = None

    def ask(self, conn: Conn) -> None:
        """Asks for a block of keys ahead, so that no transaction waits for it."""
        if self._asked is None:
            self._asked = selection.reserve(conn, self._sequence)

    def take(self, conn: Conn) -> int:
        if self._next == self._end:
            self.ask(conn)
            assert self._asked is not None
            self._next, self._asked = self._asked.all()[0][0], None
            self._end = self._next + BLOCK
        self._next += 1
        return self._next - 1


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where a task of a version waits when it is ready."""

    limit_class: LimitClass
    priority: int
    run_limit: str | None  # name of the max_active_tis_per_dagrun limit that it has in its run
    exempt: bool  # whether it starts where first starts do not


@dataclass(slots=True)
class Version:
    """A DAG version's graph, and the places of its tasks as far as they were asked for. It takes about ``weight`` bytes."""

    graph: Graph
    places: list[TaskPlace | None]
    weight: int
    limits_in_runs: bool  # whether tasks of it have a max_active_tis_per_dagrun

    @classmethod
    def of(cls, spec: str) -> Version:
        """Raises whatever a spec raises that cannot be read. Measured: 640 bytes for a bare task, 2 to 6 for each byte of more."""
        graph = Graph.of(DagSpec.from_json(spec))
        in_runs = any(task.max_active_tis_per_dagrun is not None for task in graph.spec.tasks)
        return cls(graph, [None] * graph.n, 2_000 + 600 * graph.n + 3 * len(spec), in_runs)


class Catalog:
    """Versions, limit classes, ids of limits, and blocks of fresh numbers. All methods may ask the database on a miss."""

    def __init__(self) -> None:
        self._versions: Recent[int, Version] = Recent(VERSIONS, lambda version: version.weight)
        self._run_limits: Recent[int, dict[str, int]] = Recent(RUNS)
        self._clears: Recent[int, int] = Recent(RUNS)
        self._limit_classes: Recent[int, LimitClass] = Recent(RUNS)
        self._limit_classes_by_name: Recent[tuple[*PlaceNames, int | None, int | None, int | None], LimitClass] = Recent(RUNS)
        self._places = 0
        self._executors: dict[str, str] = {}  # by queue
        self._scopes: dict[tuple[str, str], selection.SharedScope] = {}
        self.since = inbox.Since()
        self.usual_limits: frozenset[int] = frozenset()  # of pools, executors and tasks, that turns looked at lately: a few
        self.leads = True  # whether the last turn had the executor's lock
        self.runs_left = 0  # how many runs the next turn asks for, if the last one left some to begin
        self.epochs = Numbers("epoch_seq")
        self.lane_ids = Numbers("lane_seq")
        self.run_limit_ids = Numbers("run_limit_seq")

    def versions(self, conn: Conn, version_keys: Iterable[int]) -> dict[int, Version]:
        """By key. Raises :class:`UnreadableVersion`."""
        wanted = set(version_keys)
        found = {key: version for key in wanted if (version := self._versions.get(key)) is not None}
        missing = wanted - found.keys()
        for version_key, spec in runs.read_specs(conn, missing).all() if missing else ():
            try:
                found[version_key] = self._versions.put(version_key, Version.of(spec))
            except Exception as error:
                raise UnreadableVersion(version_key, error) from error
        return found

    def place(self, conn: Conn, version: Version, task_index: int, queue: str | None = None) -> TaskPlace:
        """In its own ``queue`` if none is named. Raises :class:`DagError` when a pool, executor or limit of the task does not exist
        (any more).
        """
        if queue is not None:
            return self._find_place(conn, version, task_index, queue)
        found = version.places[task_index]
        if found is None:
            own = version.graph.task(task_index).queue
            found = version.places[task_index] = self._find_place(conn, version, task_index, own)
        return found

    def _find_place(self, conn: Conn, version: Version, task_index: int, queue: str) -> TaskPlace:
        task, task_limit = version.graph.task(task_index), None
        if task.max_active_tis_per_dag is not None:
            name = f"{version.graph.spec.dag_id}/{task.task_id}"
            task_limit = selection.find_task_limit(conn, name)
            if task_limit is None:
                raise DagError(f"Task {name} has max_active_tis_per_dag, but its limit does not exist.")
        executor = self._executors.get(queue, DEFAULT_EXECUTOR)
        aging_s, share_id = self._sharing_of(conn, version.graph.spec, task.pool, executor) if self._scopes else (None, None)
        limit_class = self._limit_class(conn, (task.pool, executor, queue, task.pool_slots), task_limit, aging_s, share_id)
        run_limit = None if task.max_active_tis_per_dagrun is None else task.task_id
        exempt = is_exempt(version.graph, task_index)
        return TaskPlace(limit_class, task.priority_weight, run_limit, exempt)

    def _limit_class(
        self, conn: Conn, place: PlaceNames, task_limit: int | None, aging_s: int | None, share_id: int | None
    ) -> LimitClass:
        key = (*place, task_limit, aging_s, share_id)
        found = self._limit_classes_by_name.get(key)
        if found is None:
            base_id = None if task_limit is None else self._limit_class(conn, place, None, aging_s, share_id).class_id
            row = selection.find_limit_class(conn, *key, base_id)
            if row is None:
                raise DagError(f"There is no pool {place[0]!r}, or no executor {place[1]!r}.")
            found = self._limit_classes_by_name.put(key, LimitClass(*row, *place[2:], task_limit, aging_s, share_id))
            self._limit_classes.put(found.class_id, found)
        return found

    def learn_places(self, conn: Conn, version: int) -> None:
        """Executors and sharing rules are as of ``version``. If that is new, tasks find their limit classes anew, because their
        executors may have changed.
        """
        if version != self._places:
            self._places = version
            self._executors = dict(selection.read_executors(conn).all())
            self._scopes = {(scope.kind, scope.name): scope for scope in selection.read_sharing(conn).all()}
            self._limit_classes, self._limit_classes_by_name = Recent(RUNS), Recent(RUNS)
            for stored in self._versions.values():
                stored.places = [None] * stored.graph.n

    def _sharing_of(self, conn: Conn, spec: DagSpec, pool: str, executor: str) -> tuple[int | None, int | None]:
        """After how long what waits there counts for more, and the share of the DAG's tenant. The pool goes before its executor."""
        scopes = [scope for key in (("pool", pool), ("executor", executor)) if (scope := self._scopes.get(key))]
        aging_s = next((scope.aging_s for scope in scopes if scope.aging_s), None)
        shared = next((scope for scope in scopes if scope.share_by), None)
        if shared is None or shared.share_by is None:
            return aging_s, None
        return aging_s, selection.find_share(conn, shared.limit_id, tenant_of(spec, shared.share_by, shared.weighted))

    def limit_classes(self, conn: Conn, class_ids: Collection[int]) -> dict[int, LimitClass]:
        found = {n: limit_class for n in class_ids if (limit_class := self._limit_classes.get(n)) is not None}
        if missing := [n for n in class_ids if n not in found]:
            found |= {
                limit_class.class_id: self._limit_classes.put(limit_class.class_id, limit_class)
                for limit_class in selection.read_limit_classes(conn, missing).all()
            }
        return found

    def load_run_limits(self, conn: Conn, run_keys: Iterable[int]) -> None:
        """Make :meth:`run_limits` answer for these runs."""
        missing = [k for k in run_keys if self._run_limits.get(k) is None]
        if missing:
            found: dict[int, dict[str, int]] = {k: {} for k in missing}
            for limit in selection.read_run_limits(conn, missing).all():
                found[limit.run_key][limit.name] = limit.limit_id
            for key, limits in found.items():
                self._run_limits.put(key, limits)

    def forget_older(self, run_key: int, clears: int) -> None:
        """Forgets the limits of a run that was cleared since: it may have ended and begun again meanwhile, with other limits."""
        if self._clears.get(run_key) != clears:
            self._clears.put(run_key, clears)
            self._run_limits.drop(run_key)

    def add_run_limits(self, run_key: int, limits: dict[str, int]) -> None:
        self._run_limits.put(run_key, limits)

    def run_limits(self, run_key: int) -> dict[str, int]:
        """The limits of a run by name: ``""`` is its max_active_tasks, a task id its max_active_tis_per_dagrun."""
        limits = self._run_limits.get(run_key)
        assert limits is not None, "load_run_limits comes first"
        return limits
