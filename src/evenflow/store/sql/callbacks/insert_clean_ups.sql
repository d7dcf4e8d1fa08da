-- What tries that are over have left running outside: for each a call of its task's on_kill, a queued run of the DAG of callbacks,
-- which gets a copy of what its task has stored, because the task's next try may store something else. A task that is about to
-- begin does it itself. SKIP LOCKED: another scheduler, or the next try, is at it. The version is the one that came with the
-- schema. Answers how many there are.
with found as materialized (
    select o.*, r.version_key as of_version, r.dag_id as of_dag, r.run_id as of_run_id, t.state::text, t.try_number, k.task_id
    from once_value o
    join dag_run r using (run_key)
    join task_instance t using (run_key, task_index, map_index)
    join task k on k.version_key = r.version_key and k.task_index = o.task_index
    where o.outside and o.cleaned_by is null and t.state not in ('queued', 'running')
    limit %(limit)s
    for update of o skip locked
), given as materialized (
    select next_run_key() as call_key, f.*, 'A try left ' || f.name || ' behind.' as reason from found f
), made as (
    insert into dag_run (run_key, dag_id, run_id, version_key, run_type, params)
    select g.call_key, v.dag_id, %(event)s || '__' || g.call_key, v.version_key, 'callback',
           jsonb_strip_nulls(jsonb_build_object('dag_id', g.of_dag, 'run_id', g.of_run_id, 'task_id', g.task_id, 'map_index',
               nullif(g.map_index, -1),
                                                'try_number', g.try_number, 'state', g.state, 'reason', g.reason))
    from given g
    join dag_version v on v.dag_id = %(dag_id)s and v.spec_hash = '' and v.code_hash = ''
), called as (
    insert into callback (run_key, of_run, version_key, task_index, map_index, try_number, event, position, state, reason)
    select call_key, run_key, of_version, task_index, map_index, try_number, %(event)s, 0, state, reason from given
), copied as (
    insert into once_value (run_key, task_index, map_index, name, key, value, epoch)
    select call_key, 0, -1, name, key, value, 0 from given
), told as (
    update once_value o set cleaned_by = g.call_key
    from given g
    where o.run_key = g.run_key and o.task_index = g.task_index and o.map_index = g.map_index and o.name = g.name
)
select count(*)::int from given
