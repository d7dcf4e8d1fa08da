-- The reports of these runs, in order, with the dispatch and the task instance that they are about (null when the epoch is past).
-- Cancels touch lanes, so they are for the holder of the executor's lock.
with picked as (
    select run_key, report_id from report
    where run_key = any(%(run_keys)s::bigint[]) and (%(lead)s or kind <> 'cancel')
    order by report_id
    limit %(limit)s
), taken as (
    delete from report using picked
    where report.run_key = picked.run_key and report.report_id = picked.report_id
    returning report.*
)
select r.run_key, r.epoch, r.kind::text, r.at, r.payload ->> 'outcome' as outcome, (r.payload ->> 'ran_s')::float8 as ran_s, r.payload,
       d.task_index, d.map_index, d.holds, d.pool_slots, d.worker_id, t.state::text, t.try_number, t.losses
from taken r
left join dispatch d on d.epoch = r.epoch
left join task_instance t on t.run_key = d.run_key and t.task_index = d.task_index and t.map_index = d.map_index and t.epoch = d.epoch
order by r.report_id
