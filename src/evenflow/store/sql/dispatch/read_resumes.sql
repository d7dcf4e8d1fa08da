-- What these tries, which resume, said when they were deferred, and what became of that.
select d.epoch, f.purpose, f.trigger, f.sealed, f.event, extract(epoch from now() - f.deferred_at)::float8 as deferred_s,
       extract(epoch from now() - f.began_at)::float8 as began_s, f.ran_s, f.reason
from unnest(%(epochs)s::bigint[]) as c (epoch)
join dispatch d on d.epoch = c.epoch
join deferral f on f.run_key = d.run_key and f.task_index = d.task_index and f.map_index = d.map_index
where f.purpose is not null
