-- Calls of authors' functions, each a queued run of the DAG of callbacks. The caller holds the locks of the runs that they are
-- about. What people read of such a run stands in its params. The version is the one that came with the schema: nothing that a file
-- defines takes its place.
with given as materialized (
    select next_run_key() as run_key, c.*
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(tries)s::smallint[], %(events)s::text[],
                %(positions)s::int[], %(states)s::text[], %(reasons)s::text[])
         as c (of_run, task_index, map_index, try_number, event, position, state, reason)
), made as (
    insert into dag_run (run_key, dag_id, run_id, version_key, run_type, params)
    select g.run_key, v.dag_id, g.event || '__' || g.run_key, v.version_key, 'callback',
           jsonb_strip_nulls(jsonb_build_object('dag_id', r.dag_id, 'run_id', r.run_id, 'task_id', t.task_id,
                                                'map_index', nullif(g.map_index, -1), 'try_number', nullif(g.try_number, 0),
                                                'state', g.state, 'reason', g.reason))
    from given g
    join dag_version v on v.dag_id = %(dag_id)s and v.spec_hash = '' and v.code_hash = ''
    join dag_run r on r.run_key = g.of_run
    left join task t on t.version_key = r.version_key and t.task_index = g.task_index
)
insert into callback (run_key, of_run, version_key, task_index, map_index, try_number, event, position, state, reason)
select g.run_key, g.of_run, r.version_key, g.task_index, g.map_index, g.try_number, g.event, g.position, g.state, g.reason
from given g
join dag_run r on r.run_key = g.of_run
