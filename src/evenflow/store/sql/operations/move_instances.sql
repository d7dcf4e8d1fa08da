-- Moves task instances as an operator wants, those whose process still runs left out, and writes their history. A map index of null means
-- all instances. A cleared one begins anew, but goes on counting tries. Answers how many moved, and which of them a timer was about.
with was as materialized (
    select t.task_index, t.map_index, t.state, t.epoch, t.try_number
    from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    join task_instance t on t.run_key = %(run_key)s and t.task_index = x.task_index and (x.map_index is null or t.map_index = x.map_index)
    where t.state = any(%(states)s::task_state[]) and t.epoch <> all(%(live)s::bigint[])
), moved as (
    update task_instance t
    set state = %(state)s::task_state, losses = 0, reason = %(reason)s,
        tries_before = case when %(cleared)s then t.try_number else t.tries_before end,
        queued_at = case when not %(cleared)s then t.queued_at end,
        started_at = case when not %(cleared)s then t.started_at end,
        poking_since = null,
        ended_at = case when not %(cleared)s then now() end
    from was
    where t.run_key = %(run_key)s and t.task_index = was.task_index and t.map_index = was.map_index
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select %(run_key)s, task_index, map_index, epoch, try_number, %(event)s, %(state)s::task_state, %(detail)s::jsonb from was
)
select count(*)::int as moved,
       coalesce(array_agg(array[task_index, map_index]) filter (where state in ('deferred', 'up_for_retry', 'up_for_reschedule')), '{}')
           as timed
from was
