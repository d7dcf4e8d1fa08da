-- The critical path of each run: from the task that ended last back through the upstream that ended last, each time; its last 20 tasks.
with path as (
    select run_key, task_index, back from path_ends
    union all
    select p.run_key, a.upstream, p.back + 1
    from path_ends p
    join blockers a on a.run_key = p.run_key and a.task_index = p.task_index
    where a.upstream is not null
    union all
    select p.run_key, b.upstream, p.back + 2
    from path_ends p
    join blockers a on a.run_key = p.run_key and a.task_index = p.task_index
    join blockers b on b.run_key = a.run_key and b.task_index = a.upstream
    where b.upstream is not null
    union all
    select p.run_key, c.upstream, p.back + 3
    from path_ends p
    join blockers a on a.run_key = p.run_key and a.task_index = p.task_index
    join blockers b on b.run_key = a.run_key and b.task_index = a.upstream
    join blockers c on c.run_key = b.run_key and c.task_index = b.upstream
    where c.upstream is not null
)
select p.run_key, e.dag_id, p.task_index, t.task_id, p.back,
       e.ended_us - coalesce(lag(e.ended_us) over (partition by p.run_key order by p.back desc), e.granted_us) as us
from path p
join blockers e on e.run_key = p.run_key and e.task_index = p.task_index
join (select distinct version_key, task_index, task_id from tasks) t on t.version_key = e.version_key and t.task_index = p.task_index
