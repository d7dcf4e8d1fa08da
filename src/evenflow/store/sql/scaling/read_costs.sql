-- What these workers run, by task: how many tries, and the sum of the squares of the seconds for which each has run. Tasks are named once each, after
-- they are summed up.
with held as materialized (
    select d.worker_id, r.version_key, d.task_index, count(*)::int as tries, sum(extract(epoch from now() - d.claimed_at) ^ 2)::float8 as squares
    from dispatch d
    cross join lateral (select version_key from dag_run where dag_run.run_key = d.run_key offset 0) as r
    where d.worker_id = any(%(workers)s::bigint[])
    group by d.worker_id, r.version_key, d.task_index
), named as materialized (
    select k.version_key, k.task_index, v.dag_id, t.task_id, coalesce(v.outline -> 'tags', '[]') as tags
    from (select distinct version_key, task_index from held) as k
    join dag_version v using (version_key)
    join task t using (version_key, task_index)
)
select h.worker_id, n.dag_id, n.task_id, n.tags, h.tries, h.squares
from held h
join named n using (version_key, task_index)
order by h.worker_id, n.dag_id, n.task_id
