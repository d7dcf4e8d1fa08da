"""Which tasks start next, and why the others do not: the selection round, pure.

Theory of operation
-------------------
A *lane* is a set of ready tasks of one run that no limit distinguishes: same limit class, same priority, same limits of the run. A
*limit class* distinguishes lanes beyond their run: (pool, executor, queue, slots of one task, the task's own limit across runs if
it has one). Limit classes that differ in that last limit alone have the same *base*.

* While a pool or executor is full, or a task's own limit is, the lanes behind it are skipped whole, and no row changes. So a burst
of a million lanes behind such a limit costs nothing.
* Where very many limit classes have open lanes, the round does not look through the limit classes: the open lanes of a base are one
queue, and a full limit of a task parks the lane that the round looks at, as a limit of its run does.
* A full limit of its run *parks* a lane that the round looks at: the limit becomes its witness, and rounds ignore the lane until
that limit has room. A lane behind a better lane of its run is parked on the run's limit from the beginning.

So a round touches only the lanes that start and the lanes that newly block; the backlog costs nothing.

When a limit has room, only the best lane of each base that is parked there opens. It is *woken*: it carries the wake for the lanes
behind it. Rounds look at it even while its task's limit is full, in order to pass that wake on.

Invariant, on which work conservation (R-ST2) and strict order (R-ST3) rest: a lane with ready tasks is open, or parked on a
full limit, or parked on a limit with room while a better lane of the same base and limit is woken. Three things keep it:

* a lane that is looked at, whether it starts or parks, wakes the next one on each of its limits that still has room;
* a release of a limit wakes, per base, the best lane parked on it;
* a woken lane that vanishes for any other reason passes its wake on (the store reports its limits as released by 0).

The caller loads only a prefix of each queue. The round must not decide beyond a prefix, because an unseen lane could come first:
there it asks for more.

A task may want several slots of its pool. Where it does not fit, the pool's *patience* limits how long smaller tasks may pass it:
for ever (``backfill``), not at all (``strict``), or until it has waited for a time (``reserve_after``). Then it keeps the pool, and
no task of lower order starts there. The best lane of a base that does not fit speaks for the base: one comparison a base.

A pool, queue or executor may be *closed* (:mod:`evenflow.core.service_states`): its limit classes are skipped whole, as if it were
full, except for exempt lanes. So closing and opening touch no lane.

A lane with a smaller order precedes another: :mod:`evenflow.core.selection.order` makes the order.
"""
