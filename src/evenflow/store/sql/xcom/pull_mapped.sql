-- All values of a mapped task in map order, as one JSON list; null when it would be longer than the limit. Of those that lie in
-- object storage the names, by their place in the list. And whether the try that asks is not over, and whether any of them is
-- secret.
with pushed as materialized (
    select x.value, x.object, x.secret, octet_length(x.value::text) + coalesce(x.size, 0) as size, row_number()
        over (order by x.map_index) - 1 as place
    from xcom x
    join task_instance t using (run_key, task_index, map_index, epoch)
    where x.run_key = %(run_key)s and x.task_index = %(task_index)s and x.map_index >= 0 and x.key = %(key)s
)
select case when coalesce(sum(size), 0) <= %(limit)s then coalesce(jsonb_agg(value order by place), '[]')::text end,
       coalesce(jsonb_object_agg(place, object) filter (where object is not null), '{}'),
       exists (select from dispatch where epoch = %(epoch)s), coalesce(bool_or(secret), false)
from pushed
