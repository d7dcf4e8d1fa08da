-- The task instances of a run that nobody can decide about end, except those whose process still runs.
with ended as (
    update task_instance t
    set state = case when t.state = any(%(skipped)s::task_state[]) then 'skipped' else 'failed' end::task_state,
        ended_at = now(), reason = %(reason)s
    where t.run_key = %(run_key)s and (t.state = any(%(skipped)s::task_state[]) or t.state = any(%(failed)s::task_state[]))
      and not exists (select from dispatch d where d.epoch = t.epoch)
    returning t.task_index, t.map_index, t.epoch, t.try_number, t.state
)
insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
select %(run_key)s, task_index, map_index, epoch, try_number, case state when 'skipped' then 'withdraw' else 'cancel' end, state, jsonb_build_object('actor', %(actor)s::text) from ended
