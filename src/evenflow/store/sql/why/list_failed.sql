-- Which of these upstreams of a task have failed, or were not run because of others, in the order of the DAG: how many instances
-- failed, the first of them, and why. Of a mapped one all its instances count where the map index is null, else that one.
select k.task_index, k.task_id, a.map_index as asked, s.failed, s.map_index, s.explanation
from unnest(%(tasks)s::int[], %(maps)s::int[]) as a (task_index, map_index)
join dag_run r on r.run_key = %(run_key)s
join task k on k.version_key = r.version_key and k.task_index = a.task_index
cross join lateral (
    select count(*)::int as ended, count(*) filter (where t.state = 'failed')::int as failed,
           coalesce(min(t.map_index) filter (where t.state = 'failed'), -1) as map_index,
           (array_agg(t.reason order by t.map_index) filter (where t.state = 'failed'))[1] as explanation
    from task_instance t
    where t.run_key = r.run_key and t.task_index = k.task_index and t.state in ('failed', 'upstream_failed')
      and (a.map_index is null or t.map_index = a.map_index)
) as s
where s.ended > 0
   or exists (select from mapped_task m where m.run_key = r.run_key and m.task_index = k.task_index
       and m.virtual_state = 'upstream_failed')
order by k.task_index
