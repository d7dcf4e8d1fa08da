-- Which run has the newest value of a task under a key: this one, else the latest of a number of runs of its DAG with earlier
-- logical dates. Of each run the task has the index that it has in that run's version. No row: none has.
select r.run_id
from dag_run own
cross join lateral (
    (select own.run_key, own.run_id, own.version_key, 'infinity'::timestamptz as at)
    union all
    (select p.run_key, p.run_id, p.version_key, p.logical_date
     from dag_run p
     where p.dag_id = own.dag_id and p.logical_date < coalesce(own.logical_date, own.run_after) and p.run_key <> own.run_key
     order by p.logical_date desc
     limit %(most)s)
) as r
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join xcom x on x.run_key = r.run_key and x.task_index = k.task_index and x.map_index = %(map_index)s and x.key = %(key)s
where own.run_key = %(run_key)s
order by r.at desc
limit 1
