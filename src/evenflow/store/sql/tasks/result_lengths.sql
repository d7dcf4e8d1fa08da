-- Lengths of the results that a mapping reads: of a plain task its value's, of a mapped task how many instances pushed one.
select k.run_key, k.task_index, k.key, case when k.mapped then count(x.key)::int else min(x.length) end as length
from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(keys)s::text[], %(mapped)s::bool[]) as k (run_key, task_index, key, mapped)
left join xcom x on x.run_key = k.run_key and x.task_index = k.task_index and x.key = k.key
                and (k.mapped and x.map_index >= 0 or not k.mapped and x.map_index = -1)
group by k.run_key, k.task_index, k.key, k.mapped
