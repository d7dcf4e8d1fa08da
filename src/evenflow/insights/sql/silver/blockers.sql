-- Of each task of a run the upstream that ended last, and when both ended.
with ended as (
    select run_key, task_index, min(dag_id) as dag_id, min(version_key) as version_key, min(granted_us) as granted_us, max(ended_us) as ended_us
    from instances
    where ended_us is not null
    group by run_key, task_index
), found as (
    select e.run_key, e.task_index, e.dag_id, e.version_key, e.granted_us, e.ended_us, u.task_index as upstream,
           row_number() over (partition by e.run_key, e.task_index order by u.ended_us desc, u.task_index) as place
    from ended e
    left join edges g on g.version_key = e.version_key and g.task_index = e.task_index
    left join ended u on u.run_key = e.run_key and u.task_index = g.upstream
)
select run_key, task_index, dag_id, version_key, granted_us, ended_us, upstream,
       row_number() over (partition by run_key order by ended_us desc, task_index) as from_end
from found
where place = 1
