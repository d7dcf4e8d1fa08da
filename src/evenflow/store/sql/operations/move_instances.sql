-- Moves task instances as a person wants, except those whose process still runs, and writes their history. A map index of null
-- means all instances. A cleared one begins anew, but keeps its count of tries. Answers how many moved, and which of them had a
-- timer. Rows are updated by ctid: only the holder of the run's lock changes them.
with was as materialized (
    select x.task_index, t.map_index, t.state, t.epoch, t.try_number, t.ctid as row
    from unnest(%(tasks)s::int[], %(maps)s::int[]) as x (task_index, map_index)
    cross join lateral (
        select map_index, state, epoch, try_number, ctid from task_instance
        where run_key = %(run_key)s and task_index = x.task_index
          and map_index between coalesce(x.map_index, -1) and coalesce(x.map_index, 2147483647)
        offset 0
    ) as t
    where t.state = any(%(states)s::task_state[]) and t.epoch not in (select unnest(%(live)s::bigint[]))
), moved as (
    update task_instance
    set state = %(state)s::task_state, losses = 0, reason = %(reason)s, ended_by = %(ended_by)s,
        tries_before = case when %(cleared)s then try_number else tries_before end,
        queued_at = case when not %(cleared)s then queued_at end,
        started_at = case when not %(cleared)s then started_at end,
        poking_since = null,
        ended_at = case when not %(cleared)s then now() end
    where ctid = any(array(select row from was))
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select %(run_key)s, task_index, map_index, epoch, try_number, %(event)s, %(state)s::task_state, %(detail)s::jsonb from was
)
select count(*)::int as moved,
       coalesce(array_agg(array[task_index, map_index]) filter (where state in ('deferred', 'up_for_retry', 'up_for_reschedule')),
           '{}')
           as timed
from was
