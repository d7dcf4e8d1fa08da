-- What these callbacks are about, for the worker that runs them. Of a run that has been deleted since there is only what they kept.
select c.run_key, c.of_run, c.version_key, c.task_index, c.map_index, c.try_number, c.event, c.position, c.state, c.reason,
    c.notifier, v.dag_id,
       coalesce(r.run_id, '') as run_id, coalesce(r.run_type, '') as run_type, coalesce(r.params, '{}') as params,
       coalesce(r.run_after, k.run_after) as run_after, r.logical_date, r.data_interval_start, r.data_interval_end, m.length,
       t.started_at, t.ended_at
from callback c
join dag_run k on k.run_key = c.run_key
join dag_version v on v.version_key = c.version_key
left join dag_run r on r.run_key = c.of_run
left join task_instance t
    on t.run_key = c.of_run and t.task_index = c.task_index and t.map_index = c.map_index and t.try_number = c.try_number
left join mapped_task m on m.run_key = c.of_run and m.task_index = c.task_index and c.map_index >= 0
where c.run_key = any(%(run_keys)s::bigint[])
