-- Some runs of a DAG: live ones if there are any, because they are in the way, otherwise the oldest, up to a number of task
-- instances together, but always one. Each part is a range of an index.
with live as materialized (
    (select run_key, run_id, state from dag_run where dag_id = %(dag_id)s and state = 'running' limit 1)
    union all
    (select run_key, run_id, state from dag_run where dag_id = %(dag_id)s and state = 'queued' limit 1)
), ended as materialized (
    select run_key, run_id, state from dag_run where dag_id = %(dag_id)s and not exists (select from live) order by run_key
    limit %(limit)s
), sized as materialized (
    select run_key, run_id, state,
           (select count(*)
               from (select from task_instance t where t.run_key = ended.run_key limit %(whole)s::int + 1) as first_ones) as size
    from ended
)
select run_key, run_id, state::text from live
union all
select run_key, run_id, state::text
from (select run_key, run_id, state, size, sum(size) over (order by run_key) as together from sized) as s
where together <= %(instances)s or together = size
