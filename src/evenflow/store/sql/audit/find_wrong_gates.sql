-- Gates of tasks that depend on the past which do not wait for as much as is watched for them, or has been told and not been read
-- yet.
with expected as (
    select run_key, task_index, sum(n)::int as missing
    from (
        select waiter_run as run_key, waiter_task as task_index, count(*) as n from past_watch group by waiter_run, waiter_task
        union all
        select p.run_key, (p.payload ->> 'task')::int, count(*)
        from report p
        join dag_run r on r.run_key = p.run_key and r.clears = p.epoch
        where p.kind = 'past'
        group by p.run_key, p.payload ->> 'task'
    ) as waiting
    group by run_key, task_index
)
select concat(r.dag_id, '/', r.run_id, ' ', k.task_id) as object,
    concat('waits for ', coalesce(g.missing, 0), ' tasks of the run before') as found,
       concat(coalesce(x.missing, 0), ' are missing') as expected
from past_gate g
full join expected x using (run_key, task_index)
join dag_run r using (run_key)
join task k using (version_key, task_index)
where coalesce(g.missing, 0) <> coalesce(x.missing, 0)
limit %(most)s
