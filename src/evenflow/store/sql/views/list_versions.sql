-- Versions of a DAG, the newest first, with how many runs each has. The index behind dag_run's key serves the count through the
-- DAG.
select jsonb_build_array(v.version_number) as place, v.version_number, v.created_at, v.bundle, v.file, v.revision, v.code_hash,
    v.spec_hash,
       jsonb_array_length(v.spec -> 'tasks') as tasks, v.version_key = d.version_key as is_newest,
       coalesce(r.runs, 0)::int as runs, coalesce(r.live, 0)::int as live_runs
from dag_version v
join dag d using (dag_id)
left join (
    select version_key, count(*) as runs, count(*) filter (where state in ('queued', 'running')) as live
    from dag_run
    where dag_id = %(dag_id)s
    group by version_key
) as r on r.version_key = v.version_key
where v.dag_id = %(dag_id)s and (%(after)s::jsonb is null or v.version_number < (%(after)s::jsonb ->> 0)::bigint)
order by v.version_number desc
limit %(limit)s
