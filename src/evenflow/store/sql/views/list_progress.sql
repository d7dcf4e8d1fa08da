-- What running tries of a run say of their progress.
select k.task_id, p.map_index, p.at, p.payload ->> 'label' as label, (p.payload ->> 'done')::int as done,
    (p.payload ->> 'total')::int as total,
       coalesce(p.payload -> 'detail', '{}') as detail
from task_progress p
join dispatch d on d.epoch = p.epoch
join dag_run r on r.run_key = p.run_key
join task k on k.version_key = r.version_key and k.task_index = p.task_index
where p.run_key = %(run_key)s
order by p.task_index, p.map_index
limit %(limit)s
