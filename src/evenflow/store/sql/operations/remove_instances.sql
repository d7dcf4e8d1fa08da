-- Mapped tasks that are cleared as a whole: their instances go, except those whose process still runs. The highest number of tries
-- stays, so that their successors continue the count. History keeps what they were. Answers which of them had a timer.
with gone as (
    delete from task_instance
    where run_key = %(run_key)s and task_index = any(%(tasks)s::int[]) and map_index >= 0
        and epoch not in (select unnest(%(live)s::bigint[]))
    returning task_index, map_index, state, epoch, try_number
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select %(run_key)s, task_index, map_index, epoch, try_number, %(event)s, %(state)s::task_state, %(detail)s::jsonb from gone
), most as (
    select task_index, max(tries) as tries
    from (select task_index, try_number as tries from gone union all select unnest(%(tasks)s::int[]), 0) as x
    group by task_index
), kept as (
    update mapped_task m set virtual_state = %(state)s::task_state, virtual_reason = null, virtual_ended_by = null,
        tries_before = greatest(m.tries_before, k.tries)
    from (
        select t.row, most.tries
        from most
        cross join lateral (select ctid as row from mapped_task where run_key = %(run_key)s
            and task_index = most.task_index offset 0) as t
    ) as k
    where m.ctid = k.row
)
select task_index, map_index from gone where state in ('deferred', 'up_for_retry', 'up_for_reschedule')
