-- In which states the instances of these tasks of these runs are: those with a row, and those of mapped tasks that have none yet.
select r.run_key, k.task_id, s.state, sum(s.n)::int as n
from dag_run r
join task k on k.version_key = r.version_key and k.task_id = any(%(task_ids)s::text[])
cross join lateral (
    select t.state::text as state, count(*) as n
    from task_instance t
    where t.run_key = r.run_key and t.task_index = k.task_index
    group by t.state
    union all
    select m.virtual_state::text, m.length - (select count(*) from task_instance t
                                     where t.run_key = r.run_key and t.task_index = k.task_index and t.map_index >= 0)
    from mapped_task m
    where m.run_key = r.run_key and m.task_index = k.task_index
) as s
where r.run_key = any(%(run_keys)s::bigint[])
group by r.run_key, k.task_id, s.state
having sum(s.n) > 0
