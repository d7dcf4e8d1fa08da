-- What has moved since a snapshot was taken, the newest run first: each transaction that it did not see and this statement's own
-- does. Of DAGs that are looked at, also the newest move of each task instance.
-- The snapshot to continue from is answered, and whether all is told: not when the other one is too old, or of another history of
-- this database.
with look as materialized (
    select snapshot, pg_snapshot_xmin(snapshot)::text::bigint as oldest,
           pg_snapshot_xmax(snapshot)::text::bigint between next - %(age)s and next as is_known
    from (select coalesce(%(since)s::pg_snapshot, pg_current_snapshot()) as snapshot,
                 pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) as asked
), moved as materialized (
    select e.run_key, e.task_index, e.map_index, e.state, e.try_number, e.at
    from look
    join task_event e on {{is_unseen}}
    where look.is_known
    limit %(moves)s
), run_moved as (
    select distinct e.run_key
    from look
    join run_event e on {{is_unseen}}
    where look.is_known
    limit %(moves)s
), run as (
    select r.run_key, r.dag_id, r.run_id, r.state, t.tasks,
           array(select s.scope from unnest(%(scopes)s::text[]) as s (scope)
               where r.dag_id in (select dags_in_scope(s.scope::jsonb))) as scopes
    from (select run_key from moved union select run_key from run_moved) as m
    join dag_run r using (run_key)
    left join lateral (
        select jsonb_agg(jsonb_build_object('task_id', k.task_id, 'map_index', l.map_index, 'state', l.state, 'try_number',
            l.try_number)) as tasks
        from (
            select distinct on (task_index, map_index) task_index, map_index, state, try_number
            from moved
            where moved.run_key = r.run_key
            order by task_index, map_index, at desc
            limit %(tasks)s + 1
        ) as l
        join task k on k.version_key = r.version_key and k.task_index = l.task_index
    ) as t on r.dag_id = any(%(dags)s::text[])
    where r.run_type <> 'callback'
)
select pg_current_snapshot()::text as cursor,
       not (select is_known from look) or (select count(*) >= %(moves)s from moved) as is_cut,
       coalesce((select jsonb_agg(jsonb_build_object('dag_id', dag_id, 'run_id', run_id, 'state', state, 'tasks',
           coalesce(tasks, '[]'), 'scopes', scopes)
                                  order by run_key desc) from run), '[]')::text as runs
