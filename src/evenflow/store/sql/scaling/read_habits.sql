-- For these tasks: the seconds of their successful tries, ascending, and the number of instances of each when it was mapped last.
-- From the last runs of its DAG up to this one, by the name of the task, whatever the version. The numbers of runs and of instances
-- of each run are limited.
select k.version_key, k.task_index, p.took_s, p.length
from unnest(%(version_keys)s::bigint[], %(task_indexes)s::int[], %(run_keys)s::bigint[]) as k (version_key, task_index, run_key)
join task t using (version_key, task_index)
join dag_version v using (version_key)
cross join lateral (
    select array_agg(x.took_s order by x.took_s) filter (where x.took_s is not null) as took_s,
           (array_agg(x.length order by x.run_key desc) filter (where x.length is not null))[1] as length
    from (
        select r.run_key, m.length, extract(epoch from i.ended_at - i.started_at)::float8 as took_s
        from (
            select run_key, version_key from dag_run
            where dag_id = v.dag_id and dag_run.run_key <= k.run_key
            order by run_key desc
            limit %(runs)s
        ) as r
        join task o on o.version_key = r.version_key and o.task_id = t.task_id
        left join mapped_task m on m.run_key = r.run_key and m.task_index = o.task_index
        left join lateral (
            select started_at, ended_at
            from (
                select state, started_at, ended_at from task_instance
                where task_instance.run_key = r.run_key and task_instance.task_index = o.task_index
                limit %(instances)s
            ) as seen
            where state = 'success' and started_at is not null
        ) as i on true
    ) as x
) as p
