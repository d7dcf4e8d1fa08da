-- The deferrals of task instances whose try has ended go. Their triggers are void, and so are the timers that would have ended
-- their waiting. Under the locks of their runs.
with ended as materialized (
    select run_key, task_index, map_index
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as k (run_key, task_index, map_index)
), timers as (
    delete from timer t
    using ended k
    where t.run_key = k.run_key and t.task_index = k.task_index and t.map_index = k.map_index
      and t.kind in ('trigger_timeout', 'execution_timeout')
)
delete from deferral f
using ended k
where f.run_key = k.run_key and f.task_index = k.task_index and f.map_index = k.map_index
