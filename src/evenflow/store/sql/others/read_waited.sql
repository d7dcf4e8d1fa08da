-- How long ago a sensor of a try that is in hand looked first, in seconds; 0 when this is its first look, no row when the try is
-- over.
select extract(epoch from coalesce(now() - t.poking_since, interval '0'))::float8
from dispatch d
join task_instance t using (run_key, task_index, map_index, epoch)
where d.epoch = %(epoch)s
