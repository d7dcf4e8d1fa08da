"""States that only names tell apart, or what nobody will mention again, are made one."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.state import NOBODY, Task, Worker, World


def without_idle_services(world: World) -> World:
    named = {w.service for w in world.workers}
    named |= {t.dispatch.service for t in (*world.tasks, *world.standby) if t.dispatch}
    named |= {s for s, row in enumerate(world.services) if row.state == "active" and row.asks != NOBODY}
    kept = [s for s in range(len(world.services)) if s in named]
    if len(kept) == len(world.services):
        return world
    new = {s: n for n, s in enumerate(kept)} | {NOBODY: NOBODY}
    workers = tuple(w._replace(service=new[w.service]) for w in world.workers)
    tasks = tuple(_held_by(t, new) for t in world.tasks)
    standby = tuple(_held_by(t, new) for t in world.standby)
    return world._replace(services=tuple(world.services[s] for s in kept), tasks=tasks, workers=workers, standby=standby)


def _held_by(task: Task, new: dict[int, int]) -> Task:
    row = task.dispatch
    return task._replace(dispatch=row._replace(service=new[row.service])) if row else task


def with_few_epochs(world: World, *, past: bool) -> World:
    """``past``: the last one before the current one may be mentioned again."""
    live = {epoch for _, epoch in world.looked} | {h.said.epoch for h in world.heard}
    for t in (*world.tasks, *world.standby):
        live.add(t.epoch)
        live.update(said.epoch for said in t.inbox)
        if past:
            live.add(max((said.epoch for said in t.told if said.epoch < t.epoch), default=t.epoch))
    for w in world.workers:
        live.update(t.epoch for t in w.tries)
        live.update(t.epoch for t in w.answer)
        live.update(e.epoch for e in w.exits)
        if w.beat:
            live.update((*w.beat.listed, *w.beat.kill, *(t.epoch for t in w.beat.resend)))
    live.discard(NOBODY)
    new = {epoch: n for n, epoch in enumerate(sorted(live), 1)}
    if all(old == n for old, n in new.items()) and not any(_mentions_others(world, len(new))):
        return world
    new[NOBODY] = NOBODY
    return world._replace(
        tasks=tuple(_renumbered_task(t, new) for t in world.tasks),
        standby=tuple(_renumbered_task(t, new) for t in world.standby),
        workers=tuple(_renumbered_worker(w, new) for w in world.workers),
        looked=tuple((i, new[epoch]) for i, epoch in world.looked),
        heard=tuple(h._replace(said=h.said._replace(epoch=new[h.said.epoch])) for h in world.heard),
    )


def _mentions_others(world: World, most: int) -> Iterator[bool]:
    for t in (*world.tasks, *world.standby):
        yield any(e > most for e in (*t.begun, *t.ended, *(said.epoch for said in t.told)))
    for w in world.workers:
        yield any(e > most for e in w.over)


def _renumbered_task(task: Task, new: dict[int, int]) -> Task:
    return task._replace(
        epoch=new[task.epoch],
        dispatch=task.dispatch._replace(epoch=new[task.dispatch.epoch]) if task.dispatch else (),
        inbox=tuple(said._replace(epoch=new[said.epoch]) for said in task.inbox),
        begun=tuple(new[e] for e in task.begun if e in new),
        told=tuple(said._replace(epoch=new[said.epoch]) for said in task.told if said.epoch in new),
        ended=tuple(new[e] for e in task.ended if e in new),
    )


def _renumbered_worker(worker: Worker, new: dict[int, int]) -> Worker:
    beat = worker.beat
    return worker._replace(
        tries=tuple(t._replace(epoch=new[t.epoch]) for t in worker.tries),
        exits=tuple(e._replace(epoch=new[e.epoch]) for e in worker.exits),
        answer=tuple(t._replace(epoch=new[t.epoch]) for t in worker.answer),
        over=tuple(new[e] for e in worker.over if e in new),
        beat=beat
        and beat._replace(
            listed=tuple(new[e] for e in beat.listed),
            kill=tuple(new[e] for e in beat.kill),
            resend=tuple(t._replace(epoch=new[t.epoch]) for t in beat.resend),
        ),
    )
