-- What tries that have ended have read and written, for this API to send. Another one takes what it has not sent in time: SKIP
-- LOCKED, and a later moment.
with due as materialized (
    select run_key, task_index, map_index, epoch, kind
    from try_record c
    where send_at <= now() and not exists (select from dispatch d where d.epoch = c.epoch)
    order by send_at
    limit %(limit)s
    for update skip locked
)
update try_record c
set send_at = now() + make_interval(secs => %(again_s)s)
from due
join dag_run r using (run_key)
join task k on k.version_key = r.version_key and k.task_index = due.task_index
where c.run_key = due.run_key and c.task_index = due.task_index and c.map_index = due.map_index and c.epoch = due.epoch
    and c.kind = due.kind
returning c.run_key, c.epoch, r.dag_id, r.run_id, k.task_id, c.map_index, c.try_number, c.at, c.value, true as unsent,
          case when exists (select from task_event e where e.run_key = c.run_key and e.epoch = c.epoch
              and e.state = 'success') then 'success'
               else 'failed' end as state
