-- The critical path of each run: from the task that ended last back through the upstream that ended last, each time; its last 20 tasks. What
-- is known of a run is brought together once, in a map: with a join for each step all history would be brought together as often.
with run as (
    select run_key, max(case when from_end = 1 then task_index end) as t0,
           map_from_arrays(collect_list(task_index), collect_list(coalesce(upstream, -1))) as upstream_of
    from blockers
    group by run_key
), walked as (
    select run_key, upstream_of, t0, upstream_of[t0] as t1, upstream_of[t1] as t2, upstream_of[t2] as t3, upstream_of[t3] as t4,
           upstream_of[t4] as t5, upstream_of[t5] as t6, upstream_of[t6] as t7, upstream_of[t7] as t8, upstream_of[t8] as t9,
           upstream_of[t9] as t10, upstream_of[t10] as t11, upstream_of[t11] as t12, upstream_of[t12] as t13, upstream_of[t13] as t14,
           upstream_of[t14] as t15, upstream_of[t15] as t16, upstream_of[t16] as t17, upstream_of[t17] as t18, upstream_of[t18] as t19
    from run
), path as (
    select run_key, task_index, cast(substr(step, 2) as int) as back
    from (select run_key, t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19 from walked) w
         unpivot (task_index for step in (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19))
    where task_index >= 0
)
select p.run_key, e.dag_id, p.task_index, t.task_id, p.back,
       e.ended_us - coalesce(lag(e.ended_us) over (partition by p.run_key order by p.back desc), e.granted_us) as us
from path p
join blockers e on e.run_key = p.run_key and e.task_index = p.task_index
join (select distinct version_key, task_index, task_id from tasks) t on t.version_key = e.version_key and t.task_index = p.task_index
