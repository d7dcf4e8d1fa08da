-- Tries that their worker cannot end, as it says in its beats: for people. Only of workers that say so are the tries read.
select s.name as worker, s.host, r.dag_id, r.run_id, k.task_id, d.map_index, d.claimed_at as since
from service s
join dispatch d on d.worker_id = s.service_id and s.detail -> 'outrun' @> to_jsonb(d.epoch)
join dag_run r on r.run_key = d.run_key
join task k on k.version_key = r.version_key and k.task_index = d.task_index
where s.kind = 'worker' and s.state in ('active', 'draining') and s.detail ? 'outrun'
  and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
order by s.name, d.epoch
limit %(limit)s
