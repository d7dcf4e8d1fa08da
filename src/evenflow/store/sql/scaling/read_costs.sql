-- What these workers run: the sum of the squares of the seconds for which its tries have run, by task, or all together with zeros.
-- As float8: numeric takes three times as long. Runs are looked up only where tasks are told apart.
select worker_id, version_key, task_index, sum(elapsed_s ^ 2) as squares
from (
    select d.worker_id, extract(epoch from now() - d.claimed_at)::float8 as elapsed_s, coalesce(r.version_key, 0) as version_key,
           case when %(by_task)s then d.task_index else 0 end as task_index
    from dispatch d
    left join lateral (select version_key from dag_run where %(by_task)s and dag_run.run_key = d.run_key offset 0) as r on true
    where d.worker_id = any(%(workers)s::bigint[])
) as held
group by worker_id, version_key, task_index
