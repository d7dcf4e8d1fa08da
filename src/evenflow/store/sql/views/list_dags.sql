-- DAGs by name (Evenflow's own only when asked for), each with its newest run, and as many of the newest as are asked for. A DAG's
-- runs are those "between" its name and its name: asked for by "=", they may be looked for among the newest of all DAGs.
select jsonb_build_array(d.dag_id) as place, d.dag_id, coalesce(v.spec ->> 'display_name', d.dag_id) as display_name, d.is_paused,
    d.paused_reason, d.is_active, d.bundle, d.file, v.version_number,
       d.next_run_at, d.next_logical, d.updated_at,
       coalesce(v.spec ->> 'description', '') as description, coalesce(v.spec ->> 'owner', '') as owner,
       coalesce(v.spec -> 'tags', '[]') as tags, v.spec -> 'schedule' as schedule, v.spec #>> '{schedule,timezone}' as timezone,
       r.run_id as last_run_id, r.state::text as last_run_state, r.created_at as last_run_at,
       case when d.is_paused then coalesce(nullif(s.state, 'draining'), 'paused')
           else coalesce(s.state, 'active') end as service_state,
       n.recent_runs
from dag d
join dag_version v on v.version_key = d.version_key
left join service_state s on s.kind = 'dag' and s.name = d.dag_id
left join lateral (
    select run_id, state, created_at from dag_run
    where dag_run.dag_id between d.dag_id and d.dag_id order by dag_run.dag_id, run_key desc limit 1
) as r on true
cross join lateral (
    select coalesce(jsonb_agg(to_jsonb(newest) - 'run_key' order by run_key desc), '[]') as recent_runs
    from (
        select run_key, run_id, state::text, created_at,
            extract(epoch from coalesce(ended_at, now()) - started_at)::float8 as elapsed_s
        from dag_run
        where dag_run.dag_id between d.dag_id and d.dag_id order by dag_run.dag_id, run_key desc limit %(recent)s
    ) as newest
) as n
where (d.dag_id = %(dag_id)s or %(dag_id)s::text is null and d.bundle <> 'evenflow') and (d.is_active or %(retired)s)
  and (%(search)s::text is null
       or strpos(lower(concat_ws(' ', d.dag_id, v.spec ->> 'display_name', v.spec ->> 'owner', v.spec ->> 'tags')),
           lower(%(search)s)) > 0)
  and (%(scope)s::jsonb is null or d.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or d.dag_id > %(after)s::jsonb ->> 0)
order by d.dag_id
limit %(limit)s
