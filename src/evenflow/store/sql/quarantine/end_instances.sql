-- The task instances of a run that cannot be decided about end, except those whose process still runs: those in "was" by the event
-- beside it.
with ended as (
    update task_instance t
    set state = c.state, ended_at = now(), reason = %(reason)s, ended_by = %(ended_by)s
    from unnest(%(was)s::task_state[], %(events)s::text[], %(states)s::task_state[]) as c (was, event, state)
    where t.run_key = %(run_key)s and t.state = c.was and not exists (select from dispatch d where d.epoch = t.epoch)
    returning t.task_index, t.map_index, t.epoch, t.try_number, c.event, t.state
)
insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
select %(run_key)s, task_index, map_index, epoch, try_number, event, state, jsonb_build_object('actor', %(actor)s::text) from ended
