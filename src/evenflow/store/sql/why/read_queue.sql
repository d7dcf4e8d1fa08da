-- How many dispatches of a queue are claimed before this one, and which workers serve the queue.
select (select count(*)::int
        from (
            select from dispatch
            where queue = %(queue)s and worker_id is null
              and (class < %(class)s or class = %(class)s and (priority > %(priority)s or priority = %(priority)s and epoch < %(epoch)s))
            limit %(counted)s
        ) as before) as ahead,
       count(*)::int as workers, coalesce(sum((s.detail ->> 'slots')::int), 0)::int as slots, coalesce(sum(b.busy), 0)::int as busy
from service s
cross join lateral (select count(*)::int as busy from dispatch where dispatch.worker_id = s.service_id) as b
where s.kind = 'worker' and s.state = 'active' and s.beat_at > now() - make_interval(secs => %(lease_s)s)
  and s.detail -> 'queues' ? %(queue)s
