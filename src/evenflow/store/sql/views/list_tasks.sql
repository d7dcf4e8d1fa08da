-- Task instances of a run in the order of its DAG, the untouched ones of mapped tasks and of runs not yet begun among them.
select k.task_id, k.operator, i.map_index, i.state::text, i.try_number, i.queued_at, i.started_at, i.ended_at, i.reason,
       extract(epoch from coalesce(i.ended_at, now()) - i.started_at)::float8 as elapsed_s, s.name as worker
from dag_run r
join task k on k.version_key = r.version_key
cross join lateral (
    select map_index, state, try_number, queued_at, started_at, ended_at, reason, epoch
    from task_instance t
    where t.run_key = r.run_key and t.task_index = k.task_index
    union all
    select n, m.rest, 0, null, null, null, null, 0
    from mapped_task m
    cross join generate_series(0, m.length - 1) as n
    where m.run_key = r.run_key and m.task_index = k.task_index
      and not exists (select from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index and t.map_index = n)
    union all
    select -1, 'none', 0, null, null, null, null, 0
    where not exists (select from task_instance t where t.run_key = r.run_key and t.task_index = k.task_index)
      and not exists (select from mapped_task m where m.run_key = r.run_key and m.task_index = k.task_index)
) as i
left join dispatch d on d.epoch = i.epoch
left join service s on s.service_id = d.worker_id
where r.run_key = %(run_key)s
  and (%(task_id)s::text is null or k.task_id = %(task_id)s)
  and (%(state)s::task_state is null or i.state = %(state)s::task_state)
order by k.task_index, i.map_index
limit %(limit)s offset %(offset)s
