-- The reports of these runs, in order, with the dispatch and the task instance that they are about (null when the epoch is past).
-- Cancels touch lanes, so they are for the holder of the executor's lock. Rows are deleted by ctid: nobody updates them, and only who
-- has the run's lock deletes them. What a success says beyond that is not read.
with taken as (
    delete from report
    where ctid = any(array(
        select ctid from report
        where run_key = any(%(run_keys)s::bigint[]) and (%(lead)s or kind <> 'cancel')
        order by report_id
        limit %(limit)s))
    returning *
)
select r.run_key, r.epoch, r.kind::text, r.at::text, (r.at - make_interval(secs => coalesce((r.payload ->> 'ran_s')::float8, 0)))::text as began_at,
       extract(epoch from r.at)::float8 as at_s, r.payload ->> 'outcome' as outcome,
       case when r.kind <> 'started' and r.payload ->> 'outcome' is distinct from 'success' then r.payload end as payload,
       d.task_index, d.map_index, d.holds, d.pool_slots, d.worker_id, t.state::text, t.try_number, t.losses
from taken r
left join lateral (select * from dispatch where dispatch.epoch = r.epoch offset 0) as d on true
left join lateral (
    select state, try_number, losses from task_instance
    where run_key = d.run_key and task_index = d.task_index and map_index = d.map_index and epoch = d.epoch
    offset 0
) as t on true
order by r.report_id
