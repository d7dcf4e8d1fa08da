-- How many instances of a mapped task pushed a value, and which of them pushed the one at this place in map order. As result_lengths
-- counts, so that every instance of a mapping finds its element. From the primary key alone. And
-- whether the try that asks is not over.
with pushed as materialized (
    select map_index
    from xcom
    where run_key = %(run_key)s and task_index = %(task_index)s and map_index >= 0 and key = %(key)s
)
select count(*)::int as length, (select map_index from pushed order by map_index offset %(index)s limit 1) as map_index,
       exists (select from dispatch where epoch = %(epoch)s) as held
from pushed
