"""What people want of a run's tasks: clear them, or mark them as ended.

An operation comes as a report of the run and is applied before the reports of the same transaction, by set-based statements on what
the database says. After it nothing is undone by arithmetic: all that the run counts is computed anew from the states in it
(R-CS8), and every task instance that waits is judged by that. So its cost is the size of the run, once.

What is changed, and what becomes of each try, is decided by :mod:`evenflow.core.flow.changes`. The dispatch of a try that has a
process gets the intent and a kill, and the exit or the loss applies it (:func:`end_intended`). Of a mapped task that is to expand
anew the other instances are ``removed`` while one still has a process, and the task waits.

Only the holder of the executor's lock comes here, because lanes change; and of the operations of a run only one in a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from evenflow.core.flow.changes import (
    Change,
    RunWish,
    StateChange,
    TryFate,
    changes,
    consequences,
    expansion_anew,
    fate_of_try,
    moving,
    of_virtual,
    parted,
    refusal,
    removal,
    run_after,
    whole_regions,
    wish_of_run,
)
from evenflow.core.flow.ends import awaits_clean_up
from evenflow.core.flow.recount import RunCounts
from evenflow.core.flow.state import Flow, InstanceKey, MappedTasks
from evenflow.core.model import UNMAPPED
from evenflow.core.operations import Only, Operation, TargetKey, keys_of
from evenflow.core.states import HOLDING, RUN_FINISHED, RunEvent, RunState, TaskEvent, TaskState, move_run
from evenflow.scheduler.cancel import cancel_run
from evenflow.scheduler.deferrals import clean_up, stop_waiting
from evenflow.scheduler.facts import Facts, Run
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import RunMoves
from evenflow.scheduler.past import await_again
from evenflow.scheduler.recount import count, judge, settle_run
from evenflow.store.scheduling import deferrals as stored
from evenflow.store.scheduling import operations as store
from evenflow.store.scheduling import runs
from evenflow.store.scheduling import tasks as instances
from evenflow.store.scheduling.inbox import TakenReport
from evenflow.store.scheduling.tasks import Item

OPERATE = "operate"


def operate(facts: Facts, ledgers: Ledgers, run: Run, state: RunState, report: TakenReport) -> None:
    """Applies an operation."""
    operation = msgspec.convert(report.payload, Operation)
    wish = wish_of_run(state, operation, begun=bool(run.clears))
    if wish is RunWish.FAIL or wish is RunWish.CANCEL:
        _fail_run(facts, ledgers, run, state, operation, wish)
        return
    if wish is RunWish.TAKE_BACK and store.take_back_failure(facts.conn, run.run_key):
        after = move_run(state, RunEvent.MARK_SUCCESS)
        store.record_operation(facts.conn, run.run_key, RunEvent.MARK_SUCCESS, after, operation.actor, {})
        return
    detail = {key: value for key, value in msgspec.to_builtins(operation).items() if value and key not in ("event", "actor")}
    if wish is RunWish.BEGIN_ANEW and store.revive_unbegun(facts.conn, run.run_key):
        detail["instances"] = run.graph.n
        store.record_operation(facts.conn, run.run_key, operation.event, RunState.QUEUED, operation.actor, detail)
        return
    why_not = refusal(state, begun=bool(run.clears), cancelled=run.cancelled)
    dispatches, mapped = ledgers.dispatches, ledgers.mapped
    changed = 0 if why_not else _change(facts, dispatches, ledgers.deferrals, mapped, run, operation)
    if why_not:
        detail["ignored"] = why_not
    if changed:
        detail["instances"] = changed
        run.clears += 1
        run.ready_at_s = report.at_s
        counted = count(facts, run)
        state = _change_run(facts, ledgers.run_moves, run, state, counted.run)
        await_again(facts, ledgers.messages, run)
        if state is RunState.RUNNING:
            judge(facts, ledgers.flow, ledgers.moves, run, counted)
    elif not why_not and wish is RunWish.TAKE_BACK and store.say_how_it_ended(facts.conn, run.run_key, RunState.SUCCESS, None):
        state = move_run(state, RunEvent.MARK_SUCCESS)
    store.record_operation(facts.conn, run.run_key, operation.event, state, operation.actor, detail)


def end_intended(
    facts: Facts, flow: Flow[Item], dispatches: Dispatches, deferrals: Deferrals, reports: Sequence[TakenReport]
) -> list[TakenReport]:
    """Applies what people want of tries that have ended; answers the other reports."""
    ended: dict[int, TakenReport] = {}
    for report in reports:
        if _has_ended(facts, report) and _intent(facts, dispatches, report) is not None:
            ended.setdefault(report.epoch, report)
    if not ended:
        return list(reports)
    by_intent: dict[tuple[int, str, str], list[TakenReport]] = defaultdict(list)
    for report in ended.values():
        intent = _intent(facts, dispatches, report)
        assert intent is not None
        by_intent[report.run_key, intent["event"], intent["actor"]].append(report)
        dispatches.end(report.epoch, report.holds, report.pool_slots, report.at_s)
        if report.resumes and report.task_index is not None:
            deferrals.ended.append((report.run_key, report.task_index, report.map_index))
    for (run_key, event, actor), group in by_intent.items():
        change = moving(TaskEvent(event), actor, HOLDING)
        keys: list[TargetKey] = [(r.task_index, r.map_index) for r in group if r.task_index is not None]
        store.move_instances(facts.conn, run_key, keys, change, live=())
        _remove_ended(facts, dispatches, flow.mapped, facts.runs[run_key], keys, actor, ended)
        if change.cleared:
            store.delete_results(facts.conn, run_key, keys)
    for run_key in {key[0] for key in by_intent}:
        settle_run(facts, flow, dispatches.moves, facts.runs[run_key])
    return [report for report in reports if report.epoch not in ended]


def _change_run(facts: Facts, run_moves: RunMoves, run: Run, state: RunState, counted: RunCounts) -> RunState:
    """Returns the state of a run whose instances were changed. One that has not continued keeps the time of its end."""
    change = run_after(state, counted)
    if change.revived:
        runs.delete_limits(facts.conn, [run.run_key])
    if change.ended:
        store.say_how_it_ended(facts.conn, run.run_key, change.state, change.reason)
    else:
        store.change_run(facts.conn, run.run_key, change.state, revived=change.revived)
    if change.ended and change.state is not state:
        run_moves.call_back(run.run_key, change.state, change.reason)
    return change.state


def _fail_run(facts: Facts, ledgers: Ledgers, run: Run, state: RunState, operation: Operation, wish: RunWish) -> None:
    """A run that has failed already stays as it is."""
    if wish is RunWish.FAIL:
        after = move_run(state, RunEvent.MARK_FAILED)
        said = f"marked failed by {operation.actor}"
        store.say_how_it_ended(facts.conn, run.run_key, after, said, marked_by=operation.actor)
        store.record_operation(facts.conn, run.run_key, RunEvent.MARK_FAILED, after, operation.actor, {})
    elif state not in RUN_FINISHED:
        run.cancelled = True
        cancel_run(facts, ledgers, run, state, operation.actor)


# -- changing states -----------------------------------------------------------------------------------------------------


def _change(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, mapped: MappedTasks, run: Run, operation: Operation) -> int:
    """How many task instances it changes, or will when their process has ended."""
    left = store.find_left(facts.conn, run.run_key) if operation.only is Only.FAILED else ()
    changed = sum(_apply(facts, dispatches, deferrals, mapped, run, c) for c in changes(run.graph, operation, left))
    if operation.event is TaskEvent.CLEAR or not changed:
        return changed
    left = store.find_left(facts.conn, run.run_key)
    return changed + sum(_apply(facts, dispatches, deferrals, mapped, run, c) for c in consequences(run.graph, operation, left))


def _apply(facts: Facts, dispatches: Dispatches, deferrals: Deferrals, mapped: MappedTasks, run: Run, wanted: Change) -> int:
    found, change = wanted.targets, wanted.move
    if not found:
        return 0
    conn, run_key = facts.conn, run.run_key
    rows = instances.read_mapped(conn, [(run_key, t.task_index) for t in found]).all()
    expanded = {m.task_index for m in rows}
    anew = sorted(whole_regions(run.graph, found) & expanded) if change.cleared and wanted.as_whole else []
    keys = keys_of(t for t in found if t.task_index not in anew)
    held = _end_or_kill(facts, dispatches, deferrals, run, [*keys, *((index, None) for index in anew)], change)
    live = [epoch for _, epoch in held]
    changed, timed = store.move_instances(conn, run_key, keys, change, live=live) if keys else (0, [])
    if virtual := [key for key in keys if key[0] in expanded]:
        changed += _change_virtual(facts, dispatches.holds, run_key, virtual, change)
    if anew:
        changed += sum(m.length for m in rows if m.task_index in anew)
        store.withdraw_ranges(conn, run_key, anew)
        timed += _remove(facts, mapped, run, anew, change.actor, live)
    if change.cleared:
        store.delete_results(conn, run_key, [*keys, *((index, None) for index in anew)])
    store.withdraw_ready(conn, run_key)
    dispatches.holds.wake(store.delete_empty_lanes(conn, run_key))
    dispatches.moves.voided.update((run_key, *key) for key in timed)
    return changed + sum(task_index not in anew for task_index, _ in held)


def _end_or_kill(
    facts: Facts, dispatches: Dispatches, deferrals: Deferrals, run: Run, keys: Sequence[TargetKey], change: StateChange
) -> list[tuple[int, int]]:
    """Ends tries without a worker at once, kills the processes of others, and sends clean-ups for tasks that have deferred and left
    something outside; returns what is not over, as (task_index, epoch).
    """
    holding = HOLDING & set(change.states)
    live = store.find_live(facts.conn, run.run_key, keys, holding) if holding else []
    kills: list[int] = []
    awaited: list[tuple[int, int]] = []
    unclaimed: dict[InstanceKey, list[int]] = {}
    for row in live:
        match fate_of_try(run.graph, row):
            case TryFate.END:
                dispatches.end(row.epoch, row.holds, row.pool_slots, facts.now_s)
                if row.resumes:
                    deferrals.ended.append((run.run_key, row.task_index, row.map_index))
            case TryFate.CLEAN_UP:
                unclaimed[run.run_key, row.task_index, row.map_index] = row.holds
            case TryFate.KILL:
                kills.append(row.epoch)
                awaited.append((row.task_index, row.epoch))
            case TryFate.AWAIT:
                awaited.append((row.task_index, row.epoch))
    intent = {"event": str(change.event), "actor": change.actor}
    if awaited:
        epochs = [epoch for _, epoch in awaited]
        store.set_intents(facts.conn, epochs, intent)
        dispatches.kills += kills
        dispatches.intents.update(dict.fromkeys(epochs, intent))
    cleaned = _end_waiting(facts, dispatches, deferrals, run, keys, change, unclaimed, intent)
    return [*awaited, *cleaned]


def _end_waiting(
    facts: Facts,
    dispatches: Dispatches,
    deferrals: Deferrals,
    run: Run,
    keys: Sequence[TargetKey],
    change: StateChange,
    unclaimed: Mapping[InstanceKey, Sequence[int]],
    intent: Mapping[str, str],
) -> list[tuple[int, int]]:
    """What waits deferred, or has resumed and waits in a lane, or for a worker (``unclaimed``, with what these hold); answers what
    is cleaned up after, as (task_index, epoch).
    """
    waits = {TaskState.DEFERRED, TaskState.SCHEDULED} & set(change.states)
    found = store.find_deferred(facts.conn, run.run_key, keys, waits) if waits else []
    if not found and not unclaimed:
        return []
    cleaned: list[tuple[int, int]] = []
    in_lanes: list[tuple[int, int]] = []
    for key, waiting in stored.read_some(facts.conn, [*found, *unclaimed]).items():
        if not run.graph.task(waiting.task_index).cleans_up:
            stop_waiting(facts, dispatches.holds, deferrals, waiting)
            continue
        if waiting.state == TaskState.SCHEDULED:
            in_lanes.append(key[1:])
        item = dispatches.moves.item(*key, waiting.state, waiting.current_epoch, waiting.try_number)
        reason = f"{change.event} by {change.actor}"
        clean_up(facts, dispatches, deferrals, item, waiting, reason, intent=intent, holds=unclaimed.get(key))
        cleaned.append((waiting.task_index, waiting.current_epoch))
        dispatches.cleaned.add(waiting.current_epoch)
    if in_lanes:
        store.withdraw_some(facts.conn, run.run_key, in_lanes)
    return cleaned


def _change_virtual(facts: Facts, holds: Holds, run_key: int, keys: Sequence[TargetKey], change: StateChange) -> int:
    """Changes virtual instances of mapped tasks. Those that are to run are in a lane already; an instance that is named gets a row
    of its own.
    """
    conn, wanted = facts.conn, of_virtual(change)
    whole = [task_index for task_index, map_index in keys if map_index is None]
    if whole and not change.cleared:
        changed = store.end_virtual(conn, run_key, whole, wanted)
        store.withdraw_ranges(conn, run_key, whole)
        keys = [key for key in keys if key[1] is not None]
    else:
        changed = 0
    rows = store.insert_virtual(conn, run_key, keys, wanted) if keys else []
    if rows and not change.cleared:
        _take_from_lanes(facts, holds, run_key, rows)
    return changed + len(rows)


def _take_from_lanes(facts: Facts, holds: Holds, run_key: int, rows: Collection[tuple[int, int]]) -> None:
    """These instances have rows now, so no lane stands for them any more: a range that loses one in its middle is parted."""
    lanes = store.read_ranges(facts.conn, run_key, {task_index for task_index, _ in rows})
    changed, parts = parted(lanes, rows)
    if parts:
        fresh = [facts.catalog.lane_ids.take(facts.conn) for _ in parts]
        holds.wake(store.split_lanes(facts.conn, parts, fresh))
    if changed:
        store.change_ranges(facts.conn, changed)


def _remove(
    facts: Facts, mapped: MappedTasks, run: Run, tasks: Sequence[int], actor: str, live: Collection[int]
) -> list[tuple[int, int]]:
    """Removes the instances of mapped tasks. A task is expanded anew once no process runs of it or of those expanded with it."""
    run_key = run.run_key
    timed = store.remove_instances(facts.conn, run_key, tasks, removal(actor), live=live)
    regions = [(index, number) for number, region in enumerate(run.graph.regions) for index in region.tasks]
    for task_index in store.collapse_mapped(facts.conn, run_key, regions, expansion_anew(actor)):
        mapped.known.pop((run_key, task_index), None)
    return timed


def _remove_ended(
    facts: Facts,
    dispatches: Dispatches,
    mapped: MappedTasks,
    run: Run,
    keys: Iterable[TargetKey],
    actor: str,
    ended: Collection[int],
) -> None:
    """Of mapped tasks that were cleared as a whole: these instances have ended."""
    run_key = run.run_key
    named = {(run_key, task_index) for task_index, map_index in keys if map_index != UNMAPPED}
    found = instances.read_mapped(facts.conn, named).all()
    removed = [m.task_index for m in found if m.virtual_state is TaskState.REMOVED]
    if removed:
        others = store.find_live(facts.conn, run_key, [(index, None) for index in removed], HOLDING)
        _remove(facts, mapped, run, removed, actor, [*(t.epoch for t in others if t.epoch not in ended), *dispatches.cleaned])
        store.delete_results(facts.conn, run_key, [(index, None) for index in removed])


def _has_ended(facts: Facts, report: TakenReport) -> bool:
    """Whether this says that a try has ended, and there is nothing to clean up first."""
    if report.kind not in ("exit", "lost") or report.task_index is None:
        return False
    return not awaits_clean_up(facts.runs[report.run_key].graph.task(report.task_index), report)


def _intent(facts: Facts, dispatches: Dispatches, report: TakenReport) -> dict[str, Any] | None:
    """None too when the run is cancelled: that is what counts then."""
    if report.task_index is None or report.state is None or facts.runs[report.run_key].cancelled:
        return None
    return dispatches.intents.get(report.epoch) or report.intent
